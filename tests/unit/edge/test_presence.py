"""Presence in the agent: pending readings, and how long a reader session knows its reader to have scanned."""

import contextlib
import io

import pytest

from support.board.micropython import run_on_board
from whenabouts_edge.clock import ClockSample
from whenabouts_edge.config.load import parse
from whenabouts_edge.config.settings import PresenceConfig, ReaderConfig
from whenabouts_edge.readers.host_session import Batch, HostSession, date
from whenabouts_edge.readers.pending import PendingReading
from whenabouts_edge.readers.port import Chunk
from whenabouts_edge.readers.presence import PresenceHost
from whenabouts_edge.readers.visits import Visits
from whenabouts_hardware import READERS
from whenabouts_hardware.readers.m6e_frames import KEEPALIVE

S = 1_000_000
CLOCK = ClockSample(0, 5 * S, 1000, "bounded")


def read(key, at_us, vclock=(0,)):
    one = PendingReading("dock/tags", "tag", at_us, at_us + 10, key)
    one.vclock = vclock
    date(one, "hall", "gw", CLOCK)
    return one


def utc(earliest_us, latest_us):
    stamp = CLOCK.to_utc(earliest_us, latest_us)
    return stamp.t_min, stamp.t_max


def test_a_visit_is_two_readings_with_the_clocks_of_its_reads():
    """
    reads   1 s  2 s                 left 2 s .. 2 s + 1 s + 10 us, found when that is clear, which is reach_us behind
    """
    host = PresenceHost(PresenceConfig("dock/presence", 1000, ("X",)), "hall", "gw", 500, 3 << 32)
    reads = [read("A", S, (3,)), read(None, S), read("A", 2 * S, (4,))]
    [enter], gone = host.through(Batch(reads, 2 * S + 501, 0, 2 * S + 501), CLOCK)
    first = enter.numbered(1, 0)
    assert (first.stream, first.kind, first.key, first.value, first.attrs) == (
        "dock/presence", "tag", "A", "enter", {"visit": 3 << 32})  # fmt: skip
    assert (first.t_min, first.t_max, first.vclock) == (*utc(S, S + 10), (3,))
    [absent] = [one.numbered(1, 1) for one in gone]
    assert (absent.kind, absent.key, absent.value, absent.vclock) == ("absent", "X", "absent", ())
    assert (absent.t_min, absent.t_max) == utc(0, S)
    assert host.through(Batch([], 3 * S + 10 + 500, 0, 9 * S), CLOCK) == ([], [])
    _, [leave] = host.through(Batch([], 3 * S + 11 + 500, 0, 9 * S), CLOCK)
    last = leave.numbered(1, 2)
    assert (last.kind, last.key, last.value, last.vclock) == ("absent", "A", "leave", (4,))
    assert (last.t_min, last.t_max) == utc(2 * S, 3 * S + 10)
    # 50 ppm of drift: one second less ten may be fifty microseconds shorter, two and ten a hundred and one longer.
    assert last.attrs == {"visit": 3 << 32, "reads": 2, "stay_min_us": S - 10 - 50, "stay_max_us": 2 * S + 10 + 101}
    assert host.status() == {
        "present": 0, "entered": 1, "left": 1, "absent": 1, "untracked": 0, "hurried": 0, "late": 0}  # fmt: skip


def test_the_length_of_a_visit_is_wider_by_the_slewing_while_it_lasted():
    """A time service ran the host's clock 3 ms fast before the visit, then 40 ms, and 5 ms since the last sample."""
    samples = (0, 0), (4 * S, 3000), (9 * S, 3000), (11 * S, 43_000)
    before = ClockSample(9 * S, 5 * S, 1000, "bounded", slewed=samples[:3])
    after = ClockSample(11 * S, 5 * S, 1000, "bounded", slewed=samples, pushed_us=5000)
    host = PresenceHost(PresenceConfig("dock/presence", 1000), "hall", "gw", 0, 0)
    host.through(Batch([read("A", 10 * S), read("A", 10 * S + 100)], 10 * S + 200, 0, 10 * S + 200), before)
    _, [leave] = host.through(Batch([], 12 * S, 0, 12 * S), after)
    assert leave.attrs["stay_max_us"] == S + 110 + 51 + 45_000
    assert leave.attrs["stay_min_us"] == 0


def test_what_waits_is_reported_at_the_end_and_who_is_there_has_not_left():
    """A read that waits for its order enters its tag."""
    host = PresenceHost(PresenceConfig("p", 1000), "hall", "gw", 5 * S, 1 << 32)
    assert host.through(Batch([read("A", S)], 2 * S, 0, 2 * S), CLOCK) == ([], [])
    [enter], gone = host.finish(CLOCK)
    assert (enter.key, gone) == ("A", [])
    assert host.status()["present"] == 1


