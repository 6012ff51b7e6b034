"""Rows of readings that wait for the clock: what a next agent reads of them, in this run of the machine and in the next."""

import sqlite3

import pytest

from support.edge.pending import undated
from whenabouts_edge.store.waiting import WaitingRows, this_run


@pytest.fixture
def db(tmp_path):
    connection = sqlite3.connect(tmp_path / "waiting.sqlite")
    yield connection
    connection.close()


def reading(key, at_us, vclock=(0,), **more):
    one = undated(key, at_us, at_us + 5)
    one.attrs, one.vclock = {"rssi": -50}, vclock
    for name, value in more.items():
        setattr(one, name, value)
    return one


def write(rows, *some):
    rows.numbered(some)
    rows.write(some)


def test_a_next_agent_reads_what_was_written_in_order(db):
    """Every field; within the run the window is of the clock that still runs."""
    write(
        WaitingRows(db, "run 1"), reading("b", 7, value=2.5, unit="Cel", kind="measure", vclock=(3, 0)), reading("a", 8)
    )
    one, two = WaitingRows(db, "run 1").read("hall", "gw")
    assert (one.key, one.earliest_us, one.latest_us, one.value, one.unit, one.kind, one.vclock, one.attrs) == (
        "b", 7, 12, 2.5, "Cel", "measure", (3, 0), {"rssi": -50})  # fmt: skip
    assert (one.kept.last_us, two.key, two.kept.row) == (None, "a", one.kept.row + 1)


def test_a_next_agent_says_that_a_state_is_of_an_earlier_start(db):
    """It stores the state under its own boot."""
    write(WaitingRows(db, "run 1"), reading("b", 7), reading("a", 8, kind="state", vclock=(3, 0)))
    assert [one.attrs for one in WaitingRows(db, "run 1").read("hall", "gw")] == [
        {"rssi": -50}, {"rssi": -50, "$earlier": True}]  # fmt: skip


@pytest.mark.parametrize("run", ["run 2", ""])
def test_after_a_start_a_row_has_what_was_known_of_its_run(db, run):
    """The last moment of that run, and the time that was known before it; nothing is known of a run without a name."""
    first = WaitingRows(db, "run 0")
    first.know(500)
    second = WaitingRows(db, "" if not run else "run 1")
    write(second, reading("a", 7), reading("b", 40))
    second.know(900)  # after its readings: does not cover what came before them
    rows = WaitingRows(db, run).read("hall", "gw")
    assert [(one.kept.last_us, one.kept.since_us) for one in rows] == [(45, 500)] * 2


def test_rows_go_on_behind_those_of_before(db):
    """A new row never takes the place of one that waits."""
    write(WaitingRows(db, "run 1"), reading("a", 1))
    write(WaitingRows(db, "run 1"), reading("b", 2))
    assert [one.key for one in WaitingRows(db, "run 1").read("hall", "gw")] == ["a", "b"]


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"stream": "", "key": null}', '{"stream": "s", "vclock": 3}'])
def test_a_row_that_cannot_be_read_is_reported_and_stops_nothing(db, caplog, text):
    """It stays where it is."""
    rows = WaitingRows(db, "run 1")
    write(rows, reading("a", 1), reading("b", 2))
    db.execute("UPDATE waiting SET reading = ? WHERE row = 1", (text,))
    assert [one.key for one in rows.read("hall", "gw")] == ["b"]
    assert rows.unreadable == 1
    assert [(one.event, one.fields["row"]) for one in caplog.records] == [("spool.bad_row", 1)]


def test_the_kernel_names_this_run():
    """The name does not change between calls."""
    assert this_run() == this_run() != ""


def test_a_damaged_row_changes_nothing_of_the_others(db):
    """Its window seemed to end later than its run was known to last, so that the others had to be older than they are."""
    rows = WaitingRows(db, "run 1")
    write(rows, reading("a", 7), reading("b", 40))
    db.execute("UPDATE waiting SET latest_us = latest_us | 1 << 20 WHERE row = 1")
    [one] = WaitingRows(db, "run 2").read("hall", "gw")
    assert (one.key, one.kept.last_us) == ("b", 45)
