"""Defects that simulated schedules have found, each by the smallest program that showed it."""

import asyncio
from random import Random

import pytest

from support.edge.pending import pending, several, undated
from whenabouts_cloud.ingest.dead_letters import DeadLetters
from whenabouts_cloud.ingest.landing_writer import Landing
from whenabouts_cloud.landing.damage import check
from whenabouts_cloud.landing.files import data_files
from whenabouts_cloud.landing.repair import locked, repair
from whenabouts_edge.readers.thread import MAX_WAITING
from whenabouts_edge.store.gaps import Gap
from whenabouts_edge.store.intake import Intake
from whenabouts_edge.store.spool import Spool
from whenabouts_protocol import Reading
from whenabouts_sim.chaos.machine.disk import Disks
from whenabouts_sim.chaos.sums import result_of

SEEDS = range(30)


@pytest.fixture
def disk(tmp_path):
    disks = Disks(tmp_path)
    with disks.in_use():
        yield disks.add("machine")


def test_a_look_at_a_port_without_readings_gives_back_no_room():
    """While UTC was not known each of them ended in an error in the log, and the port did not count as clear."""

    async def scenario() -> None:
        async def nothing(*_):
            return None

        intake = Intake(nothing, lambda: None, 20, nothing)
        intake.reserve(MAX_WAITING)
        intake.release(0)
        intake.offer(several(["no room"]))
        assert intake.refused == 1
        intake.release(1)
        intake.offer(several(["room"]))
        assert (intake.refused, intake.waiting) == (1, 1)

    asyncio.run(scenario())


@pytest.mark.parametrize("kept", [False, True], ids=["counted in memory", "counted on disk"])
def test_a_reading_that_waited_for_utc_is_counted_or_comes_again_never_both(tmp_path, kept):
    """A full spool refused it, a gap reading counted it, and after a restart it landed behind its gateway's watermark."""
    spool = Spool(tmp_path / "spool.sqlite", 1 << 20, "run")
    waits = undated("k", 5, 10)
    spool.waiting.numbered([waits])
    spool.waiting.write([waits])
    waits.stamp = 5, 10, "bounded"
    gap = Gap.of(waits)
    if kept:
        spool.keep_gaps([gap])
    else:
        spool.append([], [gap])
    assert spool.waiting.read("hall", "gw") == []
    spool.close()


def test_a_reading_that_was_refused_before_its_row_was_written_gets_no_row(tmp_path):
    spool = Spool(tmp_path / "spool.sqlite", 1 << 20, "run")
    waits = undated("k", 5, 10)
    spool.waiting.numbered([waits])
    waits.stamp = 5, 10, "bounded"
    spool.keep_gaps([Gap.of(waits)])
    spool.waiting.write([waits])
    assert spool.waiting.read("hall", "gw") == []
    spool.close()


def test_a_power_cut_leaves_the_folder_of_a_spool(disk):
    """The folder's own name was not synced: with it went everything that had been stored."""
    for seed in SEEDS:
        path = disk.root / f"state-{seed}" / "spool.sqlite"
        spool = Spool(path, 1 << 20, "run")
        spool.append(several(["a", "b"]))
        disk.cut_power(Random(seed))
        spool.close()
        again = Spool(path, 1 << 20, "run 2")
        assert again.state.readings == 2
        again.close()


