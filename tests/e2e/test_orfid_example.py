"""The lesson on fish at two antennas: its commands print what it shows, and its table is true of the raw logs."""

import re
from fractions import Fraction

import pytest

from reference.within import probability
from support import lessons
from support.paths import REPOSITORY, shared_dir

LESSON = (REPOSITORY / "docs" / "examples" / "orfid.md").read_text(encoding="utf-8")
DATA = shared_dir() / "data" / "orfid-multireader"


@pytest.mark.timeout(600)
def test_the_commands_of_the_lesson_print_what_it_shows(tmp_path):
    """Every line, in order, in an empty folder; Spark runs twice."""
    assert lessons.repeat(tmp_path, LESSON, DATA) >= 8


def rows(reader):
    """(tag, type, arrival, departure) of a raw log in milliseconds, read without any code of the project."""
    found = []
    for line in (DATA / f"reader_{reader}.txt").read_text().splitlines()[1:]:
        _, arrived, reference, stayed, kind, tag, *_ = line.split("\t")
        assert reference == "G"
        day, clock = arrived.split()
        begin = 86_400_000 * int(day[-2:]) + milliseconds(clock)
        found.append((tag, kind, begin, begin + milliseconds(stayed)))
    return found


def milliseconds(clock):
    """h:m:s.f of a day; these logs print three decimals."""
    hours, minutes, seconds = clock.split(":")
    assert re.fullmatch(r"\d\d\.\d{3}", seconds)
    return (int(hours) * 60 + int(minutes)) * 60_000 + int(seconds.replace(".", ""))


def stamp(row):
    """What the row covers: a tenth before, a tenth for each number after."""
    return row[2] - 100, row[3] + 200


def compared(a, b, d):
    """Pairs of equal tags by arrivals within d, and those that are sure to 80 %, as sets of (row, row)."""
    joined, sure = set(), set()
    for x in a:
        for y in b:
            if x[0] == y[0] and abs(x[2] - y[2]) <= d + 20_000:
                if abs(x[2] - y[2]) <= d:
                    joined.add((x, y))
                if probability(stamp(x), stamp(y), d) >= Fraction(4, 5):
                    sure.add((x, y))
    return joined, sure


def counted(joined, sure):
    return len(joined), len(sure), len(joined - sure), len(sure - joined)


def test_the_table_of_the_lesson_is_true_of_the_raw_logs():
    """Counted anew from the text files by the definition in fractions: what a join on ARR reports and what is sure."""
    one, two = rows(1), rows(2)
    tags = [[x for x in side if x[1] != "P"] for side in (one, two)]
    everything, _ = compared(one, two, 180_000)
    joined, sure = compared(*tags, 180_000)
    fish = [{pair for pair in pairs if pair[0][1] == "A"} for pairs in (joined, sure)]
    assert lessons.table(LESSON) == {
        "passage, phantoms taken for tags": counted(everything, sure),
        "passage, phantoms left out": counted(joined, sure),
        "passage, fish only": counted(*fish),
        "echo": counted(*compared([x for x in two if x[1] == "P"], tags[1], 3_000)),
    }


def test_what_the_lesson_says_beside_its_table_is_true():
    """The one fish, its distance and probability; that at 4 s both ways of asking agree; how many pairs are of phantoms."""
    tags = [[x for x in rows(n) if x[1] != "P"] for n in (1, 2)]
    [(x, y)] = {pair for pair in compared(*tags, 180_000)[0] if pair[0][1] == "A"}
    p = probability(stamp(x), stamp(y), 180_000)
    assert f"Tag {x[0]} arrived {(y[2] - x[2]) / 1000} s apart" in LESSON
    assert f"the probability is {float(p):.4f}" in LESSON
    assert f"stayed\n  {(x[3] - x[2]) / 1000} s at one antenna and {(y[3] - y[2]) / 1000} s at the other" in LESSON
    joined, sure = compared([r for r in rows(2) if r[1] == "P"], tags[1], 4_000)
    assert joined == sure
    numbers = lessons.table(LESSON)
    phantoms = numbers["passage, phantoms taken for tags"][0] - numbers["passage, phantoms left out"][0]
    assert f"{phantoms} pairs come from false reads" in LESSON


def test_the_example_row_of_the_lesson_is_in_the_log():
    """The row that is explained is a real one."""
    day = 17 * 86_400_000
    row = ("900_230000087400", "A", day + milliseconds("04:51:22.400"), day + milliseconds("04:51:24.200"))
    assert row in rows(1)
