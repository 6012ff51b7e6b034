"""The judge, against tiny time lines drawn by hand and against the probability formulas of the engines."""

import json
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from whenabouts_protocol import ratio_within
from whenabouts_sim.judge.placement import Landed, place
from whenabouts_sim.judge.truth import (
    PairScore,
    Rule,
    naive_pairs,
    rule_pairs,
    summarise,
    true_pairs,
    within_probability,
)
from whenabouts_sim.world.clocks import GatewayClock
from whenabouts_sim.world.emitted import EmittedFrame, read_emitted
from whenabouts_sim.world.world import DOCK, DOOR, READERS

RIGHT = GatewayClock(0)
CLOCKS = dict.fromkeys(("dock-1", "gate-1", "door-1"), RIGHT)


def seen(reader, number, true_us, key="A", damaged="", last_byte_us=None) -> EmittedFrame:
    return EmittedFrame(reader.name, number, key, true_us, true_us if last_byte_us is None else last_byte_us, damaged)


def row(reader, seq, t_min, t_max, key="A", boot=1) -> Landed:
    return Landed(reader.gateway, reader.stream, key, boot, seq, t_min, t_max)


def placed(landed, emitted, clocks=CLOCKS) -> dict[int, int]:
    """Sequence number of each placed reading to the number of its sighting."""
    where = place(landed, emitted, READERS, clocks).sighting_of
    return {seq: number for (_, _, seq), (_, number) in where.items()}


def test_readings_are_placed_on_the_sightings_in_their_stamps():
    """
    sightings   0         1                    2
                x         x                    x
    readings  [--0--]  [----1----]        [----2----]
    """
    emitted = [seen(DOCK, 0, 10), seen(DOCK, 1, 30), seen(DOCK, 2, 80)]
    landed = [row(DOCK, 0, 5, 15), row(DOCK, 1, 25, 40), row(DOCK, 2, 70, 90)]
    assert placed(landed, emitted) == {0: 0, 1: 1, 2: 2}


def test_a_lost_reading_does_not_shift_the_others():
    """
    sightings   0     1     2
                x     x     x
    readings  [--0--------]            1 is lost, both stamps are wide
                    [--1--------]
    """
    emitted = [seen(DOCK, 0, 10), seen(DOCK, 1, 20), seen(DOCK, 2, 30)]
    landed = [row(DOCK, 0, 0, 22), row(DOCK, 1, 19, 41)]
    assert placed(landed, emitted) == {0: 0, 1: 2}


def test_as_many_readings_as_possible_are_placed():
    """
    sightings   0     1
                x     x
    readings  [----0----]        placing 0 on 1 would leave nothing for 1
                 [--1---]
    """
    emitted = [seen(DOCK, 0, 10), seen(DOCK, 1, 20)]
    assert placed([row(DOCK, 0, 5, 35), row(DOCK, 1, 15, 22)], emitted) == {0: 0, 1: 1}


def test_an_undamaged_frame_is_the_likelier_origin():
    """Of two sightings in one stamp, the one whose frame left undamaged is taken, though the other is nearer."""
    emitted = [seen(DOCK, 0, 10, damaged="flipped"), seen(DOCK, 1, 20)]
    assert placed([row(DOCK, 0, 0, 22)], emitted) == {0: 1}


def test_nearness_is_judged_by_the_gateways_own_clock():
    """
    true        0    1
                x    x
    clock shows      0    1      10 us fast: a stamp around 20 means the sighting at 10
    reading   [------+------]
    """
    emitted = [seen(DOCK, 0, 10), seen(DOCK, 1, 20)]
    fast = {**CLOCKS, "dock-1": GatewayClock(0, offset_us=10, base_bound_us=10)}
    assert placed([row(DOCK, 0, 5, 35)], emitted, fast) == {0: 0}
    assert placed([row(DOCK, 0, 5, 35)], emitted) == {0: 1}


def test_what_cannot_be_placed_is_listed_separately():
    """Repeated identity, stamp without its sighting, one reading too many, a key nobody carried, an unknown gateway."""
    emitted = [seen(DOCK, 0, 10)]
    violation, surplus, invented = row(DOCK, 1, 11, 20), row(DOCK, 2, 5, 15), row(DOCK, 3, 5, 15, key="B")
    foreign = Landed("dock-9", "dock/tags", "A", 1, 0, 5, 15)
    landed = [row(DOCK, 0, 10, 10), row(DOCK, 0, 10, 10), violation, surplus, invented, foreign]
    result = place(landed, emitted, READERS, CLOCKS)
    assert len(result.sighting_of) == 1
    assert result.repeated == 1
    assert result.violations == (violation,)
    assert len(result.surplus) == 1
    assert result.invented == (invented, foreign)


def test_a_reboot_orders_readings_after_the_boot_before():
    """Boot 2 seq 0 comes after boot 1 seq 5."""
    emitted = [seen(DOCK, 0, 10), seen(DOCK, 1, 20)]
    result = place([row(DOCK, 0, 0, 30, boot=2), row(DOCK, 5, 0, 30, boot=1)], emitted, READERS, CLOCKS)
    assert result.sighting_of == {("dock-1", 1, 5): ("dock-1", 0), ("dock-1", 2, 0): ("dock-1", 1)}