def link(kind, listen_only=False):
    facts = READERS[kind]
    config = ReaderConfig("r", kind, "x", "r/tags", facts.baud, 1000, facts.latency_us, listen_only)
    return HostSession(config, "bench", "gw", lambda ns: ns // 1000, 7)


WAITED_US = 5000  # at most, until it was read


def keepalive(one, at_us):
    one.take(Chunk(KEEPALIVE, (at_us - WAITED_US) * 1000, at_us * 1000), CLOCK)


def test_a_reader_that_sends_without_tags_has_scanned_until_its_last_message():
    """
    m6e   |open   k k k     three seconds without a message     k
    """
    one = link("m6e")
    reach_us = one.session.reach_us
    assert (one.since_us, one.looked_us(9 * S)) == (7, 7 - reach_us)
    for at_us in (S, 2 * S, 4 * S):
        keepalive(one, at_us)
    keepalive(one, 5 * S)
    assert (one.since_us, one.looked_us(9 * S)) == (7, 5 * S - WAITED_US - reach_us), (
        "what it had seen may be on its way"
    )
    assert [one.scanning_since_us(at_us) for at_us in (6 * S, 8 * S + 2)] == [7, 8 * S + 2], "it does not scan any more"
    keepalive(one, 8 * S + 2)
    assert (one.since_us, one.looked_us(9 * S)) == (8 * S + 3, 8 * S + 2 - WAITED_US - reach_us)


def test_a_message_that_waited_to_be_read_may_have_come_at_any_time_before():
    """The agent was slow: the reader may have been silent for 5.8 s, of 3 s that say that it does not scan."""
    one = link("m6e")
    one.take(Chunk(KEEPALIVE, S * 1000, 3_900_000_000), CLOCK)
    assert one.looked_us(9 * S) == S - one.session.reach_us
    one.take(Chunk(KEEPALIVE, 6_780_000_000, 6_800_000_000), CLOCK)
    assert one.since_us == 6_800_001


@pytest.mark.parametrize(("kind", "listen_only"), [("rdm6300", False), ("m6e", True)])
def test_the_silence_of_other_readers_is_taken_for_absence(kind, listen_only):
    """One that only sends tags, and one that somebody else commands."""
    one = link(kind, listen_only)
    assert (one.since_us, one.looked_us(9 * S)) == (7, 9 * S)


def test_which_readers_send_without_tags():
    """Those that are polled, and those that report cycles without tags."""
    speaks = {kind: facts.speaks_us for kind, facts in READERS.items()}
    assert speaks == {
        "m6e": 3 * S, "yrm100": 3 * S, "pn532": 810_000, "uhfreader18": 3_945_000,
        "rdm6300": None, "id12la": None, "line": None, "llrp": None, "impinj": None,
        "zebra": None,
    }  # fmt: skip


def test_presence_is_configured_for_each_reader():
    """Off by default; a stream beside the reader's own."""
    text = 'site="s"\ngateway="g"\n[[reader]]\nname="dock"\nkind="m6e"\nport="a"\n'
    assert parse(text).readers[0].presence is None
    given = parse(text + 'leave_ms = 900\nexpected = ["04A1"]\n').readers[0].presence
    assert given == PresenceConfig("dock/presence", 900, ("04A1",))


def test_nothing_to_count_is_refused():
    """A time or a room of nothing."""
    for wrong in ((0, 1), (1, 0)):
        with pytest.raises(ValueError, match="expected 1 or more of both"):
            Visits(wrong[0], (), wrong[1])


def test_visits_are_the_same_on_a_board(tmp_path):
    """A real MicroPython VM with a board's heap gives the same visits as this machine, with times of ten years of uptime."""
    program = """
from whenabouts_edge.readers.visits import Visits
visits, at = Visits(70, ("x", "k1"), 9), 10**15
visits.advance(at, at, at)
state = 1
for n in range(3000):
    state = state * 48271 % 2147483647
    at += state % 17
    if state % 5:
        visits.read("k%d" % (state // 7 % 13), at - state % 23, at + state % 31, n)
    if n % 3 == 0:
        for c in visits.advance(at - 40, at if state % 97 == 0 else 0, at):
            print(c.event, c.key, c.earliest_us, c.latest_us, c.visit, c.reads, c.stay_us, c.mark)
print(visits.untracked, visits.late, visits.present)
"""
    script = tmp_path / "visits.py"
    script.write_text(program)

    with contextlib.redirect_stdout(io.StringIO()) as here:
        exec(compile(program, "visits", "exec"), {})
    assert here.getvalue().count("leave") > 50
    assert run_on_board(script) == here.getvalue()
