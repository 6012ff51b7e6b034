"""The lessons on fish at two antennas: their numbers are true of logs and truth."""

import csv
import re
from collections import Counter
from datetime import datetime, timedelta
from itertools import pairwise

import pytest

from reference.predicates import probability
from support.cloud import lessons
from support.cloud.antenna_logs import (
    APART,
    WAYS,
    WITH_PHANTOMS,
    WITHIN,
    engine_heard,
    heard,
    heard_in_every_way,
    joined,
    of_kind,
    passages,
    rows,
    sure,
)

PAIRS, ORDER = lessons.text("orfid"), lessons.text("passage")
DATA = lessons.EXAMPLES / "data" / "river"
LOWER, UPPER = rows(DATA, "lower"), rows(DATA, "upper")


def test_the_rules_that_the_lessons_show_are_those_of_their_file():
    """Its first part in the one, the rest in the other."""
    shown = [*lessons.rules(PAIRS), *lessons.rules(ORDER)]
    assert "\n".join(shown) == (lessons.EXAMPLES / "river.wa").read_text()


def read_truth():
    """The cause of each row and its moment in microseconds since 1970, by its reader and line."""
    with (DATA / "truth.csv").open() as file:
        return {
            (row["reader"], int(row["line"])): (row["what"], microseconds(row["moment"]))
            for row in csv.DictReader(file)
        }


def microseconds(text):
    return (datetime.fromisoformat(text) - datetime(1970, 1, 1)) // timedelta(microseconds=1)


TRUTH = read_truth()


def what(row):
    return TRUTH[row.reader, row.line][0]


def moment(row):
    return TRUTH[row.reader, row.line][1]


def near(a, b, apart):
    """Pairs of equal tags that truly were at most so many milliseconds apart."""
    return {(x, y) for x in a for y in b if x.tag == y.tag and abs(moment(x) - moment(y)) <= 1000 * apart}


def judged(emitted, true):
    """The numbers of a row of a table."""
    return len(emitted), len(true), len(emitted - true), len(true - emitted)


def tags(log):
    """Without false reads."""
    return of_kind(log, "AW")


def test_every_stamp_covers_the_true_moment_of_its_row():
    """Of all rows of both logs, with a minute more where the clock had no reference, which one row needs."""
    assert all(1000 * row.t_min <= moment(row) <= 1000 * row.t_max for row in LOWER + UPPER)
    [unreferenced] = [row for row in LOWER + UPPER if row.t_max - row.t_min > 100_000]
    assert unreferenced.line == 71
    off_us = 1000 * unreferenced.arrived - moment(unreferenced)
    assert round(off_us / 1e6) == 4
    assert "The clock was four seconds off" in PAIRS


def test_the_table_on_pairs_is_true_of_logs_and_truth():
    """Counted again by the definition in fractions: the pairs of a join on ARR, the probable pairs, and the true ones."""
    ghosts = of_kind(UPPER, "P")
    both, echo = near(tags(LOWER), tags(UPPER), APART), near(ghosts, tags(UPPER), WITHIN)
    assert lessons.table(PAIRS) == {
        "both, join on ARR": judged(joined(tags(LOWER), tags(UPPER), APART), both),
        "both, the rule": judged(sure(tags(LOWER), tags(UPPER), APART), both),
        "both, join on ARR, phantoms taken for tags": judged(joined(LOWER, UPPER, APART), near(LOWER, UPPER, APART)),
        "echo, join on ARR": judged(joined(ghosts, tags(UPPER), WITHIN), echo),
        "echo, the rule": judged(sure(ghosts, tags(UPPER), WITHIN), echo),
    }


def test_the_lesson_is_right_about_the_pair_that_never_was():
    """Its distance by ARR and in truth, its stays and probability; and of the pair that the rule misses."""
    both = near(tags(LOWER), tags(UPPER), APART)
    emitted, certain = joined(tags(LOWER), tags(UPPER), APART), sure(tags(LOWER), tags(UPPER), APART)
    [(x, y)] = emitted - both
    assert f"Fish {x.tag}, the one explained above, arrived {abs(y.arrived - x.arrived) / 1000} s apart" in PAIRS
    stays = [(row.departed - row.arrived) / 1000 for row in (x, y)]
    assert f"it\n  stayed {stays[0]} s at one antenna and {stays[1]} s at the other" in PAIRS
    assert f"the probability is {float(probability(x[-2:], y[-2:], -APART, APART)):.4f}" in PAIRS
    assert f"In truth it was {abs(moment(x) - moment(y)) / 1e6:.1f} s" in PAIRS
    [(x, y)] = (emitted & both) - certain
    assert f"a pair with probability {float(probability(x[-2:], y[-2:], -APART, APART)):.4f}, which was true" in PAIRS
    assert f"{len(certain)} pairs of stays of {len({x.tag for x, _ in certain})} fish" in PAIRS


