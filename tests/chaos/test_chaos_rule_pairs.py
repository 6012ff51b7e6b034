"""The definition of outer, best and shifted pairs: a hand-made wrong result is told, the right one is not."""

from fractions import Fraction

import pytest

from support.landed_readings import landed
from whenabouts_sim.chaos.checks.distance import horizons, limits_us, probability
from whenabouts_sim.chaos.checks.landed import Landed
from whenabouts_sim.chaos.checks.results import Row, Told, read_told
from whenabouts_sim.chaos.checks.rules.kept import Kept, broken_kept
from whenabouts_sim.chaos.checks.rules.pairs import broken_pairs
from whenabouts_sim.chaos.checks.rules.result_rows import broken_rows
from whenabouts_sim.chaos.parts.job_rules import PAIRS, rule
from whenabouts_sim.chaos.parts.rule_form import Form, StreamForm

LATER = 60_000_000
A = landed("dock/tags", 0, 0, 100)
NEAR, FAR = landed("door/tags", 1, 50, 150), landed("door/tags", 2, 5_000_000, 5_000_100)


def pairs(choice="", distance_ms=1000, **more):
    return rule(PAIRS, distance_ms, 80, 1000, form=Form(choice=choice, **more))


def ids(*readings):
    return tuple(one.identity for one in readings)


def broken(one, results, readings, late=(), complete_us=LATER):
    told = Told([ids(*some) for some in results], {reading.identity for reading in late})
    return list(broken_pairs(one, told, readings, complete_us))


def test_an_outer_join_has_each_pair_and_each_reading_without_one():
    outer = pairs("KEEP ALL a")
    assert broken(outer, [(A, NEAR)], (A, NEAR)) == []
    assert broken(outer, [(A,)], (A, FAR)) == []
    assert "was told as unmatched" in broken(outer, [(A,)], (A, NEAR))[-1]
    assert "as a pair, and the first as unmatched" in broken(outer, [(A,), (A, NEAR)], (A, NEAR))[0]
    assert "is unmatched, and was not told" in broken(outer, [], (A, FAR))[0]
    assert "is no result" in broken(outer, [(A,), (NEAR,)], (A, FAR, NEAR._replace(key="L")))[0]


def test_an_anti_join_has_no_pairs():
    anti = pairs("ONLY UNMATCHED a")
    assert broken(anti, [], (A, NEAR)) == []
    assert broken(anti, [(A,)], (A, FAR)) == []
    assert "was told, and is no result" in broken(anti, [(A, NEAR)], (A, NEAR))[0]
    assert "was told as unmatched" in broken(anti, [(A,)], (A, NEAR))[0]
    assert "was not told" in broken(anti, [], (A, FAR))[0]


def test_a_plain_rule_tells_no_reading_alone():
    assert "is no result" in broken(pairs(), [(A,)], (A, FAR))[0]


def test_a_reading_is_unmatched_when_no_partner_can_come_any_more():
    """After DISTANCE and the longest stamp of b: 1 s and 1.5 s."""
    end_us = A.t_max + 1_000_000 + 1_500_000
    assert broken(pairs("KEEP ALL a"), [], (A, FAR), complete_us=end_us) == []
    assert len(broken(pairs("KEEP ALL a"), [], (A, FAR), complete_us=end_us + 1)) == 1


def test_a_late_partner_may_come_when_a_reading_was_told_as_unmatched():
    """Either is right, but not both, and a partner in time binds a late reading as well."""
    outer = pairs("KEEP ALL a")
    for results in ([(A,)], [(A, NEAR)]):
        assert broken(outer, results, (A, NEAR), late=[NEAR]) == []
    assert len(broken(outer, [], (A, NEAR), late=[NEAR])) == 1
    assert broken(outer, [], (A, NEAR), late=[A]) == []
    assert "was told as unmatched" in broken(outer, [(A,)], (A, NEAR), late=[A])[0]


def test_a_stamp_beyond_its_length_may_miss_a_partner_that_was_forgotten():
    """b is 2 s long and ends 2 s after a; with LENGTH 300 ms a is kept for 1.3 s only."""
    short = (StreamForm(1000, 300), StreamForm(1000, 300))
    long = landed("door/tags", 1, 0, 2_000_000)
    assert broken(pairs(distance_ms=4000), [], (A, long)) != []
    assert broken(pairs(distance_ms=1900, streams=short), [], (A, long)) != []
    assert broken(pairs(distance_ms=1650, streams=short), [], (A, long)) == []


