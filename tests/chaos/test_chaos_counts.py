"""The law of counts: as many matches as the definition has among the middles of stamps, told once for each stretch."""

import pytest

from support.landed_readings import landed
from whenabouts_sim.chaos.checks.landed import Landed, LandedFrontier
from whenabouts_sim.chaos.checks.lateness import broken_lateness
from whenabouts_sim.chaos.checks.results import Row, Told
from whenabouts_sim.chaos.checks.rules.counts import broken_counts
from whenabouts_sim.chaos.parts.job_rules import MATCHES, rule
from whenabouts_sim.chaos.parts.landing_files import FileId
from whenabouts_sim.chaos.parts.rule_form import Form, StreamForm

MS, S = 1000, 1_000_000
STREAMS = (StreamForm(1000, 100),) * 3
FORM = Form(STREAMS, pattern="SEQ(shelf a, exit e)", options="COUNT EVERY 1 s")
COUNTING = rule(MATCHES, 500, 100, 1000, form=FORM)
SHELF = landed("shelf/tags", 0, 10 * S, 10 * S)
EXITS = [landed("exit/tags", n, 10 * S + n * 150 * MS, 10 * S + n * 150 * MS) for n in (1, 2, 3)]
NEXT = landed("exit/tags", 7, 10 * S + 480 * MS, 10 * S + 500 * MS)


def row(begin_us, matches, **more):
    columns = {
        "result_id": str(begin_us), "rule": MATCHES, "key": "K", "t_min": begin_us, "t_max": begin_us + S - 1,
        "matches": matches, "exact": True, "aggregates": [],
    }  # fmt: skip
    return Row((), columns | more)


def broken(rows, readings, late=(), complete_us=60 * S):
    told = Told([one.readings for one in rows], {one.identity for one in late}, rows=rows)
    return list(broken_counts(COUNTING, told, readings, complete_us))


def test_the_middles_of_stamps_are_counted_by_the_time_of_the_last_event():
    assert broken([row(10 * S, 3)], [SHELF, *EXITS]) == []
    assert broken([row(10 * S, 4)], [SHELF, *EXITS, NEXT]) == []
    assert broken([row(10 * S, 3)], [SHELF, *EXITS, NEXT], late=[NEXT]) == []
    early = SHELF._replace(t_min=9 * S + 800 * MS, t_max=9 * S + 800 * MS)
    before = EXITS[0]._replace(seq=9, t_min=9 * S + 900 * MS, t_max=9 * S + 900 * MS)
    assert broken([row(9 * S, 1), row(10 * S, 2)], [early, before, *EXITS]) == []


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([row(10 * S, 2)], "expected {'rule': 'unpaid', 'matches': 3"),
        ([row(10 * S, 3, exact=False)], "expected"),
        ([row(10 * S, 3), row(11 * S, 1)], "'matches': 0"),
        ([row(10 * S, 3), row(10 * S, 3)], "1 counts were told twice"),
        ([], "3 matches of K from 10000000 on were not told"),
    ],
)
def test_a_count_that_is_wrong_told_twice_or_missing_is_told(rows, said):
    assert any(said in text for text in broken(rows, [SHELF, *EXITS]))


def test_what_was_measured_with_the_events_is_summed():
    """By the values of a, and of e, over all matches; numbers that are no sums of theirs are told."""
    form = FORM._replace(options="COUNT, SUM(a.value), MAX(e.value), AVG(e.value) EVERY 1 s")
    summing = rule(MATCHES, 500, 100, 1000, form=form)
    readings = [SHELF._replace(value="2.5"), *(one._replace(value=str(n)) for n, one in enumerate(EXITS))]

    def judged(values, of=readings):
        names = ("SUM(a.value)", "MAX(e.value)", "AVG(e.value)")
        aggregates = [{"name": name, "value": value} for name, value in zip(names, values, strict=True)]
        told = Told([()], set(), rows=[row(10 * S, 3, aggregates=aggregates)])
        return list(broken_counts(summing, told, of, 60 * S))

    assert judged([7.5, 2.0, 1.0]) == []
    assert judged([None] * 3, [SHELF, *EXITS]) == []
    for wrong in ([7.0, 2.0, 1.0], [7.5, 1.0, 1.0], [7.5, 2.0, None]):
        [text] = judged(wrong)
        assert "expected {'SUM(a.value)': 7.5, 'MAX(e.value)': 2.0, 'AVG(e.value)': 1.0}" in text


def test_a_count_is_due_when_half_of_the_longest_stamp_has_passed_since_its_end():
    assert broken([], [SHELF, *EXITS], complete_us=11 * S + 50 * MS - 1) == []
    assert len(broken([], [SHELF, *EXITS], complete_us=11 * S + 50 * MS)) == 1


def test_an_event_is_late_if_its_stretch_was_told():
    """Its middle decides. At a frontier of 20 s all before 19 s is told, as the longest stamp has 100 ms."""
    said = LandedFrontier(FileId(0, 2), "hall", "gw-1", 20 * S, ("shelf/tags", "exit/tags"))
    for end_us, is_late in ((19 * S - 1, True), (19 * S, False)):
        one = landed("exit/tags", 9, end_us, end_us, file=3)
        found = Landed([SHELF, one], [said])
        for late in (set(), {one.identity}):
            texts = list(broken_lateness(COUNTING, Told([], late), found, [{"": 2}, {"": 3}]))
            assert (texts == []) is (bool(late) is is_late)
