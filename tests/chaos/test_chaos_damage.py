"""Bits of a landing that change: the law, what counts as landed, and whole schedules."""

from dataclasses import replace

import pytest

from support.cloud.published_results import publish
from whenabouts_cloud.ingest.landing_writer import Landing
from whenabouts_cloud.landing.files import data_files
from whenabouts_cloud.landing.store import Store
from whenabouts_protocol import Reading
from whenabouts_sim.chaos.checks.landed import read_landing
from whenabouts_sim.chaos.checks.landing.damage import broken_damage, broken_results_damage
from whenabouts_sim.chaos.parts.landing_files import files_of, frontier_files
from whenabouts_sim.chaos.schedule.fault import CLOUD, Fault
from whenabouts_sim.chaos.schedule.schedule import draw
from whenabouts_sim.chaos.schedule_run import run
from whenabouts_sim.world.clocks import EPOCH_US
from whenabouts_sim.world.world import SECOND_US


def reading(seq):
    """A reading of one gateway."""
    stamp = {"t_min": EPOCH_US, "t_max": EPOCH_US + 1}
    return Reading(site="hall", gateway="gw", boot=1, seq=seq, stream="dock/tags", kind="tag", key=f"K{seq}", **stamp)


@pytest.fixture
def landing(tmp_path):
    """Two files of readings, and one of a watermark."""
    landing = Landing(Store.at(tmp_path / "landing"))
    for seq in range(2):
        landing.write([reading(seq)], [("hall/gw", 1, seq, seq)], EPOCH_US)
    row = {"site": "hall", "gateway": "gw", "frontier_us": EPOCH_US, "streams": ["dock/tags"], "landed_us": EPOCH_US}
    landing.write_frontiers([row])
    landing.close()
    return tmp_path / "landing"


def change(path, old, new):
    """Replace bytes at their last place; return what the file held before."""
    before = path.read_bytes()
    at = before.rindex(old)
    path.write_bytes(before[:at] + new + before[at + len(old) :])
    return before


def test_what_a_check_finds_or_nobody_reads_breaks_no_law(landing):
    """A watermark that has changed, and a space."""
    [path] = frontier_files(landing)
    before = change(path, b"%d" % EPOCH_US, b"%d" % (EPOCH_US + 1))
    assert list(broken_damage({"cloud": landing}, {path: before})) == []
    path.write_bytes(before)
    assert list(broken_damage({"cloud": landing}, {path: before})) == []
    assert list(broken_damage({"cloud": landing}, {})) == []


def test_content_that_changes_without_a_word_breaks_the_law(landing):
    """As without checksums."""
    [path] = frontier_files(landing)
    before = path.read_bytes()
    path.write_bytes(before.replace(b"%d" % EPOCH_US, b"1").split(b',"crc"')[0] + b"}\n")
    [text] = broken_damage({"cloud": landing}, {path: before})
    assert "no check tells" in text


def test_a_check_that_tells_of_what_nobody_changed_breaks_the_law(landing):
    """As of a number that a write used up which failed."""
    first, second = data_files(landing)
    assert list(broken_damage({"cloud": landing}, {})) == []
    before = first.read_bytes()
    first.write_bytes(b"no Parquet")
    assert list(broken_damage({"cloud": landing}, {first: before})) == []
    [text] = broken_damage({"cloud": landing}, {})
    assert f"tells of {first.relative_to(landing)}, which nobody has changed: damaged: " in text
    first.write_bytes(before)
    second.unlink()
    [text] = broken_damage({"cloud": landing}, {})
    assert "which nobody has changed: missing: no file has this number" in text


def test_readings_of_a_changed_file_still_count_as_landed_and_their_keys_are_known(landing):
    """By what the file held before; its watermarks do not count."""
    first, second = data_files(landing)
    [frontier] = frontier_files(landing)
    assert files_of(landing) == [first, second, frontier]
    rotten = {path: path.read_bytes() for path in (first, frontier)}
    first.write_bytes(b"no Parquet")
    landed = read_landing(landing, rotten=rotten)
    assert [one.key for one in landed.readings] == ["K0", "K1"]
    assert landed.damaged == {"K0"}
    assert [one.key for one in landed.without(landed.damaged).readings] == ["K1"]
    assert landed.frontiers == []
    assert len(read_landing(landing, rotten={first: rotten[first]}).frontiers) == 1
    assert read_landing(landing, rotten=rotten, vanished=[second.read_bytes()]).damaged == {"K0", "K1"}


def test_other_results_that_are_read_without_a_word_break_the_law(tmp_path):
    """What is called damaged, and what is as before, do not."""
    [path] = publish(tmp_path / "a", 0).glob("*.parquet")
    [other] = publish(tmp_path / "b", 1).glob("*.parquet")
    before = path.read_bytes()
    assert list(broken_results_damage({path: before})) == []
    path.write_bytes(before[:-50])
    assert list(broken_results_damage({path: before})) == []
    path.write_bytes(other.read_bytes())
    [text] = broken_results_damage({path: before})
    assert "other results are read" in text


def damaged(seed, *moments_s):
    """The schedule of a seed, in which bits of the landing change, and the ingest is killed afterwards."""
    rot = [Fault("landing_rot", int(at_s * SECOND_US)) for at_s in moments_s]
    faults = (*rot, Fault("kill", 3 * SECOND_US, 1000, CLOUD))
    return replace(draw(seed), faults=faults, numbers=tuple(range(len(faults))), liar="")


@pytest.mark.parametrize("seed", range(3, 7))
def test_changed_bits_of_a_landing_break_no_law(seed):
    """Whichever file they hit, also where the ingest must be repaired before it starts."""
    assert run(damaged(seed, 1.0, 1.5, 2.0, 2.5)).broken == []
