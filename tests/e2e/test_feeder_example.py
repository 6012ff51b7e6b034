"""The lesson on birds at four feeders: its commands print what it shows, and its numbers are true of the raw logs."""

import csv
import re
from datetime import datetime
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pytest

from support import lessons
from support.paths import REPOSITORY, shared_dir
from whenabouts_cloud.cep import Pattern, detect

LESSON = (REPOSITORY / "docs" / "examples" / "feeder.md").read_text(encoding="utf-8")
FOLDER = shared_dir() / "data" / "feeder-rfid"
HOUR_S = 3600


class Read(NamedTuple):
    """A row; the field order makes sorting go by time."""

    second: int
    logger: str
    tag: str


@pytest.mark.timeout(900)
def test_the_commands_of_the_lesson_print_what_it_shows(tmp_path):
    """Every line, in order, in an empty folder."""
    assert lessons.repeat(tmp_path, LESSON, FOLDER / "raw") == 6


def seconds(text, form):
    return int((datetime.strptime(text, form) - datetime(1970, 1, 1)).total_seconds())


def reads():
    """The rows of the raw logs, file after file, by no code of the project."""
    found = []
    for path in sorted((FOLDER / "raw").glob("*DATA*.TXT")):
        logger, *rows = path.read_bytes().decode().replace("\r", "\n").split()
        for tag, date, time in zip(*[iter(rows)] * 3, strict=True):
            found.append(Read(seconds(f"{date} {time}", "%m/%d/%y %H:%M:%S"), logger, tag))
    return found


def moves(found):
    """Two reads of a tag in a row at different loggers, in the order given."""
    last = {}
    told = set()
    for read in found:
        before = last.get(read.tag)
        if before and before.logger != read.logger:
            told.add((before, read))
        last[read.tag] = read
    return told


def visits(found, gap_s):
    """Reads of a tag at a logger with none there in the gap before."""
    times = {}
    for read in sorted(found):
        times.setdefault((read.tag, read.logger), []).append(read.second)
    return sum(1 + sum(b - a > gap_s for a, b in pairwise(of)) for of in times.values())


def test_the_numbers_of_the_lesson_are_true_of_the_raw_logs():
    """Visits, moves, those within ten hours and over a night, the longest, and what trust in arrival makes of it."""
    found = reads()
    true, naive = moves(sorted(found)), moves(found)
    assert f"{visits(found, 30)}\n$ grep ^visit told.txt" in LESSON
    assert lessons.table(LESSON) == {
        "move, in order of arrival": (len(naive), len(naive & true), len(naive - true), len(true - naive)),
        "move, the rule above": (len(true), len(true), 0, 0),
    }
    by_day = [b.second - a.second <= 10 * HOUR_S for a, b in true]
    nights = [b.second // 86_400 > a.second // 86_400 for a, b in true]
    assert all(day != night for day, night in zip(by_day, nights, strict=True))
    assert re.search(rf"`WITHIN 10 h`\s{sum(by_day)} moves are left, and the {sum(nights)} others", LESSON)
    assert f"{round(max(b.second - a.second for a, b in true) / 86_400)} days" in LESSON
    assert f"{sum(b.second < a.second for a, b in naive)} of its {len(naive - true)} wrong ones go back" in LESSON


def moves_by_the_engine(found, window):
    """Matches of the lesson's rule of moves, in any order of arrival, as pairs of reads."""
    tags, loggers = ({x: n for n, x in enumerate(sorted({r[i] for r in found}))} for i in (2, 1))
    pattern = Pattern.parse(f"SEQ(r a, r b) WITHIN {window} PER key WHERE a.gateway != b.gateway STRICT")
    t = np.array([r.second * 1_000_000 for r in found])
    columns = {"gateway": np.array([loggers[r.logger] for r in found], float)}
    keys = np.array([tags[r.tag] for r in found])
    rows = detect(pattern, ["r"], np.zeros(len(t), np.int64), keys, t, t_max=t + 999_999, attributes=columns)
    return [(found[a], found[b]) for a, b in rows]


def test_moves_do_not_depend_on_the_order_of_arrival():
    """File after file, in order of time and backwards: each time the moves of the raw logs, and so within ten hours."""
    found = reads()
    true = moves(sorted(found))
    for arrival in (found, sorted(found), found[::-1]):
        told = moves_by_the_engine(arrival, "336 h")
        assert set(told) == true
        assert len(told) == len(true)
    short = {(a, b) for a, b in true if b.second - a.second <= 10 * HOUR_S}
    assert set(moves_by_the_engine(found, "10 h")) == short


def test_the_whole_data_set_has_the_moves_that_it_is_known_for():
    """1246 moves of 31 tags between 8 loggers in the tidy table of both experiments, none faster than ten seconds."""
    with (FOLDER / "chickadees.csv").open() as file:
        table = [
            Read(seconds(row["time"], "%Y-%m-%d %H:%M:%S"), row["logger_id"], row["animal_id"])
            for row in csv.DictReader(file)
        ]
    assert (len(table), len({r.tag for r in table}), len({r.logger for r in table})) == (26_753, 31, 8)
    told = moves_by_the_engine(table, "1000 h")
    assert len(told) == 1246
    assert set(told) == moves(sorted(table))
    assert min(b.second - a.second for a, b in told) > 10
