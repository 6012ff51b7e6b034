"""The lesson on the direction of fish: its commands print what it shows, and its numbers are true of the raw logs."""

import re
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pytest

from support import lessons
from support.paths import REPOSITORY, shared_dir
from whenabouts_cloud.cep import Pattern, detect

LESSON = (REPOSITORY / "docs" / "examples" / "passage.md").read_text(encoding="utf-8")
DATA = shared_dir() / "data" / "orfid-multireader"
WITHIN = 3_000


class Row(NamedTuple):
    """A row of a log, milliseconds; `t_min` and `t_max` with what the printed tenths leave open."""

    reader: int
    number: int
    tag: str
    kind: str
    arrived: int
    t_min: int
    t_max: int


@pytest.mark.timeout(900)
def test_the_commands_of_the_lesson_print_what_it_shows(tmp_path):
    """Every line, in order, in an empty folder."""
    assert lessons.repeat(tmp_path, LESSON, DATA) == 5


def milliseconds(clock):
    hours, minutes, seconds = clock.split(":")
    return (int(hours) * 60 + int(minutes)) * 60_000 + int(seconds.replace(".", ""))


def rows(reader):
    """The rows of a log in the order in which they are written, by no code of the project."""
    found = []
    for number, line in enumerate((DATA / f"reader_{reader}.txt").read_text().splitlines()[1:]):
        _, stamp, _, stayed, kind, tag, *_ = line.split("\t")
        day, clock = stamp.split()
        arrived = 86_400_000 * int(day[-2:]) + milliseconds(clock)
        found.append(Row(reader, number, tag, kind, arrived, arrived - 100, arrived + milliseconds(stayed) + 200))
    return found


def passages(found):
    """Two rows of a tag in a row at different readers, in the order given."""
    last = {}
    told = set()
    for row in found:
        before = last.get(row.tag)
        if before and before.reader != row.reader:
            told.add((before, row))
        last[row.tag] = row
    return told


def test_the_passages_of_the_lesson_are_those_of_the_raw_logs():
    """Seven, each shown with its direction; by order of arrival four, all one way, three back in time, six missed."""
    fish = [row for reader in (1, 2) for row in rows(reader) if row.kind == "A"]
    true, naive = passages(sorted(fish, key=lambda row: row.t_min)), passages(fish)
    shown = re.findall(r"^\d\d:\d\d:\d\d (\S+) tags@\w+/reader_(\d) -> tags@\w+/reader_(\d)$", LESSON, re.M)
    assert sorted(shown) == sorted((a.tag, str(a.reader), str(b.reader)) for a, b in true)
    assert all(a.t_max < b.t_min for a, b in true)
    assert (len(true), len(naive), len(naive & true)) == (7, 4, 1)
    assert {(a.reader, b.reader) for a, b in naive} == {(1, 2)}
    assert sum(b.arrived < a.arrived for a, b in naive) == 3
    phantoms = sum(row.kind == "P" for reader in (1, 2) for row in rows(reader))
    assert f"marks {phantoms} of these rows as false reads" in LESSON


def probability(a, b):
    """P(0 < Y - X <= WITHIN), X and Y uniform in two stamps, by areas."""
    width, height = a.t_max - a.t_min, b.t_max - b.t_min

    def below(z):
        """The area where y <= x + z, integrated over x."""

        def integral(x):
            over = max(0, x + z - b.t_min)
            return Fraction(min(over, height) ** 2, 2) + height * max(0, over - height)

        return integral(a.t_max) - integral(a.t_min)

    return (below(WITHIN) - below(0)) / (width * height)


WAYS = {
    "heard, CERTAIN": lambda m, f: m.t_max < f.t_min and f.t_max - m.t_min <= WITHIN,
    "heard, OVER 90 %": lambda m, f: probability(m, f) >= Fraction(9, 10),
    "heard, POSSIBLE": lambda m, f: m.t_min < f.t_max and f.t_min - m.t_max <= WITHIN,
    "heard, ARR as a point": lambda m, f: 0 < f.arrived - m.arrived <= WITHIN,
    "heard, ARR in the order of rows": lambda m, f: m.number < f.number and f.arrived - m.arrived <= WITHIN,
}


def pairs(log, markers, way):
    """(marker, fish) rows of one log that a way of asking joins; what is a minute apart belongs to no pair."""
    fish = [row for row in log if row.kind == "A"]
    near = ((m, f) for f in fish for m in log if m.kind in markers and abs(m.arrived - f.arrived) < 60_000)
    return {pair for pair in near if way(*pair)}


def test_the_table_of_the_lesson_is_true_of_the_raw_log():
    """Every row counted anew by its definition, the probability as a fraction of areas."""
    log = rows(2)
    told = {name: pairs(log, "W", way) for name, way in WAYS.items()}
    told["heard, the same with phantoms taken for markers"] = pairs(log, "WP", WAYS["heard, ARR in the order of rows"])
    sure = told["heard, OVER 90 %"]
    expected = {name: (len(of), len(sure), len(of - sure), len(sure - of)) for name, of in told.items()}
    assert lessons.table(LESSON) == expected
    wrong = told["heard, ARR in the order of rows"] - told["heard, ARR as a point"]
    assert f"So {len(wrong)} pairs are told the wrong way round" in LESSON
    back = sum(b.arrived < a.arrived for a, b in pairwise(log))
    assert f"\n  {back} places of this log" in LESSON


@pytest.mark.parametrize("mode", ["CERTAIN", "OVER 90 %", "POSSIBLE"])
def test_the_engine_tells_what_the_definition_gives_in_every_mode(mode):
    """The lesson's rule on the rows as the log has them, and backwards."""
    pattern = Pattern.parse(f"SEQ(marker, fish) WITHIN {WITHIN} ACROSS KEYS {mode}", unit_us=1000)
    log = [row for row in rows(2) if row.kind in "AW"]
    expected = pairs(log, "W", WAYS[f"heard, {mode}"])
    for arrival in (log, log[::-1]):
        types = np.array([int(row.kind == "A") for row in arrival])
        t, t_max = (np.array([row[i] * 1000 for row in arrival]) for i in (5, 6))
        found = detect(pattern, ["marker", "fish"], types, np.zeros(len(t), np.int64), t, t_max=t_max)
        assert len(found) == len(expected)
        assert {(arrival[m], arrival[f]) for m, f in found} == expected
