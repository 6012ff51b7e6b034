"""The laws: each is told when it does not hold, and is silent otherwise."""

from dataclasses import replace

import pytest

from whenabouts_protocol import Heartbeat
from whenabouts_sim.chaos.checks.landed import Landed, LandedFrontier, LandedReading, latest
from whenabouts_sim.chaos.checks.lateness import broken_job_frontiers, broken_lateness, effective_at, steps_of
from whenabouts_sim.chaos.checks.laws import broken_laws, future_frontiers
from whenabouts_sim.chaos.checks.promises import broken_promises
from whenabouts_sim.chaos.checks.results import Told
from whenabouts_sim.chaos.checks.rules.definition import broken_results
from whenabouts_sim.chaos.network.overheard import Said
from whenabouts_sim.chaos.parts.job_rules import MATCHES, PAIRS, engine_of, rule
from whenabouts_sim.chaos.parts.landing_files import FileId
from whenabouts_sim.chaos.parts.rule_form import Form
from whenabouts_sim.chaos.schedule.fault import Fault
from whenabouts_sim.chaos.schedule.schedule import draw
from whenabouts_sim.readers.line import temperature
from whenabouts_sim.world.clocks import EPOCH_US
from whenabouts_sim.world.world import Sighting

AT_US = 1_000_000
SCHEDULE = replace(draw(1), sightings=(Sighting(AT_US, "dock", 0, "K"),), faults=(), numbers=())
SEEN = LandedReading(
    FileId(0, 1), "hall", "gw-1", 7, 0, "dock/tags", "tag", "K", EPOCH_US + AT_US - 5, EPOCH_US + AT_US + 5, None,
    None, None,
)  # fmt: skip
PLACE = ("hall", "gw-1", 7)


def laws(readings, frontiers=(), acked=None, lives=None, twice=()):
    landed = Landed(list(readings), list(frontiers), list(twice))
    lives = {"dock": []} if lives is None else lives
    return [one.law for one in broken_laws(SCHEDULE, landed, acked or {}, lives)]


def test_a_landing_as_it_should_be_breaks_no_law():
    frontier = LandedFrontier(FileId(0, 2), "hall", "gw-1", EPOCH_US + 2 * AT_US, ("dock/tags",))
    assert laws([SEEN], [frontier], {PLACE: 0}, {"dock": [[0, 1 << 62]]}) == []


def test_a_value_that_was_measured_breaks_no_law():
    value = temperature(SCHEDULE.seed, "dock", 0, EPOCH_US + SCHEDULE.sightings[0].true_us)
    assert laws([SEEN._replace(kind="measure", value=f"{value}")]) == []


def test_a_frontier_that_is_later_than_its_file_is_told():
    """Its gateway's clock is ahead, or it lies: what it says counts up to the present."""
    said = LandedFrontier(FileId(AT_US, 2), "hall", "liar", EPOCH_US + AT_US, ("dock/tags",))
    assert list(future_frontiers(Landed([], [said]))) == []
    [text] = future_frontiers(Landed([], [said._replace(frontier_us=said.frontier_us + 1)]))
    assert text == "file 2 says that hall/liar is complete until 1 us after it"


@pytest.mark.parametrize(
    ("law", "case"),
    [
        ("stamps", {"readings": [SEEN._replace(t_max=SEEN.t_min + 1)]}),
        ("stamps", {"readings": [SEEN._replace(key="other")]}),
        ("stamps", {"readings": [SEEN, SEEN._replace(seq=1)]}),
        ("stamps", {"readings": [SEEN._replace(kind="measure", value="99.9")]}),
        ("stamps", {"readings": [SEEN._replace(kind="state", key=None, t_min=0, t_max=1)]}),
        ("lost", {"readings": [], "lives": {"dock": [[0, 1 << 62]]}}),
        ("numbers", {"readings": [SEEN], "acked": {PLACE: 1}}),
        ("numbers", {"readings": [SEEN._replace(seq=1)]}),
        ("numbers", {"readings": [SEEN], "twice": [SEEN.identity]}),
        ("frontiers", {"readings": [SEEN._replace(file=FileId(0, 3))], "frontiers": [
            LandedFrontier(FileId(0, 2), "hall", "gw-1", SEEN.t_max + 1, ("dock/tags",))]}),
    ],
)  # fmt: skip
def test_a_broken_law_is_told(law, case):
    assert set(laws(**case)) == {law}


def test_a_gap_reading_around_its_time_counts_a_lost_reading_and_none_that_landed():
    """As many as it says, of any key; a gap of another time, or of another stream, counts none."""
    lives, gap = {"dock": [[0, 1 << 62]]}, SEEN._replace(kind="gap", key=None, value="1")
    assert laws([gap], lives=lives) == []
    assert laws([gap._replace(value="0")], lives=lives) == ["lost"]
    assert laws([gap._replace(t_max=EPOCH_US + AT_US - 1)], lives=lives) == ["lost"]
    assert laws([gap._replace(stream="door/tags")], lives=lives) == ["lost"]
    assert laws([SEEN, gap._replace(seq=1)], lives=lives) == ["gaps"]


