"""Predicts a CORRELATE rule: limits, lengths that can match, probe regions, how long readings are kept, memory.

Pure; times in microseconds. Bounds and shares after Sections 4 and 5 of the mathematics of interval correlation: for a base
interval of length w in [0, w], a partner whose maximum is below L_H or above R_H never matches, one with its maximum from
L_L to R_L matches certainly, and those between must be tested. With s(w1, w2) the least s at which U(0, w1) + U(0, w2)
reaches the confidence, and partners of lengths shortest to longest:

    L_H = lo + s(w, shortest)      R_L = w + hi + shortest - s(w, shortest)
    L_L = lo + s(w, longest)       R_H = w + hi + longest - s(w, longest)

The certain range is only valid if hi - lo >= w + longest. With an order by middles, as here, the part to test is
2 |Q(w, longest) - Q(w, shortest)| wide instead of longest - shortest (Q = s - (w1 + w2)/2): the quotient is the probe share.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from whenabouts_cloud.rules.model import CorrelateRule, decimal_text
from whenabouts_cloud.rules.placement import Placement, lengths_us
from whenabouts_protocol.streaming_join import StreamingJoin, quantile

SAMPLES = 64  # base lengths over which the probe share is averaged
# For each reading kept, measured with keys of 24 letters: an agent's buffers on CPython 3.11, and rows of the cloud's state.
EDGE_BYTES = 350
CLOUD_BYTES = 100


@dataclass(frozen=True)
class Bounds:
    """Ranges of partners' maxima relative to the minimum of a base interval of this length; sure_us None: no range."""

    length_us: int
    candidates_us: tuple[int, int]
    sure_us: tuple[int, int] | None


@dataclass(frozen=True)
class Side:
    """One side as base: its expected lengths, bounds for its shortest, middle and longest, and its kept readings."""

    alias: str
    stream: str
    shortest_us: int
    longest_us: int
    bounds: tuple[Bounds, ...]
    probe_share: float
    keep_us: int
    readings: int | None
    owner: str


@dataclass(frozen=True)
class Explanation:
    """All predictions about a rule before it runs; memory_bytes is None if a rate is not given.

    tags: conditions on keys, as they are written; words: what they read of the names in keys.
    """

    name: str
    text: str
    where: str
    place: str | None
    reason: str
    lo_us: int
    hi_us: int
    confidence: str
    longest_us: int
    sides: tuple[Side, Side]
    memory_bytes: int | None
    tags: tuple[str, ...] = ()
    words: tuple[str, ...] = ()


def explain(placement: Placement, rates_hz: Mapping[str, float]) -> Explanation:
    """Explain a placed CORRELATE rule; rates_hz: readings a second by the stream's name in the rules.

    Raises:
        ValueError: it is another kind of rule; `explain_events` explains patterns of events.
    """
    rule = placement.rule
    if not isinstance(rule, CorrelateRule):
        raise ValueError(f"found {rule.name}, a rule about an order of events, expected a CORRELATE rule")
    condition = rule.condition
    shift = rule.b.offset_us - rule.a.offset_us
    lo, hi, ct = condition.lo_us - shift, condition.hi_us - shift, condition.ct
    lengths = [
        lengths_us(stream, streams, condition.longest_us)
        for stream, streams in ((rule.a, placement.a), (rule.b, placement.b))
    ]
    reach = StreamingJoin(lo, hi, ct.numerator, ct.denominator, lengths[0], lengths[1]).reach
    keep_us = [
        max(0, _half(reach + lengths[1][1] + lo + hi)) + rule.b.delay_us,
        max(0, _half(reach + lengths[0][1] - lo - hi)) + rule.a.delay_us,
    ]
    sides = []
    for n, stream in enumerate((rule.a, rule.b)):
        limits = (lo, hi) if n == 0 else (-hi, -lo)
        rate = rates_hz.get(stream.name)
        sides.append(
            Side(
                (rule.a_alias, rule.b_alias)[n],
                stream.name,
                *lengths[n],
                _bounds(limits, ct, lengths[n], lengths[1 - n]),
                probe_share(lengths[n], lengths[1 - n], ct),
                keep_us[n],
                None if rate is None else int(rate * keep_us[n] / 1e6) + 1,
                stream.owner.strip(),
            )
        )
    a, b = sides
    readings = None if a.readings is None or b.readings is None else a.readings + b.readings
    per_reading = EDGE_BYTES if placement.where == "edge" else CLOUD_BYTES
    return Explanation(
        rule.name,
        rule.text(),
        placement.where,
        placement.a[0].place if placement.where == "edge" else None,
        placement.reason,
        lo,
        hi,
        decimal_text(ct),
        condition.longest_us,
        (a, b),
        None if readings is None else readings * per_reading,
        tuple(rule.tag_texts),
        tuple(dict.fromkeys(one.word for some in rule.tags for one in some if one.word != "key")),
    )


def probe_share(base: tuple[int, int], target: tuple[int, int], ct: Fraction) -> float:
    """Mean over base lengths of the part of longest - shortest that must be tested one by one, 0 to 1.

    Lengths are (shortest, longest).
    """
    shortest, longest = target
    if shortest == longest:
        return 0.0
    steps = range(SAMPLES + 1)
    lengths = [base[0] + (base[1] - base[0]) * n // SAMPLES for n in steps]
    widths = [abs(_doubled_q(w, longest, ct) - _doubled_q(w, shortest, ct)) for w in lengths]
    return sum(widths) / len(widths) / (longest - shortest)


def _bounds(
    limits: tuple[int, int], ct: Fraction, base: tuple[int, int], target: tuple[int, int]
) -> tuple[Bounds, ...]:
    (lo, hi), (shortest, longest) = limits, target
    bounds = []
    for w in sorted({base[0], sum(base) // 2, base[1]}):
        s_shortest, s_longest = (quantile(w, other, ct.numerator, ct.denominator) for other in (shortest, longest))
        sure = lo + s_longest, w + hi + shortest - s_shortest
        valid = hi - lo >= w + longest and sure[0] <= sure[1]
        # The quantile is rounded up to a whole microsecond, so the candidates begin and end one earlier and later.
        bounds.append(Bounds(w, (lo + s_shortest - 1, w + hi + longest - s_longest + 1), sure if valid else None))
    return tuple(bounds)


def _doubled_q(w1: int, w2: int, ct: Fraction) -> int:
    return 2 * quantile(w1, w2, ct.numerator, ct.denominator) - w1 - w2


def _half(doubled: int) -> int:
    return -(-doubled // 2)
