"""Why a row is a result, or is none: its times, how far they are apart, the probability, as text and for a picture."""

import html
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from whenabouts.frames.kinds import FrameError, given
from whenabouts.frames.rows import suffix
from whenabouts.frames.times import BEGIN, END, MOMENT, as_microseconds, times
from whenabouts.pairs import read_condition
from whenabouts_cloud.display_time import date, instant
from whenabouts_cloud.language.pattern import Pattern
from whenabouts_cloud.pattern.condition import Condition
from whenabouts_cloud.pattern.elements import Negated, leaves
from whenabouts_cloud.pattern.plan import TIME_LIMIT, EventClass
from whenabouts_cloud.rules.explain_text import time_text
from whenabouts_cloud.rules.state_predicate import streams_of
from whenabouts_cloud.rules.states import Verdict

CALENDAR_US = 366 * 86_400_000_000  # numbers below are no dates but counts from some begin
NEAREST = 3  # partners that are explained
PATTERNS, VERDICTS = ("SEQ", "AND", "OR"), ("DEFINITELY", "POSSIBLY")


@dataclass(frozen=True)
class Bar:
    """A time as an interval, microseconds; `allowed`: where it would satisfy the condition, whatever the other time is."""

    name: str
    begin_us: int
    end_us: int
    allowed_us: tuple[int, int] | None = None