def test_true_pairs_include_the_tie_and_need_equal_keys():
    """
    dock   A@100
    door         A@110 (d = 10: a tie)  A@111 (one too far)  B@105  A@90 (the other way round)
    """
    a = [seen(DOCK, 0, 100)]
    b = [seen(DOOR, 0, 110), seen(DOOR, 1, 111), seen(DOOR, 2, 105, key="B"), seen(DOOR, 3, 90)]
    assert true_pairs(a, b, 10) == {(("dock-1", 0), ("door-1", 0)), (("dock-1", 0), ("door-1", 3))}


def test_the_naive_join_believes_the_arrival_by_a_wrong_clock():
    """
    true     dock A@100 ........ door A@120     20 apart, d = 10: no pair
    clocks   dock +15 fast, door right, each frame arrives 3 later: 118 and 123, 5 apart: a false one
    """
    a, b = [seen(DOCK, 0, 100, last_byte_us=103)], [seen(DOOR, 0, 120, last_byte_us=123)]
    clocks = {"dock-1": GatewayClock(0, offset_us=15, base_bound_us=15), "door-1": RIGHT}
    assert true_pairs(a, b, 10) == set()
    assert naive_pairs(a, b, 10, clocks) == {(("dock-1", 0), ("door-1", 0))}


short = st.integers(0, 12)
starts = st.integers(-30, 30)


@given(a1=starts, w1=short, a2=starts, w2=short, d=st.integers(0, 30))
def test_the_slow_probability_equals_the_engines_formula(a1, w1, a2, w2, d):
    """Two independent derivations, exactly equal as fractions, points and ties included."""
    assert within_probability(a1, a1 + w1, a2, a2 + w2, d) == Fraction(*ratio_within(a1, a1 + w1, a2, a2 + w2, d))


def test_a_pair_at_exactly_the_confidence_threshold_is_a_result():
    """P = 1/5 for [0, 100] and [40, 41] within 10: in at ct = 1/5, out just above."""
    a, b = [row(DOCK, 0, 0, 100)], [row(DOOR, 0, 40, 41)]
    assert rule_pairs(a, b, 10, Fraction("0.2")) == {(("dock-1", 1, 0), ("door-1", 1, 0))}
    assert rule_pairs(a, b, 10, Fraction("0.2000001")) == set()


def test_a_whole_run_in_numbers():
    """
    dock   A0@100   B1@200   C2@300 (damaged, lost)   D3@400 (lost)
    door   A0@105   B1@290                            D2@404
    true pairs at d = 10: A, D; D never landed at the dock; the job reports A and, wrongly, B
    """
    emitted = [
        seen(DOCK, 0, 100, "A"),
        seen(DOCK, 1, 200, "B"),
        seen(DOCK, 2, 300, "C", damaged="glued"),
        seen(DOCK, 3, 400, "D"),
        seen(DOOR, 0, 105, "A"),
        seen(DOOR, 1, 290, "B"),
        seen(DOOR, 2, 404, "D"),
    ]
    landed = [
        row(DOCK, 0, 100, 100, "A"),
        row(DOCK, 1, 195, 205, "B"),
        row(DOCK, 1, 195, 205, "B"),
        row(DOOR, 0, 105, 105, "A"),
        row(DOOR, 1, 285, 295, "B"),
        row(DOOR, 2, 404, 404, "D"),
    ]
    job = {(("dock-1", 1, 0), ("door-1", 1, 0)), (("dock-1", 1, 1), ("door-1", 1, 1))}
    summary = summarise(Rule(DOCK, DOOR, 10, Fraction("0.8")), emitted, landed, job, READERS, CLOCKS)
    assert (summary.made, summary.damaged, summary.landed, summary.repeated) == (7, 1, 5, 1)
    assert (summary.lost, summary.damaged_lost, summary.damage) == (1, 1, {"glued": 1})
    assert (summary.violations, summary.surplus, summary.invented) == (0, 0, 0)
    assert (summary.true_pairs, summary.missed_not_landed) == (2, 1)
    assert summary.job == PairScore(true_reported=1, false=1, missed=0)
    assert summary.naive == summary.ideal == PairScore(true_reported=1, false=0, missed=0)
    assert (summary.expected_pairs, summary.unexpected, summary.absent) == (1, 1, 0)
    assert json.loads(json.dumps(summary.as_dict()))["job"] == {"true_reported": 1, "false": 1, "missed": 0}


def test_the_emission_log_reads_back_in_order_of_time(tmp_path):
    """JSON lines of several readers, merged."""
    dock, door = seen(DOCK, 0, 20, damaged="late"), seen(DOOR, 0, 10)
    (tmp_path / "dock").write_text(dock.to_json() + "\n")
    (tmp_path / "door").write_text(door.to_json() + "\n")
    assert read_emitted([tmp_path / "dock", tmp_path / "door"]) == [door, dock]
