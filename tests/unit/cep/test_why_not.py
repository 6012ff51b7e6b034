"""Why there is no match: what is named, for each way in which a pattern can fail. One unit is a second."""

import numpy as np
import pytest

from whenabouts_cloud.cep import Pattern
from whenabouts_cloud.cep.explain import why_not as under_test
from whenabouts_cloud.cep.explain.explanation import Seen, lines
from whenabouts_cloud.cep.explain.why_not import why_not
from whenabouts_cloud.cep.uncertain.causal import Clocks

NAMES = ["shelf", "till", "exit", "door"]
S = 1_000_000
THEFT = "SEQ(shelf, !till, exit) WITHIN 60 s"


def at(text, **columns):
    """Events such as "shelf10 exit20-22", in seconds; columns by the place of the event."""
    events = []
    for n, word in enumerate(text.split()):
        name = word.rstrip("0123456789-")
        first, _, last = word.removeprefix(name).partition("-")
        values = {column: per_event[n] for column, per_event in columns.items() if per_event[n] is not None}
        events.append(Seen(NAMES.index(name), int(first) * S, int(last or first) * S, word, values))
    return events


def asked(pattern, events, time_s, **columns):
    """The explanation."""
    return why_not(Pattern.parse(pattern), NAMES, at(events, **columns), time_s * S)


def names(answer):
    """Of each element the event that fills it, or (failure, event that comes nearest)."""
    return [e.event.name if e.failure is None else (e.failure, e.event and e.event.name) for e in answer.elements]


def test_a_match_is_shown_as_one():
    """shelf ---------- exit: nothing is in the way."""
    answer = asked(THEFT, "shelf10 exit30 till40", 30)
    assert (answer.verdict, names(answer), answer.blockers) == ("match", ["shelf10", "exit30"], ())


def test_the_event_in_the_way_is_named():
    """shelf --- till --- exit: complete, but paid for."""
    answer = asked(THEFT, "shelf10 till20 exit30 till40", 30)
    assert (answer.verdict, names(answer)) == ("blocked", ["shelf10", "exit30"])
    [blocker] = answer.blockers
    assert (blocker.negation, blocker.event.name, blocker.where) == (
        "!till",
        "till20",
        "lies after shelf and before exit",
    )
    assert lines(answer)[0] == "complete, but a negated event is in the way"


def test_of_several_ways_the_one_with_least_in_its_way_is_shown():
    """shelf till till shelf till exit: the later shelf has one till before the exit, the earlier one three."""
    answer = asked(THEFT, "shelf1 till2 till3 shelf4 till5 exit6", 6)
    assert names(answer) == ["shelf4", "exit6"]
    assert [b.event.name for b in answer.blockers] == ["till5"]


@pytest.mark.parametrize(
    ("pattern", "events", "where"),
    [
        # till . shelf exit          within 60 before the exit
        ("SEQ(!till, shelf, exit) WITHIN 60 s", "till1 shelf10 exit30", "lies within the window before shelf"),
        # shelf exit . till          within 60 after the shelf
        ("SEQ(shelf, exit, !till) WITHIN 60 s", "shelf10 exit30 till69", "lies within the window after exit"),
    ],
)
def test_gaps_at_the_ends_reach_as_far_as_the_window(pattern, events, where):
    """The event in the way lies outside the match."""
    answer = asked(pattern, events, 30)
    assert (answer.verdict, [b.where for b in answer.blockers]) == ("blocked", [where])


def test_a_missing_element_is_named():
    """shelf and then nothing; the till is no part."""
    answer = asked(THEFT, "shelf10 till20", 15)
    assert (answer.verdict, names(answer)) == ("missing", ["shelf10", ("missing", None)])
    assert lines(answer)[2] == "  exit   missing: no such event"


def test_the_longest_part_is_shown():
    """Of SEQ(shelf, till, door, exit) the door is missing; shelf, till and exit are there."""
    answer = asked("SEQ(shelf, till, door, exit) WITHIN 60 s", "exit5 shelf10 till20 exit30", 20)
    assert names(answer) == ["shelf10", "till20", ("missing", None), "exit30"]


