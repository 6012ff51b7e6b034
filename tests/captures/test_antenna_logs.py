"""Logs of Oregon RFID readers at a real river: every row is a reading; the statements of the page on real logs are true."""

from itertools import pairwise

import pytest
from click.testing import CliRunner

from reference.predicates import probability
from support.cloud import lessons
from support.cloud.antenna_logs import (
    APART,
    WAYS,
    WITHIN,
    Row,
    engine_heard,
    heard,
    heard_in_every_way,
    joined,
    of_kind,
    passages,
    rows,
    sure,
)
from support.cloud.imported_logs import check_every_row, marker_stamp_errors_s
from support.files.captures import folder
from whenabouts_cloud.commands.exchange.importing import imports

PAGE = lessons.section(lessons.text("real-logs"), "Fish at two antennas")
DATA = folder("orfid-multireader")


@pytest.fixture(scope="module")
def one() -> list[Row]:
    """The log of the first reader."""
    return rows(DATA, "reader_1")


@pytest.fixture(scope="module")
def two() -> list[Row]:
    """The log of the second reader."""
    return rows(DATA, "reader_2")


@pytest.mark.parametrize(
    ("name", "count", "unsure"), [("reader_1", 460, 0), ("reader_2", 8590, 0), ("reader_3", 1027, 1)]
)
def test_every_row_of_the_real_logs_is_a_reading(name, count, unsure):
    """Counts as the table of the data set says; identities are distinct; the departure order of the log is kept."""
    check_every_row(DATA / f"{name}.txt", count, unsure)


def test_the_unreferenced_row_of_the_real_log_covers_the_signal_of_its_marker():
    """reader_3 hears its marker once a minute: the row at 16:14:01.8 U belongs to a signal that lies 3 to 5 s before it."""
    assert marker_stamp_errors_s(DATA / "reader_3.txt", "0000_000000004978") == [3.0, 5.1]
    assert "its stamp is 3 to 5 s after that signal" in PAGE


def test_a_report_of_the_older_form_is_refused(tmp_path):
    """Its table has other columns; no row of it lands."""
    old, landing = DATA / "orfid_old_data_file.txt", tmp_path / "landing"
    result = CliRunner().invoke(imports, ["orfid", str(old), "--landing", str(landing)])
    assert (result.exit_code, "found no head line" in result.output) == (1, True)
    assert not landing.exists()


def counted(emitted, certain):
    """The numbers of a row of the tables."""
    return len(emitted), len(certain), len(emitted - certain), len(certain - emitted)


def tags(readings):
    """Without false reads."""
    return [row for row in readings if row.kind != "P"]


def test_the_tables_of_the_page_are_true_of_the_raw_logs(one, two):
    """Pairs by plain timestamps and certain pairs, recounted from the text files by the definitions, in fractions."""
    emitted, certain = joined(tags(one), tags(two), APART), sure(tags(one), tags(two), APART)
    fish = ({pair for pair in pairs if pair[0].kind == "A"} for pairs in (emitted, certain))
    echo = (ask(of_kind(two, "P"), tags(two), WITHIN) for ask in (joined, sure))
    in_order = heard_in_every_way(two)
    assert lessons.table(PAGE) == {
        "both, phantoms taken for tags": counted(joined(one, two, APART), certain),
        "both, phantoms left out": counted(emitted, certain),
        "both, fish only": counted(*fish),
        "echo": counted(*echo),
        **{name: counted(pairs, in_order["heard, OVER 90 %"]) for name, pairs in in_order.items()},
    }
    wrong = in_order["heard, ARR in the order of rows"] - in_order["heard, ARR as a point"]
    assert f"and {len(wrong)} pairs are emitted the wrong way round" in PAGE
    back = sum(b.arrived < a.arrived for a, b in pairwise(two))
    assert f"at {back} places of this log" in PAGE


def test_what_the_page_says_of_pairs_beside_its_table_is_true(one, two):
    """The one fish, its distance and probability; that at 4 s both ways of asking agree; how many pairs are of phantoms."""
    [(x, y)] = {pair for pair in joined(tags(one), tags(two), APART) if pair[0].kind == "A"}
    assert f"Tag {x.tag} arrived {(y.arrived - x.arrived) / 1000} s apart" in PAGE
    assert f"the probability is {float(probability(x[-2:], y[-2:], -APART, APART)):.4f}" in PAGE
    stays = [(row.departed - row.arrived) / 1000 for row in (x, y)]
    assert f"it stayed {stays[0]} s at one antenna and\n  {stays[1]} s at the other" in PAGE
    ghosts = of_kind(two, "P")
    assert joined(ghosts, tags(two), 4_000) == sure(ghosts, tags(two), 4_000)
    numbers = lessons.table(PAGE)
    phantoms = numbers["both, phantoms taken for tags"][0] - numbers["both, phantoms left out"][0]
    assert f"{phantoms} of the pairs above come from them" in PAGE
    assert f"marks {len(of_kind(one + two, 'P'))} rows of these two logs as phantoms" in PAGE


def test_the_passages_of_the_page_are_those_of_the_raw_logs(one, two):
    """Passages: seven, each in certain order; by order of arrival four, all one way, three back in time, six missed."""
    fish = of_kind(one + two, "A")
    true, naive = passages(sorted(fish, key=lambda row: row.t_min)), passages(fish)
    for a, b in true:
        assert f" {a.tag} tags@{'AAA' if a.reader == 'reader_1' else 'BBB'}/{a.reader} -> tags@" in PAGE
        assert a.t_max < b.t_min
    assert PAGE.count(" -> ") == len(true) == 7
    assert (len(naive), len(naive & true)) == (4, 1)
    assert {(a.reader, b.reader) for a, b in naive} == {("reader_1", "reader_2")}
    assert sum(b.arrived < a.arrived for a, b in naive) == 3


@pytest.mark.parametrize("mode", ["CERTAIN", "OVER 90 %", "POSSIBLE"])
def test_the_engine_emits_what_the_definition_gives_in_every_mode(two, mode):
    """The rule on the rows as the log has them, and backwards."""
    log = of_kind(two, "AW")
    expected = heard(log, "W", WAYS[f"heard, {mode}"])
    for arrival in (log, log[::-1]):
        by_engine = engine_heard(arrival, mode)
        assert len(by_engine) == len(expected)
        assert set(by_engine) == expected
