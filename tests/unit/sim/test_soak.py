"""The soak: its kills, its memory law, its verdict. The run itself is in tests/e2e/test_soak.py."""

import itertools
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction

import click
import pytest
from click.testing import CliRunner

from whenabouts_sim.cli import main
from whenabouts_sim.judge.placement import Landed
from whenabouts_sim.judge.thefts import TheftRule
from whenabouts_sim.soak.command import soak
from whenabouts_sim.soak.kill_plan import LONGEST_DOWN_S, QUIET_S, draw_kills
from whenabouts_sim.soak.memory import LEAST_SAMPLES, ROOM_BYTES, Sample, grows, rss_bytes
from whenabouts_sim.soak.verdict import Found, PairRule, Truth, judged
from whenabouts_sim.stack.run_folder import in_folder
from whenabouts_sim.stack.stack import PartError
from whenabouts_sim.world.clocks import EPOCH_US, GatewayClock
from whenabouts_sim.world.emitted import EmittedFrame
from whenabouts_sim.world.shoppers import CHECKOUT, EXIT, SHELF
from whenabouts_sim.world.world import DOCK, DOOR, SECOND_US

PAIRS = PairRule(DOCK, DOOR, 2 * SECOND_US, Fraction(8, 10))
THEFTS = TheftRule(SHELF, CHECKOUT, EXIT, 20 * SECOND_US)
READERS = (DOCK, DOOR, SHELF, CHECKOUT, EXIT)
CLOCK = GatewayClock(EPOCH_US, 0, 0, (), 1000, 50)
CLOCKS = {reader.gateway: CLOCK for reader in READERS}


def seen(reader, number, key, at_s):
    """A sighting that left its reader."""
    at_us = EPOCH_US + int(at_s * SECOND_US)
    return EmittedFrame(reader.name, number, key, at_us, at_us + 5000)


def row(frame, seq):
    """The reading of a sighting as it lands."""
    reader = next(one for one in READERS if one.name == frame.reader)
    return Landed(reader.gateway, reader.stream, frame.key, 1, seq, frame.true_us - 1000, frame.true_us + 1000)


EMITTED = [seen(DOCK, 0, "A", 1), seen(DOOR, 0, "A", 2), seen(SHELF, 0, "B", 3), seen(EXIT, 0, "B", 8)]
ROWS = [row(frame, seq) for seq, frame in enumerate(EMITTED)]
TRUTH = Truth(READERS, CLOCKS, EMITTED, {})
WELL = Found(ROWS, [(ROWS[0].id, ROWS[1].id)], [(ROWS[2].id, ROWS[3].id)])


def verdict(found=WELL, truth=TRUTH, **more):
    """The verdict of a small run."""
    return judged(PAIRS, THEFTS, truth, found, **more)


def test_kills_leave_begin_and_end_alone_and_each_target_until_it_has_rested():
    """In half an hour everything is killed many times; a seed gives the same kills again."""
    rests_s = {"agent": 8.0, "ingest": 8.0, "job": 45.0}
    kills = draw_kills(5, 1800, rests_s)
    assert kills == draw_kills(5, 1800, rests_s) != draw_kills(6, 1800, rests_s)
    assert kills == tuple(sorted(kills, key=lambda kill: kill.at_s))
    assert all(QUIET_S < kill.at_s < 1800 - QUIET_S and 0 < kill.down_s <= LONGEST_DOWN_S for kill in kills)
    for target, rest_s in rests_s.items():
        mine = [kill for kill in kills if kill.target == target]
        assert len(mine) > 15
        assert all(b.at_s - a.at_s - a.down_s >= rest_s for a, b in itertools.pairwise(mine))


def test_a_run_without_a_fault_is_sound_and_its_numbers_are_told():
    """Also as plain values."""
    found = verdict(kills={"agent": 2}, memory={"ingest": [Sample(1, 1 << 20), Sample(2, 3 << 20)]})
    assert found.sound
    assert (found.made, found.landed, found.pairs, found.thefts.expected_matches) == (4, 4, 1, 1)
    assert found.as_dict()["memory"] == {"ingest": 3 << 20}
    assert "killed: agent 2" in found.text()
    assert found.text().endswith("\nall guarantees held")


@pytest.mark.parametrize(
    ("found", "name"),
    [
        (Found(ROWS[:1] + ROWS[2:], [], WELL.matches), "lost"),
        (Found([*ROWS, ROWS[0]], WELL.pairs, WELL.matches), "repeated"),
        (Found([replace(ROWS[0], t_max=ROWS[0].t_min), *ROWS[1:]], WELL.pairs, WELL.matches), "wrong_stamps"),
        (Found([*ROWS, replace(ROWS[0], seq=9, key="Z")], WELL.pairs, WELL.matches), "wrong_stamps"),
        (Found(ROWS, [], WELL.matches), "pairs_absent"),
        (Found(ROWS, WELL.pairs * 2, WELL.matches), "pairs_repeated"),
        (Found(ROWS, [*WELL.pairs, (ROWS[2].id, ROWS[3].id)], WELL.matches), "pairs_unexpected"),
    ],
)
def test_each_guarantee_that_does_not_hold_is_told(found, name):
    """By its own number."""
    judgement = verdict(found)
    assert getattr(judgement, name)
    assert not judgement.sound
    assert judgement.text().endswith("NOT all guarantees held")


