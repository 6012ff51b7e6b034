"""Explanations of pairs agree with the kernel: a pair is shown exactly where there is one, with its probability."""

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark.cases import RULES, random_readings, rule, sides
from support.search import examples, seeds
from whenabouts_cloud.correlation import why_not as under_test
from whenabouts_cloud.correlation.pairs import correlate, without_repeats
from whenabouts_cloud.correlation.why_not import ORDER, distribution, why_not_pair
from whenabouts_protocol.probability import ratio_between

WHOLE = 1000  # candidates, more than there are


def identity(row, prefix=""):
    return tuple(row[f"{prefix}{name}"] for name in ("site", "gateway", "boot", "seq"))


@pytest.fixture(autouse=True)
def _every_candidate(monkeypatch):
    monkeypatch.setattr(under_test, "MAX_CANDIDATES", WHOLE)


@pytest.mark.parametrize("seed", seeds(40))
@pytest.mark.parametrize("top_k", [None, 1, 2])
def test_every_reading_is_explained_as_the_rule_decides(seed, top_k):
    """Its partners are those of the results; all others lack something, and the verdict is that of the nearest."""
    job = replace(rule(list(RULES)[seed % len(RULES)]), top_k=top_k)
    a, b = map(without_repeats, sides(random_readings(seed, 60), job))
    results = correlate(job, a, b).to_pylist()
    found = {(identity(row, "a_"), identity(row, "b_")): row["probability"] for row in results}
    for side, own in enumerate((a, b)):
        for focus in own.to_pylist():
            answer = why_not_pair(job, side, focus, a, b)
            mine = {pair: p for pair, p in found.items() if pair[side] == identity(focus)}
            shown = {}
            for one in answer.candidates:
                both = (focus, one.row) if side == 0 else (one.row, focus)
                if one.verdict == "pair":
                    shown[tuple(map(identity, both))] = one.probability
                elif one.verdict == "beaten":
                    assert top_k is not None
            assert shown == pytest.approx(mine)
            assert (answer.verdict == "pair") == bool(mine)
            verdicts = [ORDER.index(one.verdict) for one in answer.candidates]
            assert verdicts == sorted(verdicts)
            assert answer.verdict == (answer.candidates[0].verdict if answer.candidates else "missing")


stamps = st.tuples(st.integers(-20, 20), st.integers(0, 12)).map(lambda x: (x[0], x[0] + x[1]))


@settings(max_examples=examples(400))
@given(stamps, stamps, st.integers(-30, 30), st.integers(0, 30))
def test_the_area_of_the_trapezoid_within_the_limits_is_the_probability(a, b, lo, width):
    """Exact, from the corners alone; where all corners coincide, the difference is exactly that."""
    shape, hi = distribution(*a, *b), lo + width
    p = Fraction(*ratio_between(*a, *b, lo, hi))
    first, up, down, last = shape.corners_us
    if shape.height_per_us is None:
        assert first == last
        assert p == (lo <= first <= hi)
        return
    height = Fraction(1, down - first)
    assert shape.height_per_us == float(height)

    def below(z):
        """Area left of z."""
        rising = Fraction(min(max(z - first, 0), up - first) ** 2, 2 * (up - first)) if up > first else 0
        falling = Fraction(min(max(last - z, 0), last - down) ** 2, 2 * (last - down)) if last > down else 0
        flat = min(max(z, up), down) - up
        return height * (rising + flat + Fraction(last - down, 2) - falling)

    assert below(last) == 1
    assert p == below(hi) - below(lo)
