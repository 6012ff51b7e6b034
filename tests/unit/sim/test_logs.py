"""Logs of simulated antennas and feeders: true to the simulated events, importable, and equal for equal seeds."""

import csv
import io
import json
import re
from datetime import datetime

import pytest
from click.testing import CliRunner

from support.paths import REPOSITORY
from whenabouts_cloud.importers.feeder import read_feeder
from whenabouts_cloud.importers.orfid import read_orfid
from whenabouts_cloud.importers.side_output import SideOutput
from whenabouts_protocol import Reading
from whenabouts_sim.logs.antennas import antenna_logs
from whenabouts_sim.logs.command import logs
from whenabouts_sim.logs.feeders import AHEAD_US, feeder_logs

NOW_US = 1_795_000_000_000_000
SEEDS = range(3)
DATA = REPOSITORY / "docs" / "examples" / "data"
COMMANDS = re.findall(r"^\$ whenabouts-sim logs (.*)", (DATA / "README.md").read_text(), re.M)


def run(*words):
    """The command in this process."""
    return CliRunner().invoke(logs, [str(word) for word in words])


@pytest.mark.parametrize("command", COMMANDS)
def test_the_logs_of_the_examples_are_what_their_command_makes(command, tmp_path):
    """Byte for byte, and no file more or less."""
    *words, folder = command.split()
    assert run(*words, tmp_path).exit_code == 0
    shipped = {path.name: path.read_bytes() for path in (REPOSITORY / folder).iterdir()}
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == shipped


def test_both_kinds_of_logs_are_shipped_and_small():
    """Two commands; fewer than 150 kB altogether."""
    assert [command.split()[0] for command in COMMANDS] == ["antennas", "feeders"]
    assert sum(path.stat().st_size for path in DATA.rglob("*") if path.is_file()) < 150_000


@pytest.mark.parametrize("make", [antenna_logs, feeder_logs])
def test_a_seed_decides_everything(make):
    """Equal files for equal seeds, different ones for another seed."""
    assert make(3).files == make(3).files
    assert make(3).files != make(4).files


def imported(files, reader):
    """The importer's readings of an antenna's log, by the number of the line."""
    lines = files[f"{reader}.txt"].decode().split("\n")
    return {x.line if isinstance(x, SideOutput) else x.seq: x for x in read_orfid(lines, reader, NOW_US)}


@pytest.mark.parametrize("seed", SEEDS)
def test_the_stamp_of_every_antenna_row_covers_the_whole_true_stay(seed):
    """Begin, moment and end, also where the clock had no reference or was wrong by less than a network allows."""
    made = antenna_logs(seed)
    by_line = {reader: imported(made.files, reader) for reader in ("lower", "upper", "weir")}
    landed = [(by_line[stay.antenna.reader][line], stay) for line, stay in made.truth]
    readings = [(x, stay) for x, stay in landed if isinstance(x, Reading)]
    assert all(x.t_min <= stay.begin_us <= stay.moment_us <= stay.end_us <= x.t_max for x, stay in readings)
    assert all(x.key == stay.tag and x.site == stay.antenna.site for x, stay in readings)
    assert {"bounded", "free-running"} == {x.clock_state for x, _ in readings}
    wrong = [x for x, stay in readings if x.clock_state == "free-running" and x.t_min + 61_000_000 > stay.end_us]
    assert wrong, "the minute was never needed"


@pytest.mark.parametrize("seed", SEEDS)
def test_antenna_rows_stand_in_the_order_of_departures(seed):
    """As a reader writes them: when a tag has left."""
    made = antenna_logs(seed)
    for reader in ("lower", "upper", "weir"):
        ends = [stay.end_us for _, stay in made.truth if stay.antenna.reader == reader]
        assert ends == sorted(ends)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_number_heard_once_is_marked_as_false_whatever_it_was(seed):
    """Noise always; fish and markers when only one scan heard them."""
    made = antenna_logs(seed)
    by_line = {reader: imported(made.files, reader) for reader in ("lower", "upper")}
    phantoms = set()
    for line, stay in made.truth:
        row = by_line.get(stay.antenna.reader, {}).get(line)
        if row is not None:
            assert (row.stream == "phantom") == (row.attrs["NCD"] == 1)
            phantoms |= {stay.what} if row.stream == "phantom" else set()
            assert stay.what != "noise" or row.stream == "phantom"
    assert phantoms == {"fish", "marker", "noise"}


