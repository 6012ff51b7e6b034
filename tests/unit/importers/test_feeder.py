"""The importer of feeder logs: what a stamp covers, every way to end a line, what is no reading, nothing lost or doubled."""

import calendar
import json
from collections import Counter

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from support.cloud.imported_logs import check_feeder_logs
from support.paths import REPOSITORY
from whenabouts_cloud.commands.exchange.importing import imports
from whenabouts_cloud.importers.feeder import NotFeederError, read_feeder
from whenabouts_cloud.importers.side_output import SideOutput

DATA = REPOSITORY / "docs" / "examples" / "data" / "feeders"
NOW_US = calendar.timegm((2026, 1, 1, 0, 0, 0)) * 1_000_000
ROW = "3B0069E3FB 02/05/24 10:48:49"


def read(*lines, end="\r", name="OAKDATA"):
    """The readings and rows that lines below a head give."""
    return list(read_feeder(end.join(["OAKDATA", *lines, ""]), name, "garden", NOW_US))


def test_a_row_is_the_second_that_the_clock_showed():
    """Whole seconds are counted, so all of the second printed belongs to the stamp and none of the next."""
    [reading] = read(ROW)
    begin = calendar.timegm((2024, 2, 5, 10, 48, 49)) * 1_000_000
    assert (reading.t_min, reading.t_max) == (begin, begin + 999_999)
    assert (reading.site, reading.gateway, reading.stream) == ("garden", "OAKDATA", "OAKDATA/tags")
    assert (reading.key, reading.kind, reading.clock_state, reading.seq) == ("3B0069E3FB", "tag", "free-running", 2)


@pytest.mark.parametrize("end", ["\r", "\n", "\r\n"])
def test_lines_end_in_every_way(end):
    """Numbers of lines, and so identities, do not depend on how the file was copied; empty lines count."""
    readings = read(ROW, "", ROW.replace("49", "51"), end=end)
    assert [x.seq for x in readings] == [2, 4]
    assert {x.boot for x in readings} == {read(ROW)[0].boot}


@pytest.mark.parametrize(
    ("bad", "reason", "text"),
    [
        ("3B0069E3F 02/05/24 10:48:49", "tag", "ten hexadecimal digits"),
        ("3B0069E3FX 02/05/24 10:48:49", "tag", "3B0069E3FX"),
        ("3B0069E3FB", "stamp", "expected such as"),
        ("3B0069E3FB 02/05/24 10:48", "stamp", "02/05/24 10:48"),
        ("3B0069E3FB 13/05/24 10:48:49", "stamp", "13/05/24"),
        ("3B0069E3FB 02/30/24 10:48:49", "stamp", "02/30/24"),
        ("3B0069E3FB 02/00/24 10:48:49", "stamp", "02/00/24"),
        ("3B0069E3FB 02/05/24 24:00:00", "stamp", "24:00:00"),
        ("3B0069E3FB 02/05/24 10:60:49", "stamp", "10:60:49"),
        ("3B0069E3FB 02/05/24 10:48:60", "stamp", "10:48:60"),
        ("3B0069E3FB 02/05/24 10:48:49 x", "stamp", "49 x"),
        ("3B0069E3FB 01/01/00 00:03:12", "time", "never set"),
        ("3B0069E3FB 02/05/66 10:48:49", "time", "after this import"),
        ("LOGGING PAUSED: soon", "stamp", "soon"),
        ("OAKDATA", "tag", "OAKDATA"),
    ],
)
def test_a_row_that_cannot_be_a_reading_goes_to_the_side_output_and_its_neighbours_land(bad, reason, text):
    """With its line, one word of reason and what was found."""
    first, side_output, last = read(ROW, bad, ROW)
    assert isinstance(side_output, SideOutput)
    assert (side_output.line, side_output.reason, side_output.row) == (3, reason, bad)
    assert text in side_output.text
    assert (first.seq, last.seq) == (2, 4)


def test_notes_say_when_a_logger_listened():
    """As the data set describes them: a state of the logger, true from STARTED on and false from PAUSED on."""
    notes = ["LOGGING STARTED: 02/05/24 08:00:00", "LOGGING PAUSED: 02/05/24 17:00:00"]
    headless = list(read_feeder("\r".join(notes), "OAKNOTE_2024_02_07", "garden", NOW_US))
    for readings in (read(*notes), headless):
        assert [(x.gateway, x.stream, x.kind, x.value, x.key) for x in readings] == [
            ("OAKDATA", "OAKDATA/listening", "state", True, None),
            ("OAKDATA", "OAKDATA/listening", "state", False, None),
        ]
        assert readings[1].t_min - readings[0].t_min == 9 * 3_600_000_000


@pytest.mark.parametrize("text", ["", "\r\r", ROW, '"animal_id","date","time"', "a/b\r" + ROW, "\udcff\udcfe"])
def test_a_file_that_begins_with_no_logger_is_refused(text):
    """Without a name the rows would belong to no logger."""
    with pytest.raises(NotFeederError, match="expected the name of a logger"):
        list(read_feeder(text, "x", "garden", NOW_US))


def test_every_line_of_whole_logs_is_a_reading_or_in_the_side_output():
    """The logs of the examples, counted without the importer: two kinds of bad rows, and one log that is only a head."""
    assert check_feeder_logs(DATA) == (1360, {"tag": 1, "time": 5})


def run(*arguments):
    """The command in this process."""
    return CliRunner().invoke(imports, ["feeder", *map(str, arguments)])


def test_a_file_again_lands_nothing_and_a_longer_one_lands_the_rest(tmp_path):
    """A row, the same again, then a longer log with a bad row; the bad one is kept below _dead."""
    file, landing = tmp_path / "log.TXT", tmp_path / "landing"
    file.write_bytes(b"OAKDATA\r" + ROW.encode() + b"\r")
    assert run(file, "--landing", landing).output == "log.TXT: 1 landed, 0 repeats (1 free-running)\n"
    assert run(file, "--landing", landing).output == "log.TXT: 0 landed, 1 repeats (1 free-running)\n"
    file.write_bytes(file.read_bytes() + b"3B00\xff\r" + ROW.replace("49", "51").encode() + b"\r")
    emitted = json.loads(run(file, "--landing", landing, "--json").output)
    assert (emitted["landed"], emitted["repeats"], emitted["side_output"]) == (1, 1, {"tag": 1})
    [kept] = (landing / "_dead").glob("feeder-log-*")
    assert json.loads(kept.read_text())["row"].encode("utf-8", "surrogateescape") == b"3B00\xff"
    rows = [x for path in landing.glob("hour=*/*.parquet") for x in pq.ParquetFile(path).read().to_pylist()]
    assert Counter(x["seq"] for x in rows) == {2: 1, 4: 1}
    assert {(x["site"], x["gateway"]) for x in rows} == {("feeders", "OAKDATA")}


def test_what_cannot_be_taken_lands_nothing(tmp_path):
    """A file without a logger's name beside a good one, a site that cannot be one: exit 1, the reason, no landing."""
    good, bad = tmp_path / "good.TXT", tmp_path / "bad.TXT"
    good.write_text(f"OAKDATA\r{ROW}\r")
    bad.write_text(f"{ROW}\r")
    for arguments, text in (((good, bad), "bad.TXT: found '3B0069E3FB"), ((good, "--site", "a/b"), "--site: found")):
        result = run(*arguments, "--landing", tmp_path / "landing")
        assert (result.exit_code, text in result.output) == (1, True)
    assert not (tmp_path / "landing").exists()
