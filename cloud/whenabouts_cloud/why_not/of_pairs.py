"""Why a rule CORRELATE has no pair with a reading of a key around a time, or which pairs it has.

The answer is about the reading of the key nearest to the time, of either stream. Reads the readings of the key within twice
the reach of a pair, or a minute, and all readings of both streams within the reach of that reading: one of another key may
be what a person takes for its partner.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from whenabouts_cloud.cep.explain.explanation import Seen, duration, moment
from whenabouts_cloud.correlation.pairs import reach_us
from whenabouts_cloud.correlation.why_not import HEADLINES, Candidate, PairsExplanation, why_not_pair
from whenabouts_cloud.landing.schema import IDENTITY
from whenabouts_cloud.landing.store import Store
from whenabouts_cloud.rules.coverage import covered
from whenabouts_cloud.rules.model import CorrelateRule
from whenabouts_cloud.why_not.around import Around, reading_name, readings_around

LEAST_REACH_US = 60_000_000  # a person gives times to the second or worse
MOST_REACH_US = 86_400_000_000  # OVER with a very small probability reaches for years


@dataclass(frozen=True)
class PairsAnswer:
    """The explanation of the reading nearest to the time, None if there is none."""

    rule: CorrelateRule
    key: str
    time_us: int
    explanation: PairsExplanation | None
    around: Around

    def lines(self) -> list[str]:
        """The answer for people; the first line is the verdict."""
        rule, found = self.rule, self.explanation
        said = [HEADLINES["nothing" if found is None else found.verdict]]
        if found is not None:
            alias = (rule.a_alias, rule.b_alias)
            said.append(f"  {alias[found.side]}  {self._shown(found.side, found.focus)}{_late(found.late_us)}")
            for one in found.candidates:
                said.append(f"  {alias[1 - found.side]}  {self._shown(1 - found.side, one.row)}{_late(one.late_us)}")
                said.append(f"     {_between(rule, one)}{one.reason}")
            if found.lacks is not None:
                said.append(f"     {found.lacks}: it takes no part in the rule")
            elif found.side == 0 and rule.kind != "inner":
                said.append(f"  {self._outer(found.verdict)}")
        condition = rule.condition
        least, most = (f"{'-' if us < 0 else ''}{duration(abs(us))}" for us in (condition.lo_us, condition.hi_us))
        said.append(
            f"  a pair needs @{rule.b_alias} - @{rule.a_alias} from {least} to {most} "
            f"with probability {float(condition.ct):.12g}{', and one key' if rule.key_equal else ''}"
            f"{''.join(f', and {text}' for text in rule.tag_texts)}"
        )
        return [*said, *(f"  {line}" for line in self.around.lines())]

    def json(self) -> dict[str, Any]:
        """The answer as JSON values, with what a picture of it needs."""
        rule, found, condition = self.rule, self.explanation, self.rule.condition
        return {
            "kind": "pairs",
            "rule": rule.name,
            "key": self.key,
            "time_us": self.time_us,
            "verdict": "nothing" if found is None else found.verdict,
            "aliases": [rule.a_alias, rule.b_alias],
            "limits_us": [condition.lo_us, condition.hi_us],
            "threshold": float(condition.ct),
            "longest_us": min(condition.longest_us, (1 << 63) - 1),
            "key_equal": rule.key_equal,
            "tags": rule.tag_texts,
            "lacks": None if found is None else found.lacks,
            "top": rule.top_k,
            "results": rule.kind,
            "side": None if found is None else "ab"[found.side],
            "focus": None if found is None else self._reading(found.side, found.focus) | {"late_us": found.late_us},
            "candidates": [] if found is None else [self._candidate(1 - found.side, x) for x in found.candidates],
            "examined": 0 if found is None else found.examined,
            **self.around.said(),
        }

    def _candidate(self, side: int, one: Candidate) -> dict[str, Any]:
        shape = one.distribution
        return {
            "reading": self._reading(side, one.row),
            "verdict": one.verdict,
            "reason": one.reason,
            "probability": one.probability,
            "distribution": None
            if shape is None
            else {"corners_us": list(shape.corners_us), "height_per_us": shape.height_per_us},
            "late_us": one.late_us,
        }

    def _reading(self, side: int, row: Mapping[str, Any]) -> dict[str, Any]:
        """A reading with its moved stamp; `offset_us` less is the stamp as it landed."""
        stream = (self.rule.a, self.rule.b)[side]
        return {
            "stream": stream.name,
            "t_min": row["t_min"] + stream.offset_us,
            "t_max": row["t_max"] + stream.offset_us,
            "offset_us": stream.offset_us,
            "reading": reading_name(dict(row)),
            "lane": f"{row['site']}/{row['gateway']}/{row['stream']}",
            **{name: row[name] for name in (*IDENTITY, "key")},
        }

    def _shown(self, side: int, row: Mapping[str, Any]) -> str:
        stream = (self.rule.a, self.rule.b)[side]
        stamp = Seen(0, row["t_min"] + stream.offset_us, row["t_max"] + stream.offset_us)
        return f"{moment(stamp)}  {reading_name(dict(row))}"

    def _outer(self, verdict: str) -> str:
        """What the rule emits of a reading of a itself."""
        if verdict == "pair":
            return "it is in a pair, so it is not emitted" if self.rule.kind == "anti" else "it is emitted in its pairs"
        return "it is emitted as unmatched"


def why_not_pairs(landing: Store, rule: CorrelateRule, key: str, time_us: int) -> PairsAnswer:
    """Explain what became of the reading of a key nearest to a time.

    Raises:
        OSError: the landing cannot be listed.
    """
    streams, pair_us = (rule.a, rule.b), sum(map(abs, reach_us(rule)))
    wide_us = min(max(2 * pair_us, LEAST_REACH_US), MOST_REACH_US)
    own = readings_around(landing, streams, time_us - wide_us, time_us + wide_us, key)
    found = _nearest(rule, own.rows, time_us)
    if found is None:
        return PairsAnswer(rule, key, time_us, None, own)
    side, focus = found
    if focus["t_max"] - focus["t_min"] <= rule.condition.longest_us:  # else it is in no pair, and may span all time
        # For TOP also the other partners of what may be a partner.
        us = min((1 if rule.top_k is None else 2) * pair_us, MOST_REACH_US)
        near = readings_around(landing, streams, focus["t_min"] - us, focus["t_max"] + us)
        if not rule.key_equal and us < wide_us and not covered(streams, near.rows)[:, 1 - side].any():
            near = readings_around(landing, streams, focus["t_min"] - wide_us, focus["t_max"] + wide_us)
        own = own.joined(near)
    sides = covered(streams, own.rows)
    a, b = (own.rows.filter(pa.array(sides[:, n])) for n in range(2))
    return PairsAnswer(rule, key, time_us, why_not_pair(rule, side, focus, a, b), own)


def _nearest(rule: CorrelateRule, rows: pa.Table, time_us: int) -> tuple[int, dict[str, Any]] | None:
    """The side and the reading nearest to a time, by moved stamps; of equal ones the earliest, and that of a."""
    sides = covered((rule.a, rule.b), rows)
    best = []
    for side, stream in enumerate((rule.a, rule.b)):
        at = np.flatnonzero(sides[:, side])
        if len(at):
            # As floats: stamps from another program may be anywhere in int64.
            first, last = (
                rows[name].to_numpy()[at].astype(np.float64) + (stream.offset_us - time_us)
                for name in ("t_min", "t_max")
            )
            distance = np.maximum(np.maximum(first, -last), 0)
            nearest = np.lexsort((first, distance))[0]
            best.append((distance[nearest], first[nearest], side, int(at[nearest])))
    if not best:
        return None
    _, _, side, row = min(best)
    return side, rows.slice(row, 1).to_pylist()[0]


def _between(rule: CorrelateRule, one: Candidate) -> str:
    if one.distribution is None:
        return ""
    first, last = one.distribution.corners_us[0], one.distribution.corners_us[-1]
    low, high = (f"{'-' if us < 0 else ''}{duration(abs(us))}" for us in (first, last))
    span = low if first == last else f"{low} .. {high}"
    return f"@{rule.b_alias} - @{rule.a_alias} {span}: "


def _late(late_us: int | None) -> str:
    return "" if late_us is None else f"  landed {duration(late_us)} after its DELAY, so it may have come too late"
