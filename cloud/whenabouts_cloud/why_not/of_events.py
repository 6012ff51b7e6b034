"""Why a rule about an order of events has no match for a key around a time, or which match it has.

Reads only what lies within two windows of the time. The answer is about the event nearest to the time.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from whenabouts_cloud.cep.explain.explanation import MAX_EVENTS, Explanation, Seen, lines
from whenabouts_cloud.cep.explain.why_not import why_not
from whenabouts_cloud.cep.shard.events import beyond_time
from whenabouts_cloud.cep.shard.views import MARK, Views, runs_of
from whenabouts_cloud.cep.uncertain.causal import Clocks
from whenabouts_cloud.epc.rule_words import word_of
from whenabouts_cloud.landing.schema import SCHEMA, json_in
from whenabouts_cloud.landing.selection import Selection
from whenabouts_cloud.landing.store import Store
from whenabouts_cloud.pattern.expressions import column_kind, split_column
from whenabouts_cloud.rules.model import CepRule
from whenabouts_cloud.why_not.around import (
    MAX_ROWS,
    Around,
    TooManyReadingsError,
    nearest,
    reading_name,
    readings_around,
)

MAX_READ = 4 * MAX_EVENTS  # readings that become events; a reading can be one of a stream that a condition leaves out


@dataclass(frozen=True)
class EventsAnswer:
    """The explanation for a rule, and the reading of each event in it.

    `beyond_time` readings have stamps that are no times.
    """

    rule: CepRule
    key: str
    explanation: Explanation
    readings: Mapping[Seen, dict[str, Any]]
    around: Around
    beyond_time: int

    def lines(self) -> list[str]:
        """The answer for people; the first line is the verdict."""
        said = lines(self.explanation)
        if self.beyond_time:
            said.append(f"  {self.beyond_time} readings have stamps that are no times: they are in no match")
        return [*said, *(f"  {line}" for line in self.around.lines())]

    def json(self) -> dict[str, Any]:
        """The answer as JSON values, with what a picture of it needs."""
        found, pattern = self.explanation, self.rule.pattern
        return {
            "kind": "events",
            "rule": self.rule.name,
            "key": self.key,
            "time_us": found.time_us,
            "verdict": found.verdict,
            "probability": found.probability,
            "threshold": float(pattern.probability) if pattern.mode == "over" else None,
            "mode": pattern.mode,
            "window_us": pattern.window_us,
            "strict_window": pattern.strict_window,
            "focus": self._event(found.focus),
            "elements": [
                {
                    "name": e.name,
                    "event": self._event(e.event),
                    "failure": e.failure,
                    "reason": e.reason,
                    "room_us": None if e.room is None else list(e.room),
                }
                for e in found.elements
            ],
            "blockers": [
                {"negation": b.negation, "event": self._event(b.event), "where": b.where} for b in found.blockers
            ],
            "events": [self._event(one) for one in found.examined],
            "left_out": found.left_out,
            "searched_all": found.searched_all,
            "beyond_time": self.beyond_time,
            **self.around.said(),
        }

    def _event(self, one: Seen | None) -> dict[str, Any] | None:
        """An event with its moved stamp; `offset_us` less is the stamp of its reading."""
        if one is None:
            return None
        row = self.readings[one]
        return {
            "stream": self.rule.type_names[one.type_code],
            "t_min": one.t_min,
            "t_max": one.t_max,
            "offset_us": self.rule.streams[one.type_code].offset_us,
            "reading": one.name,
            "lane": f"{row['site']}/{row['gateway']}/{row['stream']}",
            **{name: row[name] for name in ("site", "gateway", "boot", "seq", "key")},
        }


def why_not_events(landing: Store, rule: CepRule, key: str, time_us: int) -> EventsAnswer:
    """Explain what became of the event of a key nearest to a time.

    Raises:
        TooManyReadingsError: for CAUSAL, too many readings hold views.
        OSError: the landing cannot be listed.
    """
    streams, pattern = rule.streams, rule.pattern
    reach = 2 * pattern.window_us + rule.longest_us + max(abs(s.offset_us) for s in streams)
    around = readings_around(landing, streams, time_us - reach, time_us + reach, key if pattern.per_key else None)
    beyond = beyond_time(around.rows)
    rows, left_out = nearest(around.rows.filter(pa.array(~beyond)), time_us, MAX_READ)
    events = seen(rule, rows.to_pylist(), key)
    clocks = clocks_of(landing, [row for _, row in events]) if pattern.mode == "causal" else None
    found = why_not(pattern, rule.type_names, [one for one, _ in events], time_us, rule.longest_us, clocks)
    if left_out:
        found = replace(found, left_out=found.left_out + left_out)
    return EventsAnswer(rule, key, found, dict(events), around, int(beyond.sum()))


def clocks_of(landing: Store, rows: list[dict[str, Any]]) -> Clocks:
    """Return the vector clocks of readings; their counts refer to views, which state readings of the same boots define.

    Raises:
        TooManyReadingsError: more than MAX_ROWS readings hold views.
    """
    boots = sorted({row["boot"] for row in rows})
    views, count = Views(), 0
    for states in Selection(
        landing, SCHEMA, pc.field("boot").isin(boots) & pc.match_substring(pc.field("attrs"), MARK)
    ):
        count += states.num_rows
        if count > MAX_ROWS:
            raise TooManyReadingsError(
                f"found more than {MAX_ROWS} readings with views, expected at most that many; "
                "use a copy of the landing that holds only the hours around TIME"
            )
        views.add(runs_of(states))
    return views.clocks_of(pa.Table.from_pylist(rows, schema=SCHEMA))


def seen(rule: CepRule, rows: list[dict[str, Any]], key: str) -> list[tuple[Seen, dict[str, Any]]]:
    """Return the readings as events of the rule, each with its reading; one event for each stream that covers a reading."""
    columns = [name for name in rule.plan().attributes if name not in ("t_min", "t_max")]
    codes: dict[str, int] = {}
    events = []
    for row in rows:
        attributes = json_in(row["attrs"])
        fields = row | {"value": json_in(row["value"])}
        numbers = {
            name: column_of(fields, attributes if isinstance(attributes, dict) else {}, name, codes) for name in columns
        }
        for code, stream in enumerate(rule.streams):
            if stream.matches(row["site"], row["gateway"], row["stream"]):
                t_min, t_max = (row[side] + stream.offset_us for side in ("t_min", "t_max"))
                events.append((Seen(code, t_min, t_max, reading_name(row), numbers, row["key"] == key), row))
    return events


def column_of(fields: Mapping[str, Any], attributes: Mapping[str, Any], column: str, codes: dict[str, int]) -> float:
    """Value of a column for conditions, as in `pattern.expressions`; each text gets a code, by which texts are compared."""
    name, word = split_column(column)
    kind = column_kind(name)
    if kind == "field":
        value = fields[name]
    else:
        value = word_of(fields["key"], name) if kind == "word" else attributes.get(name.removeprefix("attrs."))
    if value is None:
        return float("nan")
    if word is not None:
        return float(value == word)
    if isinstance(value, str):
        return float(codes.setdefault(value, len(codes)))
    try:
        return float(value) if isinstance(value, int | float) else float("nan")
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")