def test_a_power_cut_leaves_a_landing_whose_first_ingest_was_killed_at_its_start(disk):
    """It had made folders and not synced their names; the next one found them, and acknowledged what it wrote there."""
    for seed in SEEDS:
        folder = disk.root / f"landing-{seed}"
        for name in ("_frontier", "_ingest", "_dead", "hour=2026-01-01T00"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        landing = Landing(folder)
        landing.write([_reading()], [("hall/gw", 1, 0, 0)], 1_767_225_600_000_000)
        landing.close()
        disk.cut_power(Random(seed))
        assert len(list(data_files(folder))) == 1


@pytest.mark.parametrize("killed", [False, True])
def test_a_power_cut_leaves_dead_letters(disk, killed):
    """The name of their file was not synced: with it went letters of messages that had been acknowledged.

    killed: an earlier ingest made the file and was killed before it had synced the name.
    """
    for seed in SEEDS:
        folder = disk.root / f"landing-{seed}"
        landing = Landing(folder)
        path = folder / "_dead" / "letters-0001.jsonl"
        if killed:
            path.write_bytes(b'{"topic": "t"}\n')
        letters = DeadLetters(landing.letters())
        letters.add("wa/2/hall/gw/obs", b"noise", "undecodable", "", 1)
        letters.flush()
        landing.close()
        disk.cut_power(Random(seed))
        assert b"wa/2/hall/gw/obs" in path.read_bytes()


def _reading() -> Reading:
    one = pending("k", origin=("hall", "gw"))
    return one.numbered(1, 0)


@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(68, id="a watermark passed a state that was not certain yet"),
        pytest.param(110, id="an ingest that took over confirmed nothing, as no heartbeat said what is still kept"),
        pytest.param(2085, id="a start vouched for a state whose end the start before had not stored"),
        pytest.param(3249, id="the same, in another order"),
        pytest.param(14204, id="the number of a file that a repair had moved away was given again"),
        pytest.param(11889, id="a state went on beyond one that a full spool had refused"),
        pytest.param(104971, id="a state with a longer stamp than any before ended before another began"),
        pytest.param(101713, id="a changed bit in the name of a checksum switched it off, and another was not found"),
        pytest.param(776, id="messages that were refused and had landed filled the window for ever"),
        pytest.param(1210, id="a state began behind the drain of an agent that ended, and was not stored"),
        pytest.param(1529, id="the same, of a state that waited for UTC"),
        pytest.param(2988, id="behind a file that a repair had moved away a job went on with the next hour"),
        pytest.param(3417, id="a repair ended with a traceback at a name of a column that was no text any more"),
        pytest.param(4731, id="the length of a visit left out how far the host's clock was slewed"),
        pytest.param(3430, id="a pair of readings that waited for UTC knew as little as the older one"),
        pytest.param(9445, id="a repair moved dead letters away for the line that a power cut had left incomplete"),
        pytest.param(20230, id="a start vouched for a state of the start before, which it had stored itself"),
        pytest.param(21289, id="a file that jobs had left out came back in a merged one"),
        pytest.param(24034, id="a start got a lower number than the one before, and its readings were not sent"),
        pytest.param(30941, id="a badge that was read before the first clear moment counted as there for too long"),
        pytest.param(
            1116, id="a power cut took a file that a job had read, which passed over the next one of its number"
        ),
        pytest.param(862, id="a power cut took a file whose folder had not been synced, and left later ones"),
        pytest.param(973625, id="noise that looked like the first byte of a frame bounded its event"),
        pytest.param(445, id="a repair said nothing of a column whose name was damaged"),
    ],
)
def test_schedules_that_failed_once_hold(seed):
    assert result_of(seed).broken == ()


def landed(seq):
    one = Reading(site="hall", gateway="gw", boot=1, seq=seq, stream="dock/tags", kind="tag", t_min=1, t_max=2, key="K")
    return [one], [("hall/gw", 1, seq, seq)], 1_800_000_000_000_000


def with_an_unsynced_file(disk, folder):
    """A landing whose second file is there, and whose folder could not be synced then."""
    landing = Landing(folder)
    landing.write(*landed(0))
    disk.folders_left = 0
    with pytest.raises(OSError, match="Input/output"):
        landing.write(*landed(1))
    return landing


def assert_what_it_finds_survives(disk, folder, seed):
    """An ingest starts and is killed, the power fails, and the next ingest finds the same numbers."""
    landing = Landing(folder)
    known = list(landing.recover())
    landing._holding._lock.close()
    disk.cut_power(Random(seed))
    landing = Landing(folder)
    assert list(landing.recover()) == known
    landing.close()


def test_what_an_ingest_finds_at_its_start_survives_a_power_cut(disk):
    """The folder of the newest file had not been synced; its readings were acknowledged when they came again."""
    for seed in SEEDS:
        folder = disk.root / f"landing-{seed}"
        first = with_an_unsynced_file(disk, folder)
        first._holding._lock.close()  # it is killed
        assert_what_it_finds_survives(disk, folder, seed)


def test_a_repair_in_a_later_hour_does_not_take_the_newest_name_for_durable(disk):
    """It wrote the first file of the later hour; the next ingest then synced that hour alone, and acknowledged repeats of
    readings in the hour before.
    """
    for seed in SEEDS:
        folder = disk.root / f"landing-{seed}"
        first = with_an_unsynced_file(disk, folder)
        first._holding._lock.close()  # it is killed
        (folder / "_frontier/hour=2027-01-15T08").mkdir()
        (folder / "_frontier/hour=2027-01-15T08/part-00000003.json").write_bytes(b"damaged\n")
        with locked(folder):
            repair(folder, check(folder), landed(0)[2] + 3_600_000_000)
        assert_what_it_finds_survives(disk, folder, seed)


def test_a_file_whose_folder_could_not_be_synced_is_durable_before_the_next_one(disk):
    """A power cut took it and left later ones, and a check told of a missing number."""
    for seed in SEEDS:
        folder = disk.root / f"landing-{seed}"
        landing = with_an_unsynced_file(disk, folder)
        readings, ranges, landed_us = landed(1)
        landing.write(readings, ranges, landed_us + 3_600_000_000)
        landing._holding._lock.close()
        disk.cut_power(Random(seed))
        assert check(folder).found == []