@pytest.mark.parametrize("seed", SEEDS)
def test_the_raw_report_has_rows_and_what_is_none(seed):
    """Text and events, a year that has not come with reference G, a row cut short, and readings around them."""
    results = imported(antenna_logs(seed).files, "weir").values()
    side_output = [x.reason for x in results if isinstance(x, SideOutput)]
    assert sorted(side_output) == ["columns", *["event"] * 3, *["text"] * 4, "time"]
    assert sum(isinstance(x, Reading) for x in results) > 0


def read_logs(made):
    """Every log and the notes of feeders as the importer reads them, by the file's name."""
    names = [name for name in made.files if name.endswith(".TXT")]
    return {name: list(read_feeder(made.files[name].decode(), name, "feeders", NOW_US)) for name in names}


@pytest.mark.parametrize("seed", SEEDS)
def test_every_read_of_a_feeder_is_of_a_visit_by_the_clock_of_its_logger(seed):
    """The stamp, put right by what its clock is ahead, lies in a visit of that bird there."""
    made = feeder_logs(seed)
    reads = [x for results in read_logs(made).values() for x in results if isinstance(x, Reading) and x.kind == "tag"]
    assert len(reads) > 500
    for read in reads:
        feeder = read.gateway.removesuffix("DATA")
        begin_us, end_us = read.t_min - AHEAD_US[feeder], read.t_max - AHEAD_US[feeder]
        of_bird = [visit for visit in made.visits if (visit.bird, visit.feeder) == (read.key, feeder)]
        assert sum(visit.came_us <= end_us and begin_us <= visit.left_us for visit in of_bird) == 1


@pytest.mark.parametrize("seed", SEEDS)
def test_feeder_logs_have_what_real_ones_have(seed):
    """Lines that end with CR only, a log that is only a head, notes of a pause, a damaged row, a clock never set."""
    made = feeder_logs(seed)
    assert all(b"\n" not in content for name, content in made.files.items() if name.endswith(".TXT"))
    assert made.files["YEWDATA_2024_02_07.TXT"] == b"YEWDATA\r"
    results = read_logs(made)
    pause = results["ELMNOTE_2024_02_07.TXT"]
    assert [(x.gateway, x.stream, x.value) for x in pause] == [
        ("ELMDATA", "ELMDATA/listening", False),
        ("ELMDATA", "ELMDATA/listening", True),
    ]
    reads = [x for name in results if name.startswith("ELMDATA") for x in results[name]]
    assert not [x for x in reads if pause[0].t_min < x.t_min - AHEAD_US["ELM"] < pause[1].t_min - 1_000_000]
    side_output = {(name[:3], x.reason) for name in results for x in results[name] if isinstance(x, SideOutput)}
    assert ("OAK", "tag") in side_output
    assert side_output <= {("OAK", "tag"), ("ASH", "time")}


@pytest.mark.parametrize("kind", ["antennas", "feeders"])
def test_the_command_prints_what_it_wrote_and_overwrites_nothing(kind, tmp_path):
    """The seed is printed when it was chosen; a folder that holds files is refused and left as it was."""
    first = tmp_path / "first"
    reported = run(kind, "--out", first)
    seed = re.match(r"seed (\d+), in ", reported.output)[1]
    again = json.loads(run(kind, "--out", tmp_path / "again", "--seed", seed, "--json").output)
    assert (again["seed"], set(again["lines"])) == (int(seed), {path.name for path in first.iterdir()})
    assert all(path.read_bytes() == (tmp_path / "again" / path.name).read_bytes() for path in first.iterdir())
    [made] = again["truth"].values()
    assert sum(made.values()) == again["lines"]["truth.csv"] - 1
    assert again["lines"]["truth.csv"] == (first / "truth.csv").read_bytes().count(b"\n")
    result = run(kind, "--out", first, "--seed", "1")
    assert (result.exit_code, "is not empty, expected a new folder" in result.output) == (1, True)
    (tmp_path / "file").write_text("mine")
    assert "--out" in run(kind, "--out", tmp_path / "file" / "below", "--seed", "1").output
    assert (tmp_path / "file").read_text() == "mine"


def test_the_truth_of_antennas_names_every_row_of_its_logs():
    """Reader and line of each summary row, its tag, and a moment within the time of the log."""
    files = antenna_logs(1).files
    truth = list(csv.DictReader(io.StringIO(files["truth.csv"].decode())))
    rows = [
        (reader, str(line), text.split("\t")[5])
        for reader in ("lower", "upper", "weir")
        for line, text in enumerate(files[f"{reader}.txt"].decode().split("\n"), 1)
        if text.startswith("S\t")
    ]
    assert [(x["reader"], x["line"], x["tag"]) for x in truth] == rows
    assert all(datetime(2024, 5, 14) < datetime.fromisoformat(x["moment"]) < datetime(2024, 5, 15) for x in truth)