def test_thefts_that_are_missing_or_twice_are_told():
    """As those of pairs are."""
    assert verdict(replace(WELL, matches=[])).thefts.absent == 1
    twice = verdict(replace(WELL, matches=WELL.matches * 2))
    assert twice.thefts.matches_repeated == 1
    assert not twice.sound


def test_a_reading_is_excused_only_while_its_own_agent_was_dead():
    """The span covers when it left the reader; others of the same time must land."""
    at_us = EMITTED[0].last_byte_us
    missing = Found(ROWS[1:], [], WELL.matches)
    excused = verdict(missing, replace(TRUTH, dead={DOCK.gateway: [(at_us - 1, at_us)]}))
    assert (excused.lost, excused.excused, excused.sound) == ((), 1, True)
    assert verdict(missing, replace(TRUTH, dead={DOOR.gateway: [(at_us - 1, at_us)]})).lost == (EMITTED[0].id,)
    assert verdict(missing, replace(TRUTH, dead={DOCK.gateway: [(at_us + 1, at_us + 9)]})).lost == (EMITTED[0].id,)


def test_readings_report_the_sightings_that_must_have_landed_where_that_is_open():
    """Of two reads of a badge in one another's stamps the first may be lost."""
    two = [seen(DOCK, 0, "A", 1), seen(DOCK, 1, "A", 1.0005)]
    truth = Truth(READERS, CLOCKS, two, {DOCK.gateway: [(0, two[0].last_byte_us)]})
    found = verdict(Found([row(two[0], 0)], [], []), truth)
    assert (found.lost, found.excused, found.landed) == ((), 1, 1)


def test_memory_that_grows_without_end_is_told_and_a_level_is_not():
    """A part that is started again begins low; that is no growth."""
    level = [Sample(1, 50_000_000), Sample(11, 80_000_000)] * LEAST_SAMPLES
    assert not grows(level)
    leak = [Sample(200 + n, 50_000_000 + n * ROOM_BYTES // 20) for n in range(3 * LEAST_SAMPLES)]
    assert grows(leak)
    assert not grows(leak[: LEAST_SAMPLES - 1]), "too few tell nothing"
    assert grows([one._replace(age_s=n % 7 * 10) for n, one in enumerate(leak)]), "at each age it needs more"
    found = verdict(memory={"ingest": leak})
    assert found.growing == ("ingest",)
    assert not found.sound


def test_a_part_that_gets_older_by_chance_does_not_grow():
    """It needs more until it is warm, and lives longer in the end."""
    young = [Sample(age_s, 50_000_000 + min(age_s, 25) * 10_000_000) for age_s in range(0, 30, 5)]
    old = [Sample(age_s, 50_000_000 + min(age_s, 25) * 10_000_000) for age_s in range(0, 100, 5)]
    assert not grows(20 * young + 3 * old)


def test_a_part_that_is_killed_no_more_and_leaks_is_told():
    """It gets older than any before, and needs more than the oldest of them."""
    lives = [Sample(age_s, 300_000_000) for age_s in range(0, 60, 5)]
    leak = [Sample(age_s, 300_000_000 + age_s * 2_000_000) for age_s in range(0, 600, 5)]
    assert grows(20 * lives + leak)
    assert grows(leak), "it was never killed"


def test_the_memory_of_a_session_is_that_of_all_its_processes():
    """A process and its child, which hold 30 MB each."""
    hold = "held = bytearray(30_000_000); held[::4096] = bytes(len(held[::4096]))"
    child = f"import subprocess, sys; {hold}; "
    child += f"subprocess.run([sys.executable, '-c', \"{hold}; print('ready', flush=True); input()\"])"
    process = subprocess.Popen(
        [sys.executable, "-c", child], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    )
    try:
        assert process.stdout.readline() == b"ready\n"
        assert 60_000_000 < rss_bytes(process.pid) < 120_000_000
    finally:
        process.communicate(b"\n")
    assert rss_bytes(process.pid) == 0


def test_without_mosquitto_it_says_what_is_missing(monkeypatch, tmp_path):
    """The embedded broker cannot check certificates."""
    monkeypatch.setattr("whenabouts_sim.stack.broker.find_mosquitto", lambda: None)
    done = CliRunner().invoke(main, ["soak", "--seed", "1", "--minutes", "0.5", "--keep", str(tmp_path / "run")])
    assert done.exit_code == 1
    assert "soak: found no mosquitto, expected one; on Debian: apt-get install mosquitto" in done.output


def test_a_folder_that_is_not_empty_is_refused(tmp_path):
    """Before anything is started."""
    (tmp_path / "something").touch()
    done = CliRunner().invoke(soak, ["--keep", str(tmp_path)])
    assert done.exit_code == 2
    assert "expected a new folder" in done.output


def test_a_run_has_a_folder_that_goes_unless_it_is_kept(tmp_path):
    """The kept one may not exist yet."""
    gone = in_folder(None, lambda folder: folder)
    assert not gone.exists()
    kept = in_folder(tmp_path / "a" / "b", lambda folder: folder)
    assert kept == (tmp_path / "a" / "b").resolve()
    assert kept.is_dir()


@pytest.mark.parametrize("error", [PartError("ended"), OSError("ended"), ValueError("ended")])
def test_what_ends_a_run_is_told_in_one_line(error):
    """No traceback, and no folder is left."""

    def run(folder):
        raise error

    with pytest.raises(click.ClickException, match=r"^ended$"):
        in_folder(None, run)
