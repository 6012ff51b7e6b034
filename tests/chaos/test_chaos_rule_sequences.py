"""The definition of SEQ in its forms: a match that is none is told, and so is one that is missing."""

import pytest

from support.landed_readings import landed
from whenabouts_sim.chaos.checks.landed import Landed, LandedFrontier
from whenabouts_sim.chaos.checks.lateness import broken_lateness
from whenabouts_sim.chaos.checks.results import Row, Told
from whenabouts_sim.chaos.checks.rules.kept import Kept, broken_kept
from whenabouts_sim.chaos.checks.rules.result_rows import broken_rows
from whenabouts_sim.chaos.checks.rules.sequences import broken_matches
from whenabouts_sim.chaos.parts.job_rules import MATCHES, rule
from whenabouts_sim.chaos.parts.landing_files import FileId
from whenabouts_sim.chaos.parts.rule_form import Form, StreamForm

MS = 1000
SHELF, TILL, EXIT = (
    landed(f"{name}/tags", n, 100 * MS * (n + 1), 100 * MS * (n + 1) + 9)
    for n, name in enumerate(("shelf", "till", "exit"))
)
MORE = {"shelf": SHELF._replace(seq=7, t_min=150 * MS, t_max=150 * MS + 9)}


def matches(pattern, window_ms=1000, streams=()):
    return rule(MATCHES, window_ms, 100, 1000, form=Form(streams, pattern=pattern))


def broken(one, results, readings, aside=(), complete_us=60_000 * MS):
    told = Told([tuple(x.identity for x in some) for some in results], {x.identity for x in aside})
    return list(broken_matches(one, told, readings, complete_us))


@pytest.mark.parametrize(
    ("pattern", "results"),
    [
        ("SEQ(shelf a, till c, exit e)", [(SHELF, TILL, EXIT)]),
        ("SEQ(shelf a, exit e, !till c)", [(SHELF, EXIT)]),
        ("SEQ(!till c, shelf a, exit e)", [(SHELF, EXIT)]),
        ("SEQ(shelf a, till c, !exit e)", []),
        ("SEQ(!shelf a, till c, exit e)", []),
        ("SEQ(shelf a, !exit e, till c)", [(SHELF, TILL)]),
        ("SEQ(shelf{1,2} a, exit e)", [(SHELF, EXIT)]),
        ("SEQ(shelf a, exit{2,3} e)", []),
    ],
)
def test_a_pattern_has_the_matches_that_people_expect(pattern, results):
    """Shelf, till and exit, 100 ms apart, within a second."""
    readings = (SHELF, TILL, EXIT)
    assert broken(matches(pattern), results, readings) == []
    assert "is no result" in broken(matches(pattern), [*results, (EXIT, SHELF)], readings)[0]
    for result in results:
        assert "was not told" in broken(matches(pattern), [one for one in results if one != result], readings)[0]


def test_a_forbidden_event_at_an_edge_counts_as_far_as_the_window_reaches():
    """Till is 100 ms behind shelf and before exit; the window reaches 10 ms around the two others."""
    near = SHELF._replace(stream="exit/tags", seq=5, t_min=SHELF.t_max + 1, t_max=SHELF.t_max + 1)
    for pattern in ("SEQ(shelf a, exit e, !till c)", "SEQ(!till c, shelf a, exit e)"):
        assert broken(matches(pattern, 10), [(SHELF, near)], (SHELF, near, TILL)) == []
    ahead = TILL._replace(t_min=SHELF.t_min - 10 * MS + 10, t_max=SHELF.t_min - 10 * MS + 10)
    assert broken(matches("SEQ(!till c, shelf a, exit e)", 10), [], (SHELF, near, ahead)) == []
    behind = TILL._replace(t_min=SHELF.t_max + 10 * MS, t_max=TILL.t_max)
    assert broken(matches("SEQ(shelf a, exit e, !till c)", 10), [], (SHELF, near, behind)) == []


def test_a_repetition_has_each_choice_of_events_in_their_order():
    more = MORE["shelf"]
    results = [(SHELF, EXIT), (more, EXIT), (SHELF, more, EXIT)]
    one = matches("SEQ(shelf{1,2} a, exit e)")
    assert broken(one, results, (SHELF, more, EXIT)) == []
    assert "is no result" in broken(one, [*results, (more, SHELF, EXIT)], (SHELF, more, EXIT))[0]
    assert len(broken(one, results[:2], (SHELF, more, EXIT))) == 1


def test_a_match_is_due_when_nothing_can_forbid_it_any_more():
    """At once without a forbidden event, after LENGTH with one, and after the window with one at the end."""
    for pattern, wait_ms in (
        ("SEQ(shelf a, exit e)", 0),
        ("SEQ(shelf a, !till c, exit e)", 1500),
        ("SEQ(shelf a, exit e, !till c)", 2500),
    ):
        due_us = EXIT.t_max + wait_ms * MS
        assert broken(matches(pattern), [], (SHELF, EXIT), complete_us=due_us) == []
        assert len(broken(matches(pattern), [], (SHELF, EXIT), complete_us=due_us + 1)) == 1


