"""The judge of thefts, on time lines drawn by hand, and its figures for a whole run."""

import json

from whenabouts_sim.judge.judgement import Judgement, flawless, table
from whenabouts_sim.judge.placement import Landed, place
from whenabouts_sim.judge.thefts import TheftRule, certain_thefts, naive_thefts, stolen_goods, summarise_thefts
from whenabouts_sim.judge.truth import PairScore, Rule, summarise
from whenabouts_sim.world.clocks import GatewayClock
from whenabouts_sim.world.emitted import EmittedFrame
from whenabouts_sim.world.shoppers import CHECKOUT, EXIT, SHELF, SHOP_READERS
from whenabouts_sim.world.world import DOCK, DOOR

RULE = TheftRule(SHELF, CHECKOUT, EXIT, 100)
CLOCKS = dict.fromkeys((reader.gateway for reader in SHOP_READERS), GatewayClock(0))


def seen(reader, number, true_us, key="A") -> EmittedFrame:
    return EmittedFrame(reader.name, number, key, true_us, true_us)


def row(reader, seq, t_min, t_max, key="A") -> Landed:
    return Landed(reader.gateway, reader.stream, key, 1, seq, t_min, t_max)


def certain(*rows):
    """Sequence numbers of the matches."""
    return {(a[2], e[2]) for a, e in certain_thefts(RULE, rows)}


def test_stolen_is_what_passed_no_till_between():
    """
    A  shelf@10 ......... exit@50
    B  shelf@10  till@30  exit@50                 paid
    C  till@5  shelf@10   exit@50                 paid before it was at the shelf
    D  shelf@10           exit@111                beyond the window
    E  exit@5  shelf@10                           the other way round
    F  till@10=shelf@10   exit@110                at the same moments, a tie is not between; the window's end is inside
    """
    emitted = [
        seen(SHELF, 0, 10), seen(EXIT, 0, 50),
        seen(SHELF, 1, 10, "B"), seen(CHECKOUT, 0, 30, "B"), seen(EXIT, 1, 50, "B"),
        seen(CHECKOUT, 1, 5, "C"), seen(SHELF, 2, 10, "C"), seen(EXIT, 2, 50, "C"),
        seen(SHELF, 3, 10, "D"), seen(EXIT, 3, 111, "D"),
        seen(EXIT, 4, 5, "E"), seen(SHELF, 4, 10, "E"),
        seen(SHELF, 5, 10, "F"), seen(CHECKOUT, 2, 10, "F"), seen(EXIT, 5, 110, "F"),
    ]  # fmt: skip
    assert stolen_goods(RULE, emitted) == {"A", "C", "F"}


def test_certain_needs_order_window_and_an_empty_gap_wherever_events_lie():
    """
    shelf [10, 20]      exit [50, 60]
    till                         [58, 70]    may lie before the exit: no match
    till                            [60, 70] cannot
    till [0, 10]                             cannot lie behind the shelf
    till [0, 11]                             may
    """
    shelf, out = row(SHELF, 0, 10, 20), row(EXIT, 0, 50, 60)
    assert certain(shelf, out) == {(0, 0)}
    assert certain(shelf, out, row(CHECKOUT, 0, 58, 70)) == set()
    assert certain(shelf, out, row(CHECKOUT, 0, 60, 70)) == {(0, 0)}
    assert certain(shelf, out, row(CHECKOUT, 0, 0, 10)) == {(0, 0)}
    assert certain(shelf, out, row(CHECKOUT, 0, 0, 11)) == set()
    assert certain(shelf, out, row(CHECKOUT, 0, 30, 30, key="B")) == {(0, 0)}


def test_certain_order_and_window_have_closed_ends():
    """Stamps that touch are not in order; a window that is filled exactly holds, one microsecond more does not."""
    shelf = row(SHELF, 0, 10, 20)
    assert certain(shelf, row(EXIT, 0, 20, 60)) == set()
    assert certain(shelf, row(EXIT, 0, 21, 110)) == {(0, 0)}
    assert certain(shelf, row(EXIT, 0, 21, 111)) == set()
    assert certain(shelf, shelf, row(EXIT, 0, 50, 60), row(EXIT, 0, 50, 60)) == {(0, 0)}


def test_the_naive_engine_believes_the_order_it_is_given():
    """Shelf and exit arrive, the till's reading after them: emitted, though by its stamp it lies between."""
    shelf, till, out = row(SHELF, 0, 10, 10), row(CHECKOUT, 0, 30, 30), row(EXIT, 0, 50, 50)
    assert naive_thefts(RULE, [shelf, out, till]) == {"A"}
    assert naive_thefts(RULE, [shelf, till, out]) == set()
    assert naive_thefts(RULE, [out, shelf, till]) == set()
    assert naive_thefts(RULE, [shelf, row(EXIT, 0, 111, 111)]) == set()


def whole(job):
    """A run: A is stolen, B paid while its reading arrives last, C stolen with stamps that leave its order open."""
    emitted = [
        seen(SHELF, 0, 10), seen(EXIT, 0, 50),
        seen(SHELF, 1, 110, "B"), seen(CHECKOUT, 0, 130, "B"), seen(EXIT, 1, 150, "B"),
        seen(SHELF, 2, 210, "C"), seen(EXIT, 2, 214, "C"),
    ]  # fmt: skip
    landed = [
        row(SHELF, 0, 8, 12), row(EXIT, 0, 48, 52),
        row(SHELF, 1, 108, 112, "B"), row(EXIT, 1, 148, 152, "B"),
        row(SHELF, 2, 208, 212, "C"), row(EXIT, 2, 212, 216, "C"),
        row(CHECKOUT, 0, 128, 132, "B"),
    ]  # fmt: skip
    thefts = summarise_thefts(RULE, emitted, landed, job, place(landed, emitted, SHOP_READERS, CLOCKS))
    rule = Rule(DOCK, DOOR, 10, 1)
    return Judgement(rule, summarise(rule, emitted, landed, [], SHOP_READERS, CLOCKS), thefts)


A, B = ((("gate-1", 1, n), ("door-1", 1, n)) for n in (0, 1))


def test_a_whole_run_in_numbers():
    """The job emits certain matches; the order of arrival accuses B, and plain timestamps would not."""
    judged = whole([A])
    thefts = judged.thefts
    assert (thefts.stolen, thefts.expected_matches, thefts.unexpected, thefts.absent) == (2, 1, 0, 0)
    assert thefts.job == PairScore(true_reported=1, false=0, missed=1)
    assert thefts.by_arrival == PairScore(true_reported=2, false=1, missed=0)
    assert thefts.by_stamp == PairScore(true_reported=2, false=0, missed=0)
    assert flawless(judged)
    assert json.loads(json.dumps(judged.as_dict()))["thefts"]["by_arrival"]["false"] == 1
    assert "would have accused 1 customer" in table(judged)
    assert "stamps, emitted when final       2         1         0         1" in table(judged)


def test_a_job_that_emits_anything_else_is_not_flawless():
    """One too many, one twice, none: each by itself."""
    for job, problem in (([A, B], "unexpected"), ([A, A], "matches_repeated"), ([], "absent")):
        judged = whole(job)
        assert judged.as_dict()["thefts"][problem] == 1
        assert not flawless(judged)
    assert whole([A, B]).thefts.job.false == 1


def test_a_run_without_goods_to_steal_does_not_mention_them():
    """As with a capture."""
    judged = Judgement(whole([A]).rule, whole([A]).summary)
    assert judged.as_dict()["thefts"] is None
    assert flawless(judged)
    assert "unpaid" not in table(judged)
