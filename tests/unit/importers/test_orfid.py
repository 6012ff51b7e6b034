"""The importer of Oregon RFID logs: what an interval must cover, what is no reading, and that nothing is lost or doubled."""

import json

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from support.cloud.imported_logs import check_every_row, marker_stamp_errors_s
from support.paths import REPOSITORY
from whenabouts_cloud.commands.exchange import importing
from whenabouts_cloud.commands.exchange.importing import imports
from whenabouts_cloud.importers.orfid import NotOrfidError, SideOutput, read_orfid
from whenabouts_cloud.ingest.landing_writer import Landing

HEAD = "DTY\tARR\tTRF\tDUR\tTTY\tTAG\tSCD\tNCD\tEFA"
QUOTED_HEAD = '"DTY"\t"ARR"\t"TRF"\t"DUR"\t"TTY"\t"TAG"\t"SCD"\t"NCD"\t"EFA"\t"TCH"\t"ANT"'
NOW_US = 1_795_000_000_000_000
T_US = 1_715_679_670_400_000  # 2024-05-14 09:41:10.4 UTC
DATA = REPOSITORY / "docs" / "examples" / "data" / "river"
OLD_TABLE = "Type,Date,Time,Duration,Type,Tag ID,Count,Gap\nD,2024-05-14,09:41:10.10,00:00:01.90,HA,999_1112,20,2\n"


def row(
    arr="2024-05-14 09:41:10.400", trf="G", dur="00:00:01.800", tty="A", tag="999_000000001112", scd="AAA", dty="S"
):
    """A row of the short table."""
    return "\t".join([dty, arr, trf, dur, tty, tag, scd, "5", "0.7"])


def read(*rows, head=HEAD):
    """Everything under a head."""
    return list(read_orfid([head, *rows], "lower", NOW_US))


def test_a_referenced_row_covers_presence_and_the_last_printed_digit():
    """Tenths of a second: one below the arrival, and one of each of the two numbers above the departure."""
    #   ARR .4                      ARR + DUR = 2.2 s later .2
    #   [.3 ------------------------------------------ .4]
    [reading] = read(row())
    assert (reading.t_min, reading.t_max) == (T_US - 100_000, T_US + 1_800_000 + 200_000)
    assert (reading.key, reading.site, reading.gateway, reading.stream) == (
        "999_000000001112", "AAA", "lower", "tags",
    )  # fmt: skip
    assert (reading.kind, reading.clock_state, reading.seq) == ("tag", "bounded", 2)
    assert reading.attrs == {"DTY": "S", "TRF": "G", "TTY": "A", "NCD": 5, "EFA": 0.7}


def test_whole_seconds_widen_by_a_second_and_quotes_are_no_part_of_a_value():
    """The form in which R writes the tables: quoted texts, ARR to the second, DUR to tenths, an antenna column."""
    quoted = '"S"\t2024-05-14 09:41:10\t"G"\t00:00:00.8\t"A"\t"999_000000001151"\t"upstream"\t9\t1.1\t"HDX"\t"A1"'
    [reading] = read(quoted, head=QUOTED_HEAD)
    assert reading.t_max - reading.t_min == 1_000_000 + 800_000 + 1_000_000 + 100_000
    assert (reading.site, reading.stream, reading.key) == ("upstream", "A1/tags", "999_000000001151")


@pytest.mark.parametrize("decimals", ["399", "4", "400", "417"])
def test_a_stamp_with_more_decimals_than_the_reader_counts_is_no_surer(decimals):
    """A scan takes a tenth: what is printed beyond it does not narrow the interval."""
    [reading] = read(row(arr=f"2024-05-14 09:41:10.{decimals}", dur="00:00:00.0"))
    assert reading.t_max - reading.t_min == 300_000


@pytest.mark.parametrize(
    ("before", "trf", "bound_us", "state"),
    [
        ([], "G", 0, "bounded"),
        ([], "N", 1_000_000, "bounded"),
        (["G"], "U", 60_000_000, "free-running"),
        (["N"], "U", 60_000_000, "free-running"),
        ([], "U", 86_400_000_000, "unbounded"),
        (["U"], "U", 86_400_000_000, "unbounded"),
    ],
)
def test_a_clock_without_reference_widens_much_more(before, trf, bound_us, state):
    """A minute once the clock was right, a day when no row shows that it ever was."""
    reading = read(*(row(trf=x) for x in before), row(trf=trf))[-1]
    assert (reading.t_min, reading.t_max) == (T_US - 100_000 - bound_us, T_US + 2_000_000 + bound_us)
    assert reading.clock_state == state


