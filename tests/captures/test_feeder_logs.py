"""Logs of real chickadees at feeders: every row is a reading, and the statements of the page on real logs are true."""

import csv
import re

import pytest

from support.cloud import lessons
from support.cloud.feeder_logs import DAY_S, HOUR_S, Read, moves, moves_by_the_engine, reads, seconds, visits
from support.cloud.imported_logs import check_feeder_logs
from support.files.captures import folder

PAGE = lessons.section(lessons.text("real-logs"), "Birds at four feeders")
DATA = folder("feeder-rfid")


@pytest.fixture(scope="module")
def all_reads() -> list[Read]:
    """The rows of the raw logs, file after file."""
    return reads(DATA / "raw")


def test_every_row_of_the_real_logs_is_a_reading():
    """Counted without the importer: one reading for each line but the head, and no line rejected."""
    assert check_feeder_logs(DATA / "raw") == (15_978, {})


def test_the_numbers_of_the_page_are_true_of_the_raw_logs(all_reads):
    """Visits, moves, those within ten hours and over a night, the longest, and what trust in arrival makes of it."""
    true, naive = moves(sorted(all_reads)), moves(all_reads)
    assert f"{len(visits(all_reads, 30))} visit\n" in PAGE
    assert lessons.table(PAGE) == {
        "move, in order of arrival": (len(naive), len(naive & true), len(naive - true), len(true - naive)),
        "move, the rule": (len(true), len(true), 0, 0),
    }
    by_day = [b.second - a.second <= 10 * HOUR_S for a, b in true]
    nights = [b.second // DAY_S > a.second // DAY_S for a, b in true]
    assert all(day != night for day, night in zip(by_day, nights, strict=True))
    assert re.search(rf"`WITHIN 10 h` {sum(by_day)} moves are left, and the {sum(nights)} others", PAGE)
    assert f"{round(max(b.second - a.second for a, b in true) / DAY_S)} days" in PAGE
    assert f"{sum(b.second < a.second for a, b in naive)} of its {len(naive - true)} wrong ones go back" in PAGE


def test_moves_do_not_depend_on_the_order_of_arrival(all_reads):
    """File after file, in order of time and backwards: each time the moves of the raw logs, and so within ten hours."""
    true = moves(sorted(all_reads))
    for arrival in (all_reads, sorted(all_reads), all_reads[::-1]):
        emitted = moves_by_the_engine(arrival, "336 h")
        assert set(emitted) == true
        assert len(emitted) == len(true)
    short = {(a, b) for a, b in true if b.second - a.second <= 10 * HOUR_S}
    assert set(moves_by_the_engine(all_reads, "10 h")) == short


def test_the_whole_data_set_has_the_moves_that_it_is_known_for():
    """1246 moves of 31 tags between 8 loggers in the tidy table of both experiments, none faster than ten seconds."""
    with (DATA / "chickadees.csv").open() as file:
        table = [
            Read(seconds(row["time"], "%Y-%m-%d %H:%M:%S"), row["logger_id"], row["animal_id"])
            for row in csv.DictReader(file)
        ]
    known = (len(table), len({r.tag for r in table}), len({r.logger for r in table}))
    assert known == (26_753, 31, 8)
    assert "{} of {} birds at {}\nloggers".format(*known) in PAGE
    emitted = moves_by_the_engine(table, "1000 h")
    assert f"In them are {len(emitted)} moves" in PAGE
    assert len(emitted) == 1246
    assert set(emitted) == moves(sorted(table))
    assert min(b.second - a.second for a, b in emitted) > 10
