"""Jobs name damaged files and the cure in one line each, go on without them, and read them when they are mended."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from spark.background import Process
from spark.cases import MS
from support.cloud.landing import EPOCH_US, reading, table
from whenabouts_cloud.cli import main
from whenabouts_cloud.jobs.output.left_out import LEFT_OUT, damaged_in
from whenabouts_cloud.landing.store import Store

RULE = """
STREAM dock FROM "dock/tags" DELAY 1 h
STREAM shelf FROM "shelf/#" DELAY 1 h
RULE sure CORRELATE dock AS a, shelf AS b WHERE |@a - @b| <= 500 ms OVER 1 AND a.key = b.key
"""
EACH = 50  # pairs in a file


def pairs_file(folder, number):
    """Write a file with EACH pairs of its own keys, as the ingest writes it."""
    rows = []
    for n in range(EACH * number, EACH * (number + 1)):
        t = EPOCH_US + n * MS
        rows += [reading("g0", 2 * n, "dock/tags", f"k{n}", t, t), reading("g0", 2 * n + 1, "shelf/1", f"k{n}", t, t)]
    path = folder / "landing" / "hour=2026-11-20T18" / f"part-{number + 1:08d}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    numbers = json.dumps([["hall/g0", 1, rows[0]["seq"], rows[-1]["seq"]]])
    made = path.with_name(f".{path.name}")
    readings = table(rows).replace_schema_metadata({"whenabouts.ranges": numbers})
    pq.write_table(readings, made, compression="zstd", write_page_checksum=True)
    made.rename(path)
    return path


def cut(path):
    """Keep 60 % of a file."""
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 6 // 10])


def flip(path):
    """Change one bit in the middle of the keys."""
    data, keys = bytearray(path.read_bytes()), pq.read_metadata(path).row_group(0).column(6)
    data[keys.dictionary_page_offset + keys.total_compressed_size // 2] ^= 4
    path.write_bytes(data)


@pytest.fixture
def folder(tmp_path):
    """A folder whose name Spark encodes in paths, with a rule."""
    made = tmp_path / "a + b %é"
    made.mkdir()
    (made / "rule.wa").write_text(RULE, encoding="utf-8")
    return made


def test_once_leaves_out_damaged_files_and_counts_them(run_once, folder):
    """Cut, emptied, altered by a bit, of other columns: one line each with the command, and the pairs of the rest."""
    paths = [pairs_file(folder, n) for n in range(6)]
    cut(paths[0])
    paths[1].write_bytes(b"")
    flip(paths[2])
    pq.write_table(pa.table({"x": [1]}), paths[3])
    ended = run_once(folder, "correlate", "--metrics-file", str(folder / "m.prom"))
    assert ended.code == 0, "\n".join(ended.err)
    lines = [line for line in ended.err if " landing.damaged " in line]
    assert len(lines) == 4
    assert all(f"Run: whenabouts-cloud landing check --landing {folder / 'landing'} --repair" in line for line in lines)
    assert len(ended.out) == pq.read_table(folder / "out").num_rows == 2 * EACH
    assert 'whenabouts_job_damaged_files_total{output="out"} 4.0' in (folder / "m.prom").read_text()
    assert len(damaged_in(Store.at(folder / "landing"))) == 3, "footers do not show a changed bit"


def test_a_streaming_job_goes_on_without_damaged_files_and_reads_them_when_they_are_mended(folder):
    """file     0 whole  1 cut  2 altered  | 1, 2 put back, repair | job ends

    pairs    50                            | 150
    """
    paths = [pairs_file(folder, n) for n in range(3)]
    contents = [path.read_bytes() for path in paths]
    cut(paths[1])
    flip(paths[2])
    job = Process(folder)
    job.wait_for("landing.damaged", 2)
    job.until(lambda: published(folder) == EACH)
    assert len(json.loads((folder / "out" / LEFT_OUT).read_text())) == 2
    for path, content in zip(paths, contents, strict=True):
        path.write_bytes(content)
    repaired = CliRunner().invoke(main, ["landing", "check", "--landing", str(folder / "landing"), "--repair"])
    assert repaired.exit_code == 0, repaired.output
    job.until(lambda: published(folder) == 3 * EACH)
    assert job.stop() == 0
    assert len(job.out) == published(folder) == 3 * EACH
    assert not [line for line in job.err if line.startswith(("\tat ", "Traceback", "Caused by"))]
    assert "damaged_files=2" in job.err[-1]


def published(folder):
    """Number of pairs in the output."""
    return sum(pq.read_table(batch).num_rows for batch in (folder / "out").glob("batch=*"))