def test_an_event_beyond_the_window_is_named_with_how_far():
    """shelf ---- 60 s ---- | ----- exit: 15 s too late."""
    answer = asked(THEFT, "shelf10 exit85 exit99", 12)
    assert (answer.verdict, names(answer)) == ("window", ["shelf10", ("window", "exit85")])
    assert answer.elements[1].reason == "is 15 s beyond the window"


def test_a_condition_that_fails_is_named_as_written():
    """The exit reads too weakly; the door's condition is fine."""
    pattern = "SEQ(shelf, door, exit x) WITHIN 60 s WHERE x.rssi > -60 AND door.rssi > -60"
    answer = asked(pattern, "shelf10 door20 exit30", 30, rssi=[None, -50.0, -70.0])
    assert (answer.verdict, names(answer)) == ("condition", ["shelf10", "door20", ("condition", "exit30")])
    assert answer.elements[2].reason == "fails x.rssi > (-60)"


def test_a_condition_across_events_is_named():
    """Between shelf and exit; whichever of the two is taken, the other one fails it."""
    answer = asked("SEQ(shelf a, exit b) WITHIN 60 s WHERE b.value = a.value", "shelf10 exit30", 30, value=[1.0, 2.0])
    assert answer.verdict == "condition"
    [failing] = [e for e in answer.elements if e.failure]
    assert failing.reason == "fails b.value = a.value"


def test_the_wrong_order_is_named():
    """exit --- shelf."""
    answer = asked(THEFT, "exit10 shelf30", 30)
    assert (answer.verdict, names(answer)) == ("order", [("order", "shelf30"), "exit10"]) or (
        answer.verdict, names(answer)) == ("order", ["shelf30", ("order", "exit10")])  # fmt: skip
    assert [e.reason for e in answer.elements if e.failure] in (["comes after exit"], ["comes before shelf"])


def test_overlapping_stamps_are_not_certainly_in_order():
    """shelf [10 ... 20], exit [18 ... 25]: 2 s in which either may be the first; POSSIBLE takes them."""
    answer = asked(THEFT, "shelf10-20 exit18-25", 20)
    assert answer.verdict == "uncertain"
    [failing] = [e for e in answer.elements if e.failure]
    assert "by 2 s, so which came first is not certain" in failing.reason
    assert asked(THEFT + " POSSIBLE", "shelf10-20 exit18-25", 20).verdict == "match"


def test_events_of_one_time_have_no_order():
    """Equal points."""
    answer = asked(THEFT, "shelf10 exit10", 10)
    assert answer.verdict == "uncertain"
    assert "comes at the same time as" in next(e.reason for e in answer.elements if e.failure)


def test_over_gives_the_probability():
    """shelf [10 .. 20], exit [15 .. 25]: in order with 7/8, since the reverse is an eighth of the square."""
    answer = asked(THEFT + " OVER 90 %", "shelf10-20 exit15-25", 20)
    assert (answer.verdict, answer.probability) == ("improbable", pytest.approx(7 / 8))
    assert asked(THEFT + " OVER 80 %", "shelf10-20 exit15-25", 20).verdict == "match"


def test_a_till_that_may_lie_between_is_in_the_way_of_certainty():
    """shelf [10], till [5 ... 15], exit [30]."""
    answer = asked(THEFT, "shelf10 till5-15 exit30", 30)
    assert [b.where for b in answer.blockers] == ["may lie after shelf and before exit"]


def test_the_question_is_about_the_nearest_event():
    """Two visits: the first was paid for, the second was not."""
    events = "shelf10 till20 exit30 shelf210 exit230"
    assert (asked(THEFT, events, 31).verdict, asked(THEFT, events, 215).verdict) == ("blocked", "match")


def test_no_event_of_the_pattern_at_all():
    """An event that is only negated is no part of a match."""
    assert asked(THEFT, "till10", 10).verdict == "nothing"
    assert asked(THEFT, "", 10).focus is None


