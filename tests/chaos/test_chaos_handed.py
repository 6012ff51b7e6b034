"""The laws of what a job gets: every file, and each reading of its rule once."""

import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.landed_readings import landed
from whenabouts_cloud.landing.history import Piece
from whenabouts_cloud.landing.layout import DATA
from whenabouts_sim.chaos.checks.landed import Landed
from whenabouts_sim.chaos.checks.landing.places import passed_over
from whenabouts_sim.chaos.checks.rules.handed import broken_handed
from whenabouts_sim.chaos.parts.job_rules import MATCHES, PAIRS, TOGETHER, rule
from whenabouts_sim.chaos.parts.landing_files import FileId, written
from whenabouts_sim.chaos.parts.rule_form import Form

WIDE_US = 10_000_000  # no pair can hold a stamp so long
STREAMS = {PAIRS: ("dock", "door"), MATCHES: ("shelf", "till")}
HOUR = "hour=2025-06-15T13"


def said(readings, batch=0, shard=0, repeats=0):
    return batch, {"shard": shard, "readings": readings, "repeats": repeats, "beyond_time": 0}


def broken(name, counts, copies=0):
    """Four readings of the rule's streams, one of another, and a gap; some landed in two parts."""
    first, second = STREAMS[name]
    readings = [landed(f"{first if n % 2 else second}/tags", n, 10 * n, 10 * n + 5) for n in range(4)]
    others = [landed("badge/tags", 8, 0, 5), landed(f"{first}/tags", 9, 0, 5, kind="gap")]
    return list(
        broken_handed(rule(name, 200, 80, 400), counts, Landed([*readings, *others], [], copies=readings[:copies]))
    )


@pytest.mark.parametrize("name", [PAIRS, MATCHES])
def test_each_reading_of_its_streams_is_given_to_a_job_once(name):
    assert broken(name, [said(3), said(1, shard=1)]) == []
    [text] = broken(name, [said(3)])
    assert text == f"{name}: its job got 3 readings, and 4 have landed"
    assert broken(name, [said(4), said(1, batch=1)]) == [f"{name}: its job got 5 readings, and 4 have landed"]


def test_copies_in_several_parts_are_given_too_and_a_repeated_micro_batch_counts_once():
    assert broken(PAIRS, [said(3), said(3), said(2, batch=1)], copies=1) == []
    assert broken(MATCHES, [said(4), said(0, batch=1, repeats=1)], copies=1) == []
    assert len(broken(PAIRS, [said(4)], copies=1)) == 1


def test_in_causal_order_some_may_wait_for_their_view():
    causal = rule(MATCHES, 200, 80, 400, form=Form(options="CAUSAL"))
    one = landed("shelf/tags", 5, 0, 5)
    assert list(broken_handed(causal, [said(0)], Landed([one], []))) == []
    assert len(list(broken_handed(causal, [said(2)], Landed([one], [])))) == 1


def test_a_reading_that_no_pair_can_hold_is_not_given_and_of_states_the_law_says_nothing():
    long = landed("door/tags", 5, 0, WIDE_US)
    assert list(broken_handed(rule(PAIRS, 200, 80, 400), [said(0)], Landed([long], []))) == []
    assert list(broken_handed(rule(TOGETHER, 0, 100, 400, ("gw-1", "gw-2")), [said(0)], Landed([long], []))) == []


def file(landing, number, rows=1, written_ns=5):
    path = landing / HOUR / f"part-{number:08d}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"gateway": ["gw-1"] * rows}), path)
    os.utime(path, ns=(written_ns, written_ns))
    return path


def piece(number):
    return Piece(f"{HOUR}/part-{number:08d}.parquet", DATA, HOUR, number - 1, number, False)


def test_a_file_that_comes_after_a_later_one_was_read_is_passed_over(tmp_path):
    """Unless it is empty, damaged, or merged."""
    file(tmp_path, 2)
    read = written(tmp_path, [piece(2)])
    assert read == {FileId(0, 2): 5}
    assert list(passed_over(tmp_path, read, {})) == []
    late = file(tmp_path, 1)
    assert list(passed_over(tmp_path, read, {})) == [f"it passed over {HOUR}/part-00000001.parquet"]
    assert list(passed_over(tmp_path, read, {late})) == []
    file(tmp_path, 1, rows=0)
    assert list(passed_over(tmp_path, read, {})) == []
    late.rename(late.with_name("part-00000001-00000002.parquet"))
    assert list(passed_over(tmp_path, read, {})) == []


def test_a_file_that_was_merged_and_comes_back_after_a_power_cut_is_not_passed_over(tmp_path):
    merged = file(tmp_path, 2).rename(tmp_path / HOUR / "part-00000001-00000002.parquet")
    file(tmp_path, 2)
    assert list(passed_over(tmp_path, {FileId(0, 3): 0}, {})) == []
    merged.unlink()
    assert len(list(passed_over(tmp_path, {FileId(0, 3): 0}, {}))) == 1


def test_a_second_file_with_a_number_that_was_read_is_passed_over(tmp_path):
    file(tmp_path, 1)
    read = written(tmp_path, [piece(1)])
    file(tmp_path, 1, written_ns=6)
    [text] = passed_over(tmp_path, read, {})
    assert text == f"it passed over {HOUR}/part-00000001.parquet, and had read another file with its number"


def test_who_reads_a_merged_file_reads_the_files_that_it_holds(tmp_path):
    part = tmp_path / "ingest=a"
    file(part, 2)
    file(part, 3)
    merged = file(part, 4).rename(part / HOUR / "part-00000001-00000002.parquet")
    path = merged.relative_to(tmp_path).as_posix()
    assert written(tmp_path, [Piece(path, DATA, HOUR, 0, 2, True)]) == {FileId(0, 2, "ingest=a"): 5}