def test_what_was_told_as_late_has_no_effect():
    one = matches("SEQ(shelf a, !till c, exit e)")
    assert broken(one, [(SHELF, EXIT)], (SHELF, TILL, EXIT), aside=[TILL]) == []
    assert len(broken(one, [(SHELF, EXIT)], (SHELF, EXIT), aside=[SHELF])) == 1


OFFSETS = (StreamForm(1000, 300, 0), StreamForm(1000, 600, 0), StreamForm(1000, 300, -150))


def test_offsets_move_stamps_before_they_are_compared():
    """The exit of 300 ms is one of 150 ms: before the till, 50 ms behind the shelf."""
    one = matches("SEQ(shelf a, !till c, exit e)", 60, OFFSETS)
    assert broken(one, [(SHELF, EXIT)], (SHELF, TILL, EXIT)) == []
    assert len(broken(one, [], (SHELF, TILL, EXIT))) == 1
    assert len(broken(one, [(SHELF, EXIT)], (SHELF, TILL._replace(t_min=149 * MS), EXIT))) == 1
    exit_us = EXIT.t_max - 150 * MS  # moved, and compared with what is complete of all streams
    assert broken(one, [], (SHELF, EXIT), complete_us=exit_us + 150 * MS + 600 * MS) == []


def late(one, reading, reason):
    """What the law of lateness says of a reading that is told as late, or not, behind a watermark of 20 s."""
    names = ("shelf/tags", "till/tags", "exit/tags")
    said = LandedFrontier(FileId(0, 2), "hall", "gw-1", 20_000 * MS, names)
    told = Told([], {reading.identity} if reason else set())
    return list(broken_lateness(one, told, Landed([SHELF, reading], [said]), [{"": 2}, {"": 3}]))


def test_an_event_is_late_by_the_slowest_stream_after_offsets():
    """The exits' frontier of 20 s is one of 19.85 s, and theirs is the least."""
    one = matches("SEQ(shelf a, !till c, exit e)", streams=OFFSETS)
    for stream, moved_ms in (("shelf", 0), ("exit", -150)):
        reading = landed(f"{stream}/tags", 9, 0, (19_850 - moved_ms) * MS, file=3)
        assert "was told as late, and was not" in late(one, reading._replace(t_min=reading.t_max), True)[0]
        assert late(one, reading._replace(t_max=reading.t_max - 1), True) == []


def test_a_state_is_kept_by_the_slowest_stream_after_offsets():
    """19.85 s without LENGTH and WINDOW, 1.6 s: of exits what ends 150 ms later."""
    one = matches("SEQ(shelf a, !till c, exit e)", streams=OFFSETS)
    frontiers = dict.fromkeys(("shelf", "till", "exit"), 20_000 * MS)
    for stream, end_ms in (("shelf", 18_250), ("exit", 18_400)):
        for missing, count in ((0, 0), (1, 1)):
            reading = landed(f"{stream}/tags", 0, 0, end_ms * MS - missing)
            kept = [Kept(0, 0, 1, frontiers)]
            assert len(list(broken_kept(one, kept, Landed([reading], []), [{"": 1}]))) == count


def test_each_event_of_a_repetition_has_a_number():
    more = MORE["shelf"]
    one, source = matches("SEQ(shelf{1,2} a, exit e)"), {"site": "hall", "gateway": "gw-1", "boot": 7}
    events = [
        source | {"name": name, "seq": x.seq, "stream": x.stream, "t_min": x.t_min, "t_max": x.t_max}
        for name, x in (("a[1]", SHELF), ("a[2]", more), ("e", EXIT))
    ]
    columns = {"result_id": "1", "rule": MATCHES, "key": "K", "status": "match", "probability": 1.0}
    columns |= {"t_min": SHELF.t_min, "t_max": EXIT.t_max, "events": events}

    def texts(**changed):
        row = Row((SHELF.identity, more.identity, EXIT.identity), columns | changed)
        return list(broken_rows(one, Told([], set(), rows=[row]), Landed([SHELF, more, EXIT], [])))

    assert texts() == []
    assert "was told with events" in texts(events=[events[0], {**events[1], "name": "a"}, events[2]])[0]


@pytest.mark.parametrize(("options", "is_excused"), [("SKIP TO NEXT", True), ("", False)])
def test_a_rule_that_waits_for_others_may_be_wrong_if_a_stamp_is_longer_than_declared(options, is_excused):
    one = rule(MATCHES, 10_000, 100, 1000, form=Form(pattern="SEQ(shelf a, exit e)", options=options))
    for length_ms in (1500, 1501):
        last = EXIT._replace(t_max=EXIT.t_min + length_ms * MS)
        assert bool(broken(one, [], (SHELF, last))) != (is_excused and length_ms > 1500)
        assert broken(one, [(SHELF, last)], (SHELF, last)) == []
        late = last._replace(t_min=last.t_min + 20_000 * MS, t_max=last.t_max + 20_000 * MS)  # outside the window
        assert bool(broken(one, [(SHELF, late)], (SHELF, late))) != (is_excused and length_ms > 1500)
        other = EXIT._replace(
            seq=9, t_min=0, t_max=length_ms * MS
        )  # it may be in a match that has its place before this one
        assert bool(broken(one, [], (SHELF, EXIT, other))) != (is_excused and length_ms > 1500)