def test_repetitions_and_options_choose_the_nearest_alternative():
    """Of shelf+ one is enough; of the OR the branch that is there."""
    answer = asked("SEQ(shelf+ s, OR(exit, SEQ(till, door))) WITHIN 60 s", "shelf10 shelf12 till20", 20)
    assert answer.verdict == "missing"
    assert sum(e.failure is not None for e in answer.elements) == 1


def test_next_names_itself():
    """shelf shelf exit: with NEXT a later shelf is no obstacle, a nearer exit is."""
    answer = asked("SEQ(shelf, exit x) WITHIN 60 s NEXT", "shelf10 exit20 exit30", 30)
    assert (answer.verdict, names(answer)) == ("blocked", ["shelf10", "exit30"])
    assert [(b.negation, b.event.name) for b in answer.blockers] == [("NEXT", "exit20")]


def test_limits_are_reported(monkeypatch):
    """Events far from the time are left out, and a search that is cut off is marked."""
    monkeypatch.setattr(under_test, "MAX_EVENTS", 3)
    answer = asked(THEFT, "shelf10 exit30 shelf50 exit70", 10)
    assert (answer.left_out, answer.verdict) == (1, "match")
    monkeypatch.setattr(under_test, "MAX_EVENTS", 500)
    monkeypatch.setattr(under_test, "MAX_STEPS", 50)
    events = " ".join(f"shelf{n} till{n}" for n in range(1, 60))
    cut = asked("SEQ(shelf{8} s, !till, exit) WITHIN 600 s", events, 10)
    assert not cut.searched_all
    assert "not every way was looked at" in lines(cut)[-1]


def causal(text, time_s, *clocks):
    """The explanation in causal order; of each event its process, and how many states of either it knows of."""
    process, vectors = [p for p, *_ in clocks], [known for _, *known in clocks]
    own = Clocks(np.array(vectors), np.array(process), np.arange(len(process)))
    return why_not(Pattern.parse(THEFT + " CAUSAL"), NAMES, at(text), time_s * S, clocks=own)


def test_in_causal_order_the_message_decides_and_not_the_time():
    r"""
    shelf   --(shelf, 1)--\-----------       the exit's gateway knows of the state after the one of the shelf
    exit    ---------------\--(exit)--        by its wrong clock the exit came first
    """
    answer = causal("shelf30 exit10", 30, (0, 1, 0), (1, 2, 1))
    assert (answer.verdict, names(answer)) == ("match", ["shelf30", "exit10"])


def test_in_causal_order_concurrent_events_are_named():
    """No message between them: their order is unknown."""
    answer = causal("shelf10 exit30", 30, (0, 1, 0), (1, 0, 1))
    assert (answer.verdict, names(answer)) == ("uncertain", [("uncertain", "shelf10"), "exit30"])
    assert answer.elements[0].reason == "is concurrent with exit"


def test_in_causal_order_the_wrong_way_round_is_named():
    """The shelf knew of the exit."""
    answer = causal("shelf10 exit30", 30, (0, 1, 2), (1, 0, 1))
    assert (answer.verdict, answer.elements[0].reason) == ("order", "is known to come after exit")


def test_in_causal_order_only_what_is_known_to_lie_between_is_in_the_way():
    """The till of the exit's gateway, which knew of the shelf; one that nobody heard of is not."""
    between = causal("shelf10 till20 exit30", 30, (0, 1, 0), (1, 2, 1), (1, 2, 1))
    assert (between.verdict, [b.event.name for b in between.blockers]) == ("blocked", ["till20"])
    assert between.blockers[0].where == "lies after shelf and before exit"
    assert causal("shelf10 till20 exit30", 30, (0, 1, 0), (1, 0, 1), (1, 2, 1)).verdict == "match"


def test_in_causal_order_clocks_are_needed():
    """Stamps do not give causal order."""
    with pytest.raises(ValueError, match="clocks: found none"):
        asked(THEFT + " CAUSAL", "shelf10", 10)