def test_only_a_damaged_spool_may_send_again_what_it_had_sent():
    """With another number and behind its watermark; what it sends for the first time must not be behind."""
    said = LandedFrontier(FileId(0, 2), "hall", "gw-1", SEEN.t_max + 1, ("dock/tags",))
    again = Landed([SEEN, SEEN._replace(boot=8, file=FileId(0, 3))], [said], [])
    late = Landed([SEEN._replace(file=FileId(0, 3))], [said], [])
    rot = replace(SCHEDULE, faults=(Fault("bit_rot", 0, 0, "hall/gw-1"),), numbers=(0,))
    assert broken_laws(rot, again, {}, {"dock": []}) == []
    assert [one.law for one in broken_laws(rot, late, {}, {"dock": []})] == ["frontiers"]
    assert {one.law for one in broken_laws(SCHEDULE, again, {}, {"dock": []})} == {"stamps", "frontiers"}
    gap = SEEN._replace(seq=1, kind="gap", key=None, value="1")  # that it was refused is forgotten, too
    counted = Landed([gap, SEEN._replace(boot=8, file=FileId(0, 3))], [said], [])
    assert "frontiers" not in {one.law for one in broken_laws(rot, counted, {}, {"dock": []})}


def test_micro_batches_that_bring_a_rule_nothing_are_no_steps_of_it():
    """File 2 has a stream of no rule, file 3 a gap reading; the watermark of file 4 is a step."""
    rows = [SEEN, reading("till/tags", 1, 0, 1, file=2), SEEN._replace(kind="gap", file=FileId(0, 3))]
    said = [LandedFrontier(FileId(0, 4), "hall", "gw-1", EPOCH_US, ("door/tags",))]
    assert steps_of(rule(PAIRS, 1000, 80, 1000), Landed(rows, said), upto(1, 2, 3, 4)) == upto(1, 4)


def test_a_stamp_that_no_pair_can_hold_is_no_step_and_a_copy_in_another_part_is_one():
    """Limits of 2 s and 80 % hold stamps of at most 2.5 s; unmatched ones of any length are results."""
    one, longest_us = rule(PAIRS, 1000, 80, 1000), 2_500_000
    for length_us, is_step in ((longest_us, True), (longest_us + 1, False)):
        landed = Landed([reading("dock/tags", 1, 0, length_us, file=2)], [])
        assert steps_of(one, landed, upto(1, 2)) == (upto(2) if is_step else [])
        assert steps_of(rule(PAIRS, 1000, 80, 1000, form=Form(choice="KEEP ALL a")), landed, upto(1, 2)) == upto(2)
    copied = Landed([SEEN], [], copies=[reading("dock/tags", 0, 0, 1, file=2)])
    assert steps_of(one, copied, upto(1, 2, 3)) == upto(1, 2)


def reading(stream, seq, t_min, t_max, file=1):
    """A reading whose stamp does not matter to the true times."""
    return SEEN._replace(stream=stream, seq=seq, t_min=t_min, t_max=t_max, file=FileId(0, file))


def upto(*numbers):
    """How far micro-batches have read a landing of one part."""
    return [{"": number} for number in numbers]


def promised(frontier_us, published, boot=7, one=SEEN, confirmed=()):
    """What is broken of a heartbeat that says this, when a reading has landed and numbers by boot were acknowledged."""
    beat = Heartbeat("hall", "gw-1", boot, frontier_us, published, "bounded", 1)
    said = Said(beat, dict(confirmed), 0)
    return list(broken_promises(Landed([one], []), [said, said]))


def test_a_heartbeat_promises_that_all_before_its_watermark_is_published():
    """Numbers beyond those that it names, and boots that begin later, must not end before it, and no gap either."""
    later_us = SEEN.t_max + 1
    assert promised(later_us, {7: (0, 0)}) == []
    assert promised(SEEN.t_max, {7: (0, -1)}) == []
    assert promised(None, {}) == []
    assert "boot 7 number 0, ended 1 us before" in promised(later_us, {7: (0, -1)})[0]
    assert len(promised(later_us, {}, boot=6)) == 1
    assert len(promised(later_us, {7: (0, 8)}, one=SEEN._replace(kind="gap", seq=9))) == 1


def test_an_earlier_boot_that_a_heartbeat_does_not_name_had_been_acknowledged():
    later_us = SEEN.t_max + 1
    assert promised(later_us, {8: (0, 3)}, boot=8, confirmed={7: 0}) == []
    assert len(promised(later_us, {8: (0, 3)}, boot=8, confirmed={7: -1})) == 1
    assert len(promised(later_us, {8: (0, 3)}, boot=8, confirmed={8: 3})) == 1


def test_what_a_heartbeat_says_is_not_kept_any_more_had_been_acknowledged():
    assert promised(None, {7: (5, 4)}, confirmed={7: 4}) == []
    assert (
        "keeps boot 7 from 5 on, and had been acknowledged up to 3" in promised(None, {7: (5, 4)}, confirmed={7: 3})[0]
    )
    assert promised(None, {7: (0, 9)}) == []


