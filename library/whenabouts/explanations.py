"""Why a row is a result, or is none: its times, how far they are apart, the probability, as text and for a picture."""

import html
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from whenabouts.frames.kinds import FrameError, given
from whenabouts.frames.rows import suffix
from whenabouts.frames.times import BEGIN, END, MOMENT, as_microseconds, times
from whenabouts.pairs import read_condition
from whenabouts_cloud.display_time import date, instant
from whenabouts_cloud.language.pattern import Pattern
from whenabouts_cloud.pattern.condition import Condition
from whenabouts_cloud.pattern.elements import Negated, leaves
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
    pattern or verdict. among: a frame of b, where the row is one of a (t_min and t_max, or ts): explains its nearest
    partners, those that are none too.

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
    condition = text if isinstance(text, Condition) else read_condition(text)[0]
    if among is not None:
        return _nearest(values, condition, among)
    return _pair(interval_of(values, "a"), interval_of(values, "b"), condition)


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
        found = rows.head(2).rows(named=True)
    if len(found) != 1:
        raise FrameError(
            f"row: found {'no rows' if not found else 'more than one row'}, expected one, as in frame.head(1)"
        )
    return dict(found[0])


def interval_of(values: Mapping[str, Any], name: str) -> Bar | None:
    """The time of one part of a row, None where the row has no such part.

    Raises:
        FrameError: the row has no columns for it.
    """
    end = f"_{name}" if name else ""
    for begin, last in ((BEGIN + end, END + end), (MOMENT + end, MOMENT + end)):
        if begin in values:
            low, high = _microseconds(values[begin]), _microseconds(values.get(last, values[begin]))
            return None if low is None else Bar(name, low, low if high is None else high)
    shown = ", ".join(map(str, list(values)[:20])) or "none"
    raise FrameError(f"row: found the columns {shown}; expected {BEGIN + end} and {END + end}, or {MOMENT + end}")


def _microseconds(value: Any) -> int | None:
    if value is None or type(value).__name__ in ("NAType", "NaTType") or value != value:  # nan differs from itself
        return None
    if isinstance(value, float) and value.is_integer():
        return int(value)  # pandas makes whole numbers fractions in a row with others
    return int(as_microseconds(pa.array([value]), "row", "", up=False)[0].as_py())


def _pair(a: Bar | None, b: Bar | None, condition: Condition) -> Explanation:
    if a is None or b is None:
        raise FrameError("row: found a null as a time, expected one of a and one of b")
    lo, hi, ct = condition.lo_us, condition.hi_us, condition.ct
    num, den = condition.ratio(a.begin_us, a.end_us, b.begin_us, b.end_us)
    least, most = b.begin_us - a.end_us, b.end_us - a.begin_us
    is_pair, chance = condition.is_met(num, den), num / den
    why = [
        f"@b - @a from {time_text(least)} to {time_text(most)}, asked for {time_text(lo)} to {time_text(hi)}",
        f"probability {chance:.6g}, {float(ct):.6g} is needed",
    ]
    if not is_pair and not num and max(least - hi, lo - most) >= 0:
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


def _nearest(values: Mapping[str, Any], condition: Condition, among: Any) -> Explanation:
    """The partners with the greatest probability, then those nearest to the middle of the condition."""
    side = given(among, "among")
    if side.rows is None:
        raise FrameError(
            "among: found a frame of Spark, expected one on this machine: choose some rows and collect them"
        )
    own = interval_of(values, "")
    if own is None:
        raise FrameError("row: found a null as its time, expected one")
    t_min, t_max = times(side)
    middle = (t_min + t_max) / 2 - (own.begin_us + own.end_us) / 2
    nearest = np.argsort(np.abs(middle - condition.doubled_centre / 2), kind="stable")[: NEAREST * 10]
    a = replace(own, name="a")
    found = [(_pair(a, Bar("b", int(t_min[n]), int(t_max[n])), condition), int(n)) for n in nearest]
    found.sort(key=lambda one: -(one[0].probability or 0.0))
    bars, lines = [a], []
    for one, n in found[:NEAREST]:
        bars.append(replace(one.bars[1], name=f"b, row {n}"))
        lines += [f"row {n}: {one.headline}, {'; '.join(one.lines)}"]
    best = found[0][0] if found else None
    headline = "no partner at all" if best is None else f"{best.headline} among the nearest of {len(t_min)}"
    return Explanation(headline, tuple(bars), tuple(lines), best.probability if best else None)


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
    return _with_probability("a match", values, bars, why, _needed(pattern))


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
    if ended is not None:
        bars.append(replace(ended, name="first of them ended"))
        least, most = ended.begin_us - together.end_us, ended.end_us - together.begin_us
        why.append(f"for {time_text(max(least, 0))} to {time_text(max(most, 0))}")
        if least <= 0:
            why.append("not certain from these times alone: the last may have begun after the first had ended")
    else:
        why.append("none of them ended")
    kind = "certain" if verdict.modality == "definitely" else "possible"
    return _with_probability(f"{kind}: {verdict.predicate.text()}", values, tuple(bars), why, "")


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