@dataclass(frozen=True, repr=False)
class Explanation:
    """Why a row is a result, or is none. `str` gives it as text; notebooks show it as a table."""

    headline: str
    bars: tuple[Bar, ...]
    lines: tuple[str, ...]
    probability: float | None

    def __str__(self) -> str:
        width = max((len(bar.name) for bar in self.bars), default=0)
        times_of = [f"  {bar.name:{width}}  {_span(bar, self._day)}" for bar in self.bars]
        return "\n".join([self.headline, *times_of, *(f"  {line}" for line in self.lines)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        cells = [(bar.name, _span(bar, self._day)) for bar in self.bars]
        rows = "".join(f"<tr><th>{html.escape(a)}</th><td>{html.escape(b)}</td></tr>" for a, b in cells)
        lines = "<br>".join(html.escape(line) for line in self.lines)
        return f"<p><b>{html.escape(self.headline)}</b></p><table>{rows}</table><p>{lines}</p>"

    @property
    def _day(self) -> str | None:
        return date(self.bars[0].begin_us) if self.bars else None


def explain(row: Any, text: "str | Condition", among: Any = None) -> Explanation:
    """Why a row is a result of a condition, a pattern or a verdict, or why it is none.

    row: one row of `correlate`, `detect` or `verdicts` as a mapping, a Series of pandas, or a frame of one row (also of
    Spark or DuckDB); a pair may also be made by hand, with t_min_a, t_max_a, t_min_b and t_max_b. text: the condition,
    pattern or verdict. among: a frame of b, where the row is one of a (t_min and t_max, or ts): explains its most probable
    partners, those that are none too. `AND a.key = b.key` compares key_a and key_b, or key of both.

    For patterns and verdicts the times of the row decide whether it is one: their order and the window, or whether the
    runs held at one moment. Conditions on other columns and what the frame had besides are not looked at again. Cost: with
    `among` some array operations on it, for patterns the detection among the events of the row.

    Raises:
        RuleError: the text has mistakes.
        FrameError: the row lacks times, or there is not one row.

    >>> print(explain({"t_min_a": 0, "t_max_a": 10, "t_min_b": 40, "t_max_b": 41}, "|@a - @b| <= 10 us OVER 20 %"))
    no pair
      a  0 us .. 10 us
      b  40 us .. 41 us
      @b - @a from 30 us to 41 us, asked for -10 us to 10 us
      probability 0, 0.2 is needed
      not possible: at least 20 us above the limits
    """
    values = row_of(row)
    word = text.split(maxsplit=1)[0].partition("(")[0] if isinstance(text, str) and text.strip() else ""
    if word in PATTERNS:
        return _match(values, Pattern.parse(str(text), None, any_key=True))
    if word in VERDICTS:
        return _verdict(values, Verdict.parse(str(text)))
    condition, keyed = (text, False) if isinstance(text, Condition) else read_condition(text)
    if among is not None:
        return _nearest(values, condition, keyed, among)
    keys = (_key(values, "key_a"), _key(values, "key_b")) if keyed else None
    _check_sides(values)
    return _pair(interval_of(values, "a"), interval_of(values, "b"), condition, keys)


def row_of(row: Any) -> Mapping[str, Any]:
    """A row as a mapping.

    Raises:
        FrameError: it is no row, or a frame of more or fewer rows than one.
    """
    if isinstance(row, Mapping):
        return row
    if type(row).__module__.startswith("pandas.") and hasattr(row, "to_dict") and not hasattr(row, "columns"):
        return dict(row.to_dict())
    if hasattr(row, "asDict"):
        return dict(row.asDict())
    if type(row).__module__.startswith("pyspark.sql"):
        found = [one.asDict() for one in row.limit(2).collect()]
    else:
        rows = given(row, "row").rows
        assert rows is not None
        found = _mappings(rows.head(2))
    if len(found) != 1:
        raise FrameError(
            f"row: found {'no rows' if not found else 'more than one row'}, expected one, as in frame.head(1)"
        )
    return dict(found[0])


def _mappings(rows: "nw.DataFrame[Any]") -> list[dict[str, Any]]:
    """The rows, with times of nanoseconds as NumPy's, as those of Python would lose them."""
    columns = []
    for name in rows.columns:
        array = rows[name].to_arrow()
        array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
        fine = pa.types.is_timestamp(array.type) and array.type.unit == "ns"
        columns.append(list(array.to_numpy(zero_copy_only=False)) if fine else rows[name].to_list())
    return [dict(zip(rows.columns, values, strict=True)) for values in zip(*columns, strict=True)]


def _check_sides(values: Mapping[str, Any]) -> None:
    """Raise FrameError if a pair has a time that may be of either side: only one of the frames had a column of its name."""
    for name, enough in ((BEGIN, (BEGIN,)), (END, (END,)), (MOMENT, (BEGIN, MOMENT))):
        if name in values and any(all(f"{one}_{side}" not in values for one in enough) for side in "ab"):
            raise FrameError(
                f"row: found {name}, which is of one side alone, expected {BEGIN}_a, {END}_a, {BEGIN}_b and {END}_b; give "
                "correlate two frames whose times have the same names, or rename the columns of the pair"
            )


def interval_of(values: Mapping[str, Any], name: str) -> Bar | None:
    """The time of one part of a row, None where the row has no such part.

    Raises:
        FrameError: the row has no columns for it.
    """
    end = f"_{name}" if name else ""
    for begin, last in ((BEGIN + end, END + end), (MOMENT + end, MOMENT + end)):
        if begin in values:
            low, high = (
                _microseconds(values[begin], begin),
                _microseconds(values.get(last, values[begin]), last, up=True),
            )
            if low is None:
                return None
            if high is not None and high < low:
                raise FrameError(f"row: found {last} {high} us before {begin} {low} us, expected it there or later")
            return Bar(name, low, low if high is None else high)
    shown = ", ".join(map(str, list(values)[:20])) or "none"
    raise FrameError(f"row: found the columns {shown}; expected {BEGIN + end} and {END + end}, or {MOMENT + end}")


def _microseconds(value: Any, name: str, up: bool = False) -> int | None:
    if _is_null(value):
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # pandas makes whole numbers fractions in a row with others
    if hasattr(value, "to_datetime64"):
        value = value.to_datetime64()  # a Timestamp of pandas, whose nanoseconds Arrow would cut off
    if isinstance(value, np.datetime64):
        coarse = np.datetime_data(value.dtype)[0] in ("Y", "M", "W", "h", "m")  # units that Arrow does not have
        value = value.astype("datetime64[s]") if coarse else value
    try:
        column = pa.array(np.array([value]) if isinstance(value, np.datetime64) else [value])
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        raise FrameError(
            f"row: found {value!r} in {name}, expected a timestamp, a date or whole microseconds below 2^63"
        ) from None
    return int(as_microseconds(column, "row", f" in {name}", up)[0].as_py())


def _is_null(value: Any) -> bool:
    return value is None or type(value).__name__ in ("NAType", "NaTType") or not np.all(value == value)


def _key(values: Mapping[str, Any], name: str) -> Any:
    if name not in values:
        shown = ", ".join(map(str, list(values)[:20])) or "none"
        raise FrameError(f"row: found the columns {shown}; expected {name}, as the condition asks for equal keys")
    return values[name]


def _same(a: Any, b: Any) -> bool:
    """True if two keys are equal; nulls equal nothing."""
    return not _is_null(a) and not _is_null(b) and bool(np.all(a == b))


def _pair(a: Bar | None, b: Bar | None, condition: Condition, keys: tuple[Any, Any] | None = None) -> Explanation:
    """Why two times are a pair or none; keys: those of both, where the condition asks for equal ones."""
    if a is None or b is None:
        raise FrameError("row: found a null as a time, expected one of a and one of b")
    lo, hi, ct = condition.lo_us, condition.hi_us, condition.ct
    num, den = condition.ratio(a.begin_us, a.end_us, b.begin_us, b.end_us)
    least, most = b.begin_us - a.end_us, b.end_us - a.begin_us
    in_time, chance = condition.is_met(num, den), num / den
    is_pair = in_time and (keys is None or _same(*keys))
    why = [
        f"@b - @a from {time_text(least)} to {time_text(most)}, asked for {time_text(lo)} to {time_text(hi)}",
        f"probability {chance:.6g}, {float(ct):.6g} is needed",
    ]
    if keys is not None and not _same(*keys):
        why.append(f"the keys are {keys[0]!r} and {keys[1]!r}: only equal keys can be a pair")
    if not in_time and not num and max(least - hi, lo - most) >= 0:
        beyond = max(least - hi, lo - most)
        why.append(f"not possible: at least {time_text(beyond)} {'above' if least > hi else 'below'} the limits")
    for bar in (a, b):
        if bar.end_us - bar.begin_us > condition.longest_us:
            why.append(
                f"the time of {bar.name} is {time_text(bar.end_us - bar.begin_us)} long: none longer than "
                f"{time_text(condition.longest_us)} can be in a pair"
            )
    bars = a, replace(b, allowed_us=(a.begin_us + lo, a.end_us + hi))
    return Explanation("a pair" if is_pair else "no pair", bars, tuple(why), chance)


def _nearest(values: Mapping[str, Any], condition: Condition, keyed: bool, among: Any) -> Explanation:
    """The partners with the greatest probability, then those nearest to the middle of the condition; those with another
    key come last, where the condition asks for equal ones.
    """
    side = given(among, "among")
    if side.rows is None:
        raise FrameError(
            "among: found a frame of Spark, expected one on this machine: choose some rows and collect them"
        )
    own = interval_of(values, "")
    if own is None:
        raise FrameError("row: found a null as its time, expected one")
    t_min, t_max = times(side)
    keys: list[Any] = []
    if keyed:
        if "key" not in side.columns:
            raise FrameError(
                f"among: found the columns {', '.join(side.columns[:20])}; expected key, as in the condition"
            )
        keys = side.rows["key"].to_list()
    own_key = _key(values, "key") if keyed else None
    other = np.array([not _same(own_key, key) for key in keys], np.bool_) if keyed else np.zeros(len(t_min), np.bool_)
    apart = np.abs((t_min + t_max) / 2 - (own.begin_us + own.end_us) / 2 - condition.doubled_centre / 2)
    chances = np.round(_chances(own, t_min, t_max, condition), 12)  # equal ones are not told apart by errors of floats
    best = np.lexsort((apart, -chances, other))[:NEAREST]
    a = replace(own, name="a")
    bars, lines, found = [a], [], []
    for n in best.tolist():
        bar = Bar("b", int(t_min[n]), int(t_max[n]))
        one = _pair(a, bar, condition, (own_key, keys[n]) if keyed else None)
        found.append(one)
        bars.append(replace(one.bars[1], name=f"b, row {n}"))
        lines.append(f"row {n}: {one.headline}, {'; '.join(one.lines)}")
    headline = f"{found[0].headline} among {len(t_min)} rows" if found else "no partner at all"
    return Explanation(headline, tuple(bars), tuple(lines), found[0].probability if found else None)


def _chances(
    own: Bar, t_min: npt.NDArray[np.int64], t_max: npt.NDArray[np.int64], condition: Condition
) -> npt.NDArray[np.float64]:
    """The probability of each row to be a partner as far as times go."""
    from whenabouts_cloud.correlation.batch.matches_numpy import probability
    from whenabouts_cloud.correlation.batch.reach import Terms

    if not len(t_min):
        return np.empty(0)
    furthest = max(abs(own.begin_us), abs(own.end_us), int(np.abs(t_min).max()), int(np.abs(t_max).max()))
    if furthest >= TIME_LIMIT:
        raise FrameError(f"among: found a time {furthest} us from 1970 in it or in row, expected less than 2^60")
    lo, hi = condition.lo_us, condition.hi_us
    apart = np.abs((t_min - own.begin_us) + (t_max - own.end_us) - (lo + hi))
    length = np.full(len(t_min), own.end_us - own.begin_us, np.int64)
    return np.maximum(probability(apart, length, t_max - t_min, Terms(lo, hi, 1, 1)), 0.0)


def _match(values: Mapping[str, Any], pattern: Pattern) -> Explanation:
    found = [(place, interval_of(values, suffix(place))) for place in pattern.names]
    bars = tuple(replace(bar, name=place) for place, bar in found if bar is not None)
    if not bars:
        raise FrameError(f"row: found no event, expected one of {', '.join(pattern.names)}")
    why = [
        f"{b.name} - {a.name} from {time_text(b.begin_us - a.end_us)} to {time_text(b.end_us - a.begin_us)}"
        for a, b in pairwise(bars)
    ]
    first, last = min(bars, key=lambda bar: bar.end_us), max(bars, key=lambda bar: bar.begin_us)
    least = max(0, last.begin_us - first.end_us)
    most = max(bar.end_us for bar in bars) - min(bar.begin_us for bar in bars)
    why.append(f"all within {time_text(least)} to {time_text(most)}, asked for at most {time_text(pattern.window_us)}")
    why += [
        f"no {' or '.join(leaf.types)} where {leaf.text()} stands"
        for leaf in leaves(pattern.root)
        if isinstance(leaf, Negated)
    ]
    places = [n for n, (_, bar) in enumerate(found) if bar is not None]
    if _is_match(pattern, places, bars):
        return _with_probability("a match", values, bars, why, _needed(pattern))
    headline = "no match: these times do not keep order and window as surely as asked"
    return Explanation(headline, bars, tuple(why), None)


def _is_match(pattern: Pattern, places: list[int], bars: tuple[Bar, ...]) -> bool:
    """True if events with these times, at these places of a match, are one as far as order and window go."""
    from whenabouts_cloud.cep.methods import detected

    if pattern.mode == "causal":
        raise FrameError("pattern: found CAUSAL, expected CERTAIN, POSSIBLE or OVER: a row has no vector clocks")
    furthest = max(max(abs(bar.begin_us), abs(bar.end_us)) for bar in bars)
    if furthest >= TIME_LIMIT:
        raise FrameError(f"row: found a time {furthest} us from 1970, expected less than 2^60")
    plan = pattern.plan(pattern.types)
    low, high = (np.array(ends, np.int64) for ends in zip(*((bar.begin_us, bar.end_us) for bar in bars), strict=True))
    fitting = [one for one in plan.alternatives if sorted(one.columns) == places]
    if not fitting:
        return False
    # One type for each event, and no conditions and negations: they need what only the frame has.
    class_of = dict(zip(fitting[0].columns, fitting[0].classes, strict=True))
    types = np.array([min(plan.classes[class_of[place]].types) for place in places], np.int64)
    bare = replace(
        plan,
        classes=tuple(EventClass(one.types) for one in plan.classes),
        alternatives=tuple(replace(one, negations=(), conditions=()) for one in fitting),
        skip="none",
        attributes=(),
    )
    matches, _ = detected(bare, pattern.types, types, np.zeros(len(bars), np.int64), low, high, {})
    wanted = np.full(plan.width, -1, np.int64)
    wanted[places] = np.arange(len(places))
    return bool((matches == wanted).all(axis=1).any())


def _needed(pattern: Pattern) -> str:
    if pattern.mode == "over":
        return f"{float(pattern.probability):.6g} is needed"
    return "for some times" if pattern.mode == "possible" else "for all times"


def _verdict(values: Mapping[str, Any], verdict: Verdict) -> Explanation:
    bars = [
        replace(bar, name=f"{name} began")
        for name in streams_of(verdict.predicate)
        if (bar := interval_of(values, name)) is not None
    ]
    together = interval_of({BEGIN: values.get("t_min"), END: values.get("t_max")}, "")
    ended = interval_of({BEGIN: values.get("until_min"), END: values.get("until_max")}, "")
    if together is None:
        raise FrameError("row: found no t_min, expected a row of `verdicts`")
    why = [f"together from {_span(together, None)} on"]
    possible = certain = True
    if ended is not None:
        bars.append(replace(ended, name="first of them ended"))
        least, most = ended.begin_us - together.end_us, ended.end_us - together.begin_us
        why.append(f"for {time_text(max(least, 0))} to {time_text(max(most, 0))}")
        possible = verdict.causal or most >= 0
        certain = possible and (least > 0 or values.get("probability") == 1)
        if not possible:
            why.append("not possible: the first had ended before the last began")
        elif least <= 0:
            why.append("not certain from these times alone: the last may have begun after the first had ended")
    else:
        why.append("none of them ended")
    kind, is_so = ("certain", certain) if verdict.modality == "definitely" else ("possible", possible)
    kind = kind if is_so else f"not {kind}"
    headline = f"{kind}: {verdict.predicate.text()}"
    if not possible:
        return Explanation(headline, tuple(bars), tuple(why), None)
    return _with_probability(headline, values, tuple(bars), why, "")


def _with_probability(
    headline: str, values: Mapping[str, Any], bars: tuple[Bar, ...], why: list[str], needed: str
) -> Explanation:
    given_chance = values.get("probability")
    unknown = given_chance is None or type(given_chance).__name__ == "NAType" or given_chance != given_chance
    chance = None if unknown else float(given_chance)  # type: ignore[arg-type]
    shown = "without a probability" if chance is None else f"probability {chance:.6g}"
    why.append(f"{shown}, {needed}" if needed else shown)
    return Explanation(headline, bars, tuple(why), chance)


def _span(bar: Bar, day: str | None) -> str:
    """A time as text: numbers near 0 as microseconds, others as times of day."""
    if abs(bar.begin_us) < CALENDAR_US:
        begin, end = f"{bar.begin_us} us", f"{bar.end_us} us"
    else:
        begin, end = instant(bar.begin_us, day), instant(bar.end_us, day)
    return begin if bar.begin_us == bar.end_us else f"{begin} .. {end}"