def test_false_reads_are_a_separate_stream():
    """A phantom is landed, but no rule about tags meets it."""
    assert [x.stream for x in read(row(tty="P"), row(tty="W"), row(tty="R"))] == ["phantom", "tags", "tags"]


@pytest.mark.parametrize(
    ("bad", "reason", "text"),
    [
        (row(arr="2081-12-22 10:00:00.000"), "time", "with reference G, expected none after this import"),
        (row(arr="1970-01-01 00:00:07.100", trf="U"), "time", "expected none before 2000"),
        (row(arr="2019-02-29 10:00:00.000"), "ARR", "found arrival '2019-02-29"),
        (row(arr="2019-02-28 24:00:00.000"), "ARR", "expected such as"),
        (row(arr="0000-00-00 00:00:00"), "ARR", "expected such as"),
        (row(arr="u3:20:M1.58"), "ARR", "expected such as"),
        (row(dur="00:61:00.000"), "DUR", "found duration '00:61"),
        (row(dur="-0:00:01.0"), "DUR", "expected such as 00:00:01.800"),
        (row(trf="X"), "TRF", "expected one of G, N, U"),
        (row(trf=""), "TRF", "found TRF ''"),
        (row(tty="AR"), "TTY", "expected one of A, R, W, P"),
        (row(dty="B"), "DTY", "found DTY 'B'"),
        (row(tag=""), "TAG", "found no tag"),
        (row(scd="a b"), "field", "reading site"),
        (row(tag="x" * 300), "field", "reading key"),
        (row(tag="\udcff"), "field", "reading key"),
        (row() + "\t1", "columns", "found 1 more cells"),
        (row().rsplit("\t", 2)[0], "columns", "found 2 fewer cells"),
    ],
)
def test_a_row_that_cannot_be_a_reading_goes_to_the_side_output_whole(bad, reason, text):
    """With its line, one word of reason and what was found; the rows around it land."""
    first, side_output, last = read(row(), bad, row())
    assert isinstance(side_output, SideOutput)
    assert (side_output.line, side_output.reason, side_output.row) == (3, reason, bad)
    assert text in side_output.text
    assert (first.seq, last.seq) == (2, 4)


def test_events_and_the_text_around_a_table_go_to_the_side_output_too():
    """A raw report: banner, head, event, row, rule, empty line, prompt."""
    lines = ["WEIR> up", HEAD, "E\t2024-05-14 09:30:00.000\tG\tEnd of upload #11", row(), "-----", "", "WEIR> "]
    results = list(read_orfid(lines, "r", NOW_US))
    assert [(x.line, x.reason) if isinstance(x, SideOutput) else x.seq for x in results] == [
        (1, "text"), (3, "event"), 4, (5, "text"), (7, "text"),
    ]  # fmt: skip


def test_a_file_without_a_table_is_refused():
    """The error names the expected value."""
    with pytest.raises(NotOrfidError, match="expected one with the columns DTY, ARR"):
        list(read_orfid(["Type,Date,Time", "D,2024-05-14,09:41:10.10"], "r", NOW_US))


@pytest.mark.parametrize(("name", "rows", "unsure"), [("lower", 85, 1), ("upper", 515, 0)])
def test_every_row_of_a_whole_log_is_a_reading(name, rows, unsure):
    """The logs of the examples: identities are distinct, the order of departures is kept."""
    check_every_row(DATA / f"{name}.txt", rows, unsure)


def test_an_unreferenced_row_covers_the_signal_of_its_marker():
    """The lower antenna hears its marker once a minute: one row without reference is stamped 4.1 s after its signal."""
    assert marker_stamp_errors_s(DATA / "lower.txt", "0000_000000000417") == [4.1, 4.1]


def run(*arguments):
    """The command in this process."""
    return CliRunner().invoke(imports, ["orfid", *map(str, arguments)])