def test_the_lesson_is_right_about_echoes_and_phantoms():
    """The marker's period, both ways of asking at 4 s, what the phantoms are and what leaving them out costs."""
    ghosts = of_kind(UPPER, "P")
    heartbeats = {(x, y) for x, y in joined(ghosts, tags(UPPER), WITHIN) if what(x) == "marker"}
    assert f"What looks like {len(heartbeats)}\n  findings is a rounding" in PAIRS
    assert {abs(moment(x) - moment(y)) for x, y in heartbeats} == {3_002_000}
    assert "the marker's period is 3.002 s" in PAIRS
    emitted, certain, true = (ask(ghosts, tags(UPPER), 4_000) for ask in (joined, sure, near))
    assert certain < emitted
    assert f"Ask for 4 s, and {len(certain)} pairs are emitted both\n  ways" in PAIRS
    assert (len(emitted - certain), len((emitted - certain) & true)) == (2, 1)
    assert "the join emits two more, of which one is true" in PAIRS
    phantoms = Counter(what(row) for row in of_kind(LOWER + UPPER, "P"))
    assert f"mark {phantoms.total()} rows as false. Of these {phantoms['noise']} are noise" in PAIRS
    assert f"{phantoms['marker']} are the marker and {phantoms['fish']} are fish" in PAIRS
    numbers = lessons.table(PAIRS)
    cost = numbers["both, join on ARR, phantoms taken for tags"][1] - numbers["both, join on ARR"][1]
    assert f"costs {cost} true pairs" in PAIRS


def test_the_example_row_of_the_lesson_is_in_the_log_and_its_moment_in_the_truth():
    """The row that is explained, its stamp and its true moment."""
    shown = re.search(r"^S {4}(.*)$", PAIRS, re.M)[1].split()
    [line] = [n for n, x in enumerate((DATA / "lower.txt").read_text().splitlines(), 1) if x.split()[1:] == shown]
    [row] = [row for row in LOWER if row.line == line]
    assert (row.t_min % 60_000, row.t_max % 60_000) == (10_000, 12_200)
    assert f"nearest to the antenna at {moment(row) % 60_000_000 / 1e6:.3f}" in PAIRS


def test_the_passages_of_the_lesson_truly_happened():
    """All of them and no other, each in certain order; by order of arrival few, all one way, most back in time."""
    by_moment = sorted((row for row in LOWER + UPPER if what(row) == "fish"), key=moment)
    fish = of_kind(LOWER + UPPER, "A")
    emitted, naive = passages(sorted(fish, key=lambda row: row.t_min)), passages(fish)
    true = {(a, b) for a, b in passages(by_moment)}
    assert len(emitted) == len(true)
    for a, b in emitted:  # one change of antenna lies between the two reads, those heard once included
        [(x, y)] = [(x, y) for x, y in true if x.tag == a.tag and moment(a) <= moment(x) and moment(y) <= moment(b)]
        assert (x.reader, y.reader) == (a.reader, b.reader)
    assert all(a.t_max < b.t_min for a, b in emitted)
    assert f"These {len(emitted)} passages truly happened" in ORDER
    ways = Counter((a.reader, b.reader) for a, b in emitted)
    for (a, b), count in ways.items():
        site = {"lower": "AAA", "upper": "BBB"}
        assert f"{count} tags@{site[a]}/{a} -> tags@{site[b]}/{b}\n" in ORDER
    back = sum(b.arrived < a.arrived for a, b in naive)
    assert {(a.reader, b.reader) for a, b in naive} == {("lower", "upper")}
    assert f"emits {len(naive)} passages, all from AAA to BBB. {back} of them go back in time, and " in ORDER
    assert f"{len(emitted - naive)} of the {len(emitted)} true ones are missing" in ORDER


def test_the_table_on_order_is_true_of_log_and_truth():
    """Every row counted again by its definition, the probability as a fraction of areas."""

    def true(kinds):
        fish = of_kind(UPPER, "A")
        return {(m, f) for m in of_kind(UPPER, kinds) for f in fish if 0 < moment(f) - moment(m) <= 1000 * WITHIN}

    emitted = heard_in_every_way(UPPER)
    assert lessons.table(ORDER) == {
        name: judged(pairs, true("WP" if name == WITH_PHANTOMS else "W")) for name, pairs in emitted.items()
    }
    wrong = emitted["heard, ARR in the order of rows"] - emitted["heard, ARR as a point"]
    assert f"So {len(wrong)} pairs are emitted the wrong way round" in ORDER
    back = sum(b.arrived < a.arrived for a, b in pairwise(UPPER))
    assert f"\n  {back} places of this log" in ORDER


@pytest.mark.parametrize("mode", ["CERTAIN", "OVER 90 %", "POSSIBLE"])
def test_the_engine_emits_what_the_definition_gives_in_every_mode(mode):
    """The lesson's rule on the rows as the log has them, and backwards."""
    log = tags(UPPER)
    expected = heard(log, "W", WAYS[f"heard, {mode}"])
    for arrival in (log, log[::-1]):
        emitted = engine_heard(arrival, mode)
        assert len(emitted) == len(expected)
        assert set(emitted) == expected
