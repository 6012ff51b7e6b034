"""The explanation of a rule before it runs, compared with the operator and brute force."""

import math
from fractions import Fraction

import pytest

from whenabouts_cloud.pattern.condition import Condition
from whenabouts_cloud.rules import parse_rules
from whenabouts_cloud.rules.explain_events import explain_events
from whenabouts_cloud.rules.explain_pairs import explain, probe_share
from whenabouts_cloud.rules.explain_text import lines
from whenabouts_cloud.rules.placement import GatewayStream, place

MS = 1000
TEXT = """
STREAM x FROM "x" DELAY 20 us LENGTH 2 us .. 9 us
STREAM y FROM "y" DELAY 50 us LENGTH 3 us .. 14 us OFFSET 7 us
RULE r CORRELATE x AS a, y AS b WHERE {predicate} OVER {ct}
"""


def explained(predicate, ct, rates=None):
    return explain(place(parse_rules(TEXT.format(predicate=predicate, ct=ct)).rules, [])[0], rates or {})


def condition_of(e):
    """The condition on the stamps as they are, without offset, by the limits that the explanation gives."""
    return Condition("between", lo=e.lo_us, hi=e.hi_us, confidence=e.confidence)


@pytest.mark.parametrize("ct", ["0.8", "0.5", "0.2", "1"])
@pytest.mark.parametrize(
    "predicate", ["|@a - @b| <= 15 us", "@b - @a IN [3 us, 40 us]", "@a + 5 us >= @b WITHIN 60 us", "|@a - @b| <= 4 us"]
)
def test_bounds_hold_for_every_partner(predicate, ct):
    """No partner outside the candidates matches, every partner in the sure range does, for each sample length and length."""
    e = explained(predicate, ct)
    holds = condition_of(e).holds
    for n, side in enumerate(e.sides):
        other = e.sides[1 - n]
        assert [b.length_us for b in side.bounds] == sorted(
            {side.shortest_us, (side.shortest_us + side.longest_us) // 2, side.longest_us}
        )
        for bounds in side.bounds:
            base = (0, bounds.length_us)
            for w in range(other.shortest_us, other.longest_us + 1):
                for t_max in range(-90, 90):
                    partner = (t_max - w, t_max)
                    matches = holds(*base, *partner) if n == 0 else holds(*partner, *base)
                    if not bounds.candidates_us[0] <= t_max <= bounds.candidates_us[1]:
                        assert not matches
                    if bounds.sure_us and bounds.sure_us[0] <= t_max <= bounds.sure_us[1]:
                        assert matches


def test_the_offset_and_the_limits_are_those_that_run():
    """7 us of y's offset move both limits; the sure range is missing where the condition is shorter than both stamps."""
    assert (explained("@b - @a IN [3 us, 40 us]", "0.8").lo_us, explained("|@a - @b| <= 15 us", "1").hi_us) == (-4, 8)
    assert all(b.sure_us is None for side in explained("|@a - @b| <= 4 us", "1").sides for b in side.bounds)
    e = explained("|@a - @b| <= 15 us", "0.8")
    assert (e.where, e.place, e.confidence, e.longest_us) == ("cloud", None, "0.8", 37)
    assert "@b| <= 15 us OVER 0.8" in e.text


def test_readings_are_kept_as_long_as_explained():
    """A partner that the frontier still lets come after that time matches none that was forgotten."""
    e = explained("|@a - @b| <= 15 us", "0.5")
    holds = condition_of(e).holds
    for n, side in enumerate(e.sides):
        other = e.sides[1 - n]
        delay_us = 50 if n == 0 else 20
        kept_us = side.keep_us - delay_us
        one = (1000, 1000 + side.longest_us)
        middle = (one[0] + one[1]) // 2
        for w in range(other.shortest_us, other.longest_us + 1):
            for late in range(1, 40):
                t_max = middle + kept_us + late
                partner = (t_max - w, t_max)
                assert not (holds(*one, *partner) if n == 0 else holds(*partner, *one))


@pytest.mark.parametrize(
    ("ct", "share"),
    [(".05", .65), (".1", .51), (".2", .33), (".3", .21), (".4", .10), (".5", 0), (".6", .10), (".7", .21), (".8", .33),
     (".9", .51), (".95", .65), (".99", .84), ("1", 1)],
)  # fmt: skip
def test_the_probe_share_is_that_of_the_published_table(ct, share):
    """Mean over base lengths of 20 to 300 ms, pi 300 ms, rho 20 ms."""
    lengths = (20 * MS, 300 * MS)
    assert math.isclose(probe_share(lengths, lengths, Fraction(ct)), share, abs_tol=0.006)


def test_memory_needs_the_rates():
    """Rate times time kept, both sides; no memory is given without a rate of each."""
    assert explained("|@a - @b| <= 15 us", "0.8", {"x": 1e6}).memory_bytes is None
    e = explained("|@a - @b| <= 15 us", "0.8", {"x": 1e6, "y": 2e6})
    assert e.sides[0].readings == e.sides[0].keep_us + 1
    assert e.sides[1].readings == 2 * e.sides[1].keep_us + 1
    assert e.memory_bytes == 100 * (e.sides[0].readings + e.sides[1].readings)


def test_conditions_on_tags_are_told_in_words():
    """For pairs and for events; only where names are read it is told what they are."""
    pairs = explained("|@a - @b| <= 5 us", '0.5 AND a.gtin = "80614141123458" AND b.key != "hot"')
    said = lines(pairs)
    assert '  only where   a.gtin = "80614141123458"' in said
    assert '  only where   b.key != "hot"' in said
    assert next(line for line in said if line.startswith("  names")).startswith(
        "  names        gtin: what the EPC in a key"
    )
    assert not any(
        line.startswith("  names") for line in lines(explained("|@a - @b| <= 5 us", '0.5 AND a.key = "hot"'))
    )
    streams = TEXT.partition("RULE")[0]
    [rule] = parse_rules(
        f"{streams} RULE r SEQ(x a, y b) WITHIN 1 s PER key WHERE a.gtin = b.gtin AND b.epc_scheme"
    ).rules
    assert any(line.startswith("  names        gtin, epc_scheme: ") for line in lines(explain_events(rule)))


def test_a_rule_at_the_edge_names_its_gateway():
    """With the gateway, and the announced lengths where they are shorter than the declared ones."""
    [rule] = parse_rules(TEXT.format(predicate="|@a - @b| <= 15 us", ct="0.8")).rules
    e = explain(place([rule], [GatewayStream("x", "g", "s", 5), GatewayStream("y", "g", "s", 99)])[0], {"x": 1, "y": 1})
    assert (e.where, e.place) == ("edge", "s/g")
    assert [(s.shortest_us, s.longest_us) for s in e.sides] == [(2, 5), (3, 14)]
    assert e.memory_bytes == 350 * 2