def landed(folder):
    """Identities of all landed rows."""
    rows = [x for path in sorted(folder.glob("hour=*/*.parquet")) for x in pq.ParquetFile(path).read().to_pylist()]
    return [(x["gateway"], x["boot"], x["seq"]) for x in rows]


def log(path, *rows):
    """A log file."""
    path.write_text("\n".join([HEAD, *rows]) + "\n")
    return path


def test_a_file_again_lands_nothing_and_a_longer_one_lands_the_rest(tmp_path):
    """Three imports: two rows, these two again, then four, one of them bad and in a separate file of the side output."""
    file, landing = tmp_path / "r.txt", tmp_path / "landing"
    rows = [row(), row(arr="2024-05-14 05:00:00.000")]
    log(file, *rows)
    assert run(file, "--landing", landing).output == "r.txt: 2 landed, 0 repeats\n"
    assert run(file, "--landing", landing).output == "r.txt: 0 landed, 2 repeats\n"
    log(file, *rows, row(arr="2081-12-22 10:00:00.000"), row(arr="2024-05-14 06:00:00.000"))
    for new, repeats in ((1, 2), (0, 3)):
        result = json.loads(run(file, "--landing", landing, "--json").output)
        assert (result["landed"], result["repeats"], result["side_output"]) == (new, repeats, {"time": 1})
        assert [x["line"] for x in result["bad"]] == [4]
    assert sorted(seq for _, _, seq in landed(landing)) == [2, 3, 5]
    [kept] = (landing / "_dead").glob("orfid-*")
    assert json.loads(kept.read_text())["row"].startswith("S\t2081-12-22")


def test_many_rows_are_landed_in_files_of_bounded_size_and_still_once(tmp_path, monkeypatch):
    """Cut after every two readings, snapshot or not: the same identities, once."""
    monkeypatch.setattr(importing, "READINGS_IN_FILE", 2)
    file = log(tmp_path / "r.txt", *(row(arr=f"2024-05-14 05:00:{n % 60:02d}.{n // 60}00") for n in range(140)))
    for _ in range(2):
        assert run(file, "--landing", tmp_path / "landing").exit_code == 0
    identities = landed(tmp_path / "landing")
    assert len(identities) == len(set(identities)) == 140


def test_bytes_that_are_no_text_are_kept_as_they_are(tmp_path):
    """A damaged transfer: the row goes to the side output with its bytes recoverable, the others land."""
    file = tmp_path / "r.txt"
    file.write_bytes("\n".join([HEAD, row(), row(tag="@"), ""]).encode().replace(b"@", b"\xff\x00"))
    result = run(file, "--landing", tmp_path / "landing")
    assert "1 landed" in result.output
    [kept] = (tmp_path / "landing" / "_dead").glob("orfid-*")
    assert b"\xff\x00" in json.loads(kept.read_text())["row"].encode("utf-8", "surrogateescape")


def test_only_some_of_many_bad_rows_are_listed_and_all_are_kept(tmp_path):
    """Ten lines are shown, the number of the others, and where all are."""
    file = log(tmp_path / "r.txt", *([row(trf="?")] * 25), row())
    output = run(file, "--landing", tmp_path / "landing").output
    assert output.count("  line ") == 10
    assert output.endswith("  and 15 more\n")
    [kept] = (tmp_path / "landing" / "_dead").glob("orfid-*")
    assert len(kept.read_text().splitlines()) == 25


def test_files_that_cannot_be_taken_land_nothing(tmp_path, monkeypatch):
    """Not a log, too large, an impossible name, a landing in use: exit 1, the reason, and no other file has landed."""
    good, landing = log(tmp_path / "good.txt", row()), tmp_path / "landing"
    old = tmp_path / "old.txt"
    old.write_text(OLD_TABLE)
    for bad, text in (
        (old, "found no head line"),
        (log(tmp_path / "my reader.txt", row()), "rename the file"),
    ):
        result = run(good, bad, "--landing", landing)
        assert (result.exit_code, text in result.output) == (1, True)
    assert not landing.exists()
    holder = Landing(landing)
    assert "another ingest writes here" in run(good, "--landing", landing).output
    holder.close()
    monkeypatch.setattr(importing, "MAX_FILE_BYTES", 10)
    assert "expected at most 10" in run(good, "--landing", landing).output
    assert landed(landing) == []