@pytest.mark.parametrize(("choice", "most"), [("NEAREST", 1), ("TOP 2", 2)])
def test_the_best_partners_are_the_most_probable_then_the_nearest(choice, most):
    """Three certain partners, each further away than the one before; a fourth is only probable."""
    b = [landed("door/tags", n, n * 1000, n * 1000 + 100) for n in range(1, 4)]
    b.append(landed("door/tags", 4, 0, 1_100_000))
    best, readings = [(A, one) for one in b[:most]], (A, *b)
    assert broken(pairs(choice), best, readings) == []
    assert "is one of the best" in broken(pairs(choice), best[:-1], readings)[0]
    assert "is one of the best" in broken(pairs(choice), [*best[:-1], (A, b[3])], readings)[0]
    assert "expected at most" in broken(pairs(choice), [*best, (A, b[most])], readings)[0]
    assert broken(pairs(choice), [], readings, complete_us=2_000_000) == []


def test_the_best_pairs_of_an_outer_join_leave_no_reading_alone():
    outer = pairs("NEAREST KEEP ALL a")
    assert broken(outer, [(A, NEAR)], (A, NEAR)) == []
    assert broken(outer, [(A,)], (A, FAR)) == []
    assert len(broken(outer, [], (A, FAR))) == 1


def test_an_offset_moves_the_limits_the_other_way():
    """Both streams are moved: b by 300 ms more than a."""
    streams = (StreamForm(1000, 1500, -100), StreamForm(1000, 1500, 200))
    one = pairs(between_ms=(-300, 1000), streams=streams)
    assert limits_us(one) == (-600_000, 700_000)
    early, late = landed("door/tags", 1, -600_000, -600_000), landed("door/tags", 1, 700_001, 700_001)
    point = A._replace(t_max=0)
    assert (probability(one, point, early), probability(one, point, late)) == (1, 0)
    assert probability(one, A, late._replace(t_min=700_050, t_max=700_050)) == Fraction(1, 2)
    assert broken(one, [(point, early)], (point, early)) == []
    assert "is no result" in broken(one, [(point, late)], (point, late))[0]


def test_readings_of_each_side_are_forgotten_by_both_frontiers():
    """Limits of 0 and 2 s, stamps of at most 300 and 600 ms."""
    one = pairs(between_ms=(0, 2000), streams=(StreamForm(1000, 300), StreamForm(1000, 600)))
    assert horizons(one, {"dock": 9_000_000}) is None
    a_us, b_us = 9_000_000 - 2_900_000, 9_000_000 - 2_900_000
    assert horizons(one, {"dock": 9_000_000, "door": 9_000_000}) == (a_us, b_us)
    assert horizons(one, {"dock": 9_000_000, "door": 8_000_000}) == (8_000_000 - 2_600_000, 8_000_000 - 2_900_000)
    old = Landed([landed("dock/tags", n, 0, a_us - n) for n in range(2)], [])
    frontiers = {"dock": 9_000_000, "door": 9_000_000}
    assert list(broken_kept(one, [Kept(0, 0, 1, frontiers)], old, [{"": 1}])) == []
    assert len(list(broken_kept(one, [Kept(0, 0, 2, frontiers)], old, [{"": 1}]))) == 1


def test_an_unmatched_reading_has_nothing_of_a_second_one():
    one = pairs("KEEP ALL a")
    columns = {"result_id": "1", "rule": PAIRS, "key": "K", "probability": None}
    for side in "ab":
        names = ("site", "gateway", "boot", "seq", "stream", "t_min", "t_max")
        columns |= {f"{side}_{name}": getattr(A, name) if side == "a" else None for name in names}

    def texts(**changed):
        told = Told([], set(), rows=[Row(ids(A), columns | changed)])
        return list(broken_rows(one, told, Landed([A], [])))

    assert texts() == []
    assert "with probability 0.0, expected None" in texts(probability=0.0)[0]
    assert "with b_seq 1, expected None" in texts(b_seq=1)[0]


def test_nothing_is_read_of_a_rule_that_has_published_nothing(tmp_path):
    assert read_told(tmp_path, pairs("KEEP ALL a")).results == []
