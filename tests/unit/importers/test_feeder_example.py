"""The lesson on birds at four feeders: its numbers are true of logs and truth."""

import csv
from collections import Counter
from datetime import datetime
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from support.cloud import lessons
from support.cloud.feeder_logs import DAY_S, HOUR_S, Read, moves, moves_by_the_engine, reads, visits

LESSON = lessons.text("feeder")
DATA = lessons.EXAMPLES / "data" / "feeders"
READS = reads(DATA)


def test_the_rules_that_the_lesson_shows_are_those_of_its_file():
    """To the letter."""
    assert lessons.rules(LESSON) == [(lessons.EXAMPLES / "feeders.wa").read_text()]


class Visit(NamedTuple):
    """A true visit, in seconds since 1970; sorting goes by time."""

    came: float
    left: float
    bird: str
    feeder: str


def table_of(name):
    """Rows of a file of the truth."""
    with (DATA / f"{name}.csv").open() as file:
        return list(csv.DictReader(file))


def seconds(text):
    return (datetime.fromisoformat(text) - datetime(1970, 1, 1)).total_seconds()


VISITS = sorted(Visit(seconds(x["came"]), seconds(x["left"]), x["bird"], x["feeder"]) for x in table_of("truth"))
AHEAD_S = {x["feeder"]: int(x["ahead_s"]) for x in table_of("clocks")}


def put_right(read):
    """With the second that the logger's clock should have shown."""
    return read._replace(second=read.second - AHEAD_S[read.logger.removesuffix("DATA")])


@cache
def visit_of(read: Read) -> Visit:
    """The visit that a read belongs to: exactly one."""
    at, feeder = put_right(read).second, read.logger.removesuffix("DATA")
    [visit] = [v for v in VISITS if (v.bird, v.feeder) == (read.tag, feeder) and v.came < at + 1 and at <= v.left]
    return visit


def true_moves():
    """Visits of a bird in a row at different feeders, heard or not."""
    by_bird = {}
    for visit in VISITS:
        by_bird.setdefault(visit.bird, []).append(visit)
    return {(a, b) for of_bird in by_bird.values() for a, b in pairwise(of_bird) if a.feeder != b.feeder}


def judged(emitted, true):
    """The numbers of a row of the table; an event emitted twice counts once as false."""
    right = set(emitted) & true
    return len(emitted), len(true), len(emitted) - len(right), len(true - right)


def as_visits(read_moves):
    """Moves between reads as moves between visits, with repeats."""
    return [(visit_of(a), visit_of(b)) for a, b in read_moves]


def moves_put_right():
    """Moves of the reads as they are, in the order of the seconds that good clocks would have shown."""
    return moves(sorted(READS, key=put_right))


def test_the_table_of_the_lesson_is_true_of_logs_and_truth():
    """Visits and moves by their definitions, held against what happened."""
    true = true_moves()
    begun = [visit_of(read) for read in visits(READS, 30)]
    assert lessons.table(LESSON) == {
        "visit, the rule above": judged(begun, set(VISITS)),
        "move, in order of arrival": judged(as_visits(moves(READS)), true),
        "move, the rule above": judged(as_visits(moves(sorted(READS))), true),
        "move, the rule above, clocks put right": judged(as_visits(moves_put_right()), true),
    }
    birds = len({visit.bird for visit in VISITS})
    assert f"there were {len(VISITS)} visits of {birds} birds and {len(true)} moves between feeders" in LESSON


def test_the_lesson_is_right_about_arrival_and_clocks():
    """All moves emitted in order of arrival go back in time; the worst clock; how many wrong moves it makes."""
    naive = moves(READS)
    assert all(b.second < a.second for a, b in naive)
    assert f"All {len(naive)} that\n  it emits go back in time" in LESSON
    worst = max(AHEAD_S, key=AHEAD_S.get)
    assert f"the clock of {worst} was {AHEAD_S[worst]} s ahead" in LESSON
    numbers = lessons.table(LESSON)
    by_clocks, left = (
        numbers[f"move, the rule above{end}"][2] - less
        for end, less in (("", numbers["move, the rule above, clocks put right"][2]), (", clocks put right", 0))
    )
    assert f"the rule emits {by_clocks} more moves that never happened" in LESSON
    assert f"with the clocks put right {left} wrong ones are left" in LESSON


def test_the_lesson_is_right_about_unheard_tags():
    """Visits cut in two, joined and unheard; where; and that the unheard ones explain what is missing and wrong."""
    heard = {visit_of(read) for read in READS}
    begun = [visit_of(read) for read in visits(READS, 30)]
    unheard = set(VISITS) - heard
    assert f"{len(begun) - len(set(begun))} of those emitted go on with one" in LESSON
    assert f"{len(heard - set(begun))} visits began\n  so soon after the last" in LESSON
    assert f"The other {len(unheard)} of the {len(set(VISITS) - set(begun))} were heard by no logger" in LESSON
    at = Counter(visit.feeder for visit in unheard)
    assert set(at) == {"YEW", "ASH", "ELM"}
    assert f"Of the {len(unheard)} visits that nobody heard {at['YEW']} were at YEW with its empty battery" in LESSON
    assert f"{at['ASH']} at ASH before its clock was set, and {at['ELM']} at ELM while" in LESSON
    emitted, true = set(as_visits(moves_put_right())), true_moves()
    missing, wrong = true - emitted, emitted - true
    assert all({a, b} & unheard for a, b in missing)
    assert f"They explain all {len(missing)} moves that are missing, and the {len(wrong)} wrong ones" in LESSON
    for a, b in wrong:
        assert any(visit.bird == a.bird and a.left < visit.came < b.came for visit in unheard)


def test_the_lesson_is_right_about_nights():
    """Moves within ten hours and over a night, and the longest."""
    true = moves(sorted(READS))
    by_day = [b.second - a.second <= 10 * HOUR_S for a, b in true]
    nights = [b.second // DAY_S > a.second // DAY_S for a, b in true]
    assert all(day != night for day, night in zip(by_day, nights, strict=True))
    assert f"with `WITHIN 10 h` {sum(by_day)} moves are left, and the {sum(nights)} others" in LESSON
    assert f"The longest took {round(max(b.second - a.second for a, b in true) / HOUR_S)} hours" in LESSON


def test_moves_do_not_depend_on_the_order_of_arrival():
    """File after file, in order of time and backwards: each time the moves of the raw logs, and so within ten hours."""
    true = moves(sorted(READS))
    for arrival in (READS, sorted(READS), READS[::-1]):
        emitted = moves_by_the_engine(arrival, "336 h")
        assert set(emitted) == true
        assert len(emitted) == len(true)
    short = {(a, b) for a, b in true if b.second - a.second <= 10 * HOUR_S}
    assert set(moves_by_the_engine(READS, "10 h")) == short
    right = [put_right(read) for read in READS]
    assert (
        len(moves_by_the_engine(right, "336 h")) == lessons.table(LESSON)["move, the rule above, clocks put right"][0]
    )