def test_frontiers_of_a_job_are_those_of_the_definition():
    """A watermark counts after its micro-batch; a gateway without one is waited for if its readings can be in a result."""
    pairs = rule(PAIRS, 1000, 80, 1000)
    said = LandedFrontier(FileId(0, 2), "hall", "gw-1", 5_000_000, ("dock/tags",))
    feeds = reading("dock/tags", 0, 0, 100)._replace(gateway="gw-2")

    def broken(found, *readings):
        return list(broken_job_frontiers(pairs, [(0, found)], Landed([*readings], [said]), upto(2)))

    assert broken({"dock": 5_000_000}) == []
    assert broken({"dock": 4_000_000}, feeds) == []
    assert broken({"dock": 5_000_000}, feeds._replace(t_max=3_000_000)) == []
    assert "expected {'dock': 5000000}" in broken({})[0]
    assert "expected {'dock': 4000000}" in broken({"dock": 5_000_000}, feeds)[0]


def test_results_are_those_of_the_definition():
    pairs = rule(PAIRS, 1000, 80, 1000)
    a, b = reading("dock/tags", 0, 0, 100), reading("door/tags", 1, 500, 600)
    landed, pair = Landed([a, b], []), (a.identity, b.identity)
    assert list(broken_results(pairs, Told([pair], set()), landed, 10_000)) == []
    assert "was not told" in next(broken_results(pairs, Told([], set()), landed, 10_000))
    assert list(broken_results(pairs, Told([], set()), landed, 550)) == []  # not decided yet
    assert "2 times" in next(broken_results(pairs, Told([pair, pair], set()), landed, 10_000))
    far = Landed([a, reading("door/tags", 1, 2_000_000, 2_000_001)], [])
    assert "is no result" in next(broken_results(pairs, Told([pair], set()), far, 10_000))


def test_a_till_between_shelf_and_exit_is_no_result():
    unpaid = rule(MATCHES, 60_000, 100, 1000)
    a, c, e = reading("shelf/tags", 0, 0, 9), reading("till/tags", 1, 20, 30), reading("exit/tags", 2, 50, 60)
    match, later = (a.identity, e.identity), 10_000_000
    assert list(broken_results(unpaid, Told([match], set()), Landed([a, e], []), later)) == []
    assert "is no result" in next(broken_results(unpaid, Told([match], set()), Landed([a, c, e], []), later))
    assert engine_of(unpaid) is not engine_of(rule(PAIRS, 1000, 80, 1000))


def test_a_reading_below_the_frontier_of_earlier_batches_must_be_told_as_late():
    pairs = rule(PAIRS, 1000, 80, 1000)
    frontier = LandedFrontier(FileId(0, 2), "hall", "gw-1", 1_000, ("dock/tags", "door/tags"))
    early, late = reading("dock/tags", 0, 0, 9), reading("dock/tags", 1, 0, 9, file=3)
    landed = Landed([early, late], [frontier])
    assert list(broken_lateness(pairs, Told([], {late.identity}), landed, upto(2, 3))) == []
    assert "was not told" in next(broken_lateness(pairs, Told([], set()), landed, upto(2, 3)))
    assert "was told as late, and was not" in next(broken_lateness(pairs, Told([], {late.identity}), landed, upto(3)))


def test_an_event_that_began_too_long_before_the_frontier_must_be_told_as_too_long():
    unpaid = rule(MATCHES, 60_000, 100, 1000)
    later = 5_000_000
    frontier = LandedFrontier(FileId(0, 2), "hall", "gw-1", later, ("shelf/tags", "till/tags", "exit/tags"))
    long = reading("exit/tags", 1, 0, later + 1, file=3)
    landed = Landed([reading("exit/tags", 0, 0, 9), long], [frontier])
    assert list(broken_lateness(unpaid, Told([], set(), {long.identity}), landed, upto(2, 3))) == []
    assert "came too long, and was not told" in next(broken_lateness(unpaid, Told([], set()), landed, upto(2, 3)))
    late_too = Told([], {long.identity}, {long.identity})
    assert "was told as late, and was not" in next(broken_lateness(unpaid, late_too, landed, upto(2, 3)))


def test_the_last_frontier_of_each_gateway_counts():
    one, two = (LandedFrontier(FileId(0, n), "hall", "gw-1", n, ()) for n in (1, 2))
    assert latest([one, two]) == [two]


def test_watermarks_of_several_parts_count_one_micro_batch_later():
    one, two = {"": 4}, {"": 4, "ingest=a": 1}
    assert effective_at([]) == {}
    assert effective_at([two]) == {}
    assert effective_at([two, one]) == one
    assert effective_at([one, two]) == one


def test_a_repeat_of_a_reading_in_another_part_may_be_told_as_late():
    pairs = rule(PAIRS, 1000, 80, 1000)
    landed = Landed([SEEN], [], [], frozenset({SEEN.identity}))
    assert list(broken_lateness(pairs, Told([], {SEEN.identity}), landed, upto(2))) == []
