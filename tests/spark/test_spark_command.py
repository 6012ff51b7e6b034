"""The command as its users run it: a separate process, stopped politely, killed, started again."""

import json
import time

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from spark.background import Process
from spark.cases import random_readings, same_rows, sides
from support.cloud.landing import EPOCH_US, land, watermark
from whenabouts_cloud.commands.correlate import correlate as command
from whenabouts_cloud.correlation.pairs import correlate
from whenabouts_cloud.jobs.batch import publish_whole
from whenabouts_cloud.jobs.engines.correlate import CORRELATION
from whenabouts_cloud.jobs.output.sink import MARKER_VERSION, claim
from whenabouts_cloud.rules import load_rules

RULE = """
STREAM dock  FROM "dock/tags" DELAY 1 h
STREAM shelf FROM "shelf/#"   DELAY 1 h   # every shelf
RULE near CORRELATE dock AS a, shelf AS b WHERE |@a - @b| <= 400 ms OVER 80 % AND a.key = b.key
"""


@pytest.fixture
def folder(tmp_path):
    """A rule file and an empty landing."""
    (tmp_path / "rule.wa").write_text(RULE, encoding="utf-8")
    (tmp_path / "landing").mkdir()
    return tmp_path


def killed_at_once(out, job):
    """Write the output folder of a job killed while Spark wrote its first file of offsets, which is incomplete."""
    claim(out, job, "streaming", 2)
    offsets = out / "_checkpoint" / "offsets"
    offsets.mkdir(parents=True)
    (offsets / ".0.3f1c.tmp").write_text("v1")


@pytest.mark.deep
def test_killed_again_and_again_while_files_arrive_it_ends_with_the_batch_result(folder):
    """SIGKILL to everything at two arbitrary moments; the pairs in the folder are those of the batch, each once."""
    rows = random_readings(seed=21, count=240)
    landing, job = folder / "landing", load_rules(folder / "rule.wa").rules[0]
    watermark(landing, dict.fromkeys(["g0", "g1", "g2", "g3", "g4"], EPOCH_US), 0)
    killed_at_once(folder / "out", job)
    number = iter(range(100))
    parts = iter([rows[n::8] for n in range(8)])
    for wait_s in (0.1, 0.8):
        job_process = Process(folder)
        job_process.wait_for("Watching")
        for _ in range(3):
            land(landing, next(parts), next(number))
            time.sleep(wait_s)  # the moment of the crash is what varies, not something awaited
        job_process.kill()
        land(landing, next(parts), next(number))
    last = Process(folder, "--json")
    last.wait_for("Watching")
    land(landing, rows[:20], next(number))
    last.wait_for("Batch")
    expected = correlate(job, *sides(rows, job))
    last.until(lambda: pq.read_table(folder / "out").num_rows >= expected.num_rows)
    assert last.stop() == 0, "\n".join(last.err)
    assert same_rows(pq.read_table(folder / "out"), expected)
    printed = [json.loads(line) for line in last.out]
    assert {x["result_id"] for x in printed} <= set(expected["result_id"].to_pylist())
    assert last.err[-1].split(" readings, ")[1].endswith(f"{len(printed)} pairs")


def test_once_prints_every_pair_and_replaces_an_earlier_result(spark, run_once, folder):
    """A result is there, more lands, --once again: the complete result, readable lines, no leftovers."""
    rows, job = random_readings(seed=22, count=150), load_rules(folder / "rule.wa").rules[0]
    out = folder / "out"
    land(folder / "landing", rows[:70], 0)
    claim(out, job, "once", 4)
    publish_whole(CORRELATION, [job], spark, folder / "landing", out, 4)
    assert same_rows(pq.read_table(out), correlate(job, *sides(rows[:70], job)))
    land(folder / "landing", rows[70:], 1)
    process = run_once(folder, "correlate")
    assert process.code == 0, process.err
    expected = correlate(job, *sides(rows, job))
    assert same_rows(pq.read_table(out), expected)
    assert len(process.out) == expected.num_rows
    assert all(" dock/tags@hall/g" in line and "  p=" in line for line in process.out)
    assert process.err[-1].endswith(f" 0 repeats dropped, {expected.num_rows} pairs")
    assert sorted(x.name for x in out.iterdir()) == ["_job.json", "_progress.json", "batch=00000000"]


@pytest.mark.deep
def test_once_that_is_asked_to_end_leaves_an_earlier_result_and_no_traces(folder):
    """SIGTERM as soon as Spark runs: exit 1 with a word, and none of the errors that Spark's tasks then meet."""
    land(folder / "landing", random_readings(seed=24, count=5000), 0)
    claim(folder / "out", load_rules(folder / "rule.wa").rules[0], "once", 2)
    (folder / "out" / "batch=00000000").mkdir()
    process = Process(folder, "--once")
    process.wait_for("Spark is up")
    assert process.stop() == 1
    assert process.err[-1] == "Aborted!"
    assert not any("Traceback" in line or "ERROR" in line for line in process.err)
    assert process.out == []
    assert sorted(x.name for x in (folder / "out").iterdir() if x.name[0] != ".") == ["_job.json", "batch=00000000"]


def misspelt(folder):
    """Write a rule whose stream has another name than the landed readings; return the expected warning."""
    (folder / "rule.wa").write_text(RULE.replace("dock/tags", "dok/tags"), encoding="utf-8")
    land(folder / "landing", random_readings(seed=23, count=20), 0)
    return 'Stream dock: no reading matches "dok/tags"; the landing has dock/tags, '


def test_a_stream_that_no_reading_belongs_to_is_named(run_once, folder):
    """A misspelt name finds nothing: reported at the end of --once."""
    emitted = misspelt(folder)
    once = run_once(folder, "correlate")
    assert once.code == 0
    assert [line for line in once.err if " stream.unknown " in line] == [once.err[-2]]
    assert emitted in once.err[-2]


@pytest.mark.deep
def test_a_stream_that_no_reading_belongs_to_is_named_while_the_job_goes_on(folder):
    """Reported as soon as something has landed."""
    emitted = misspelt(folder)
    following = Process(folder)
    following.wait_for(emitted)
    assert following.stop() == 0


def run(folder, *more):
    options = ["--landing", folder / "landing", "--rule", folder / "rule.wa", "--out", folder / "out"]
    return CliRunner().invoke(command, [*map(str, options), *more])


def test_a_landing_that_is_not_there_is_refused_by_once(folder):
    """Exit 2 and the folder's name."""
    (folder / "landing").rmdir()
    result = run(folder, "--once")
    assert result.exit_code == 2
    assert "found no folder" in result.output


def test_streaming_waits_for_a_landing_and_can_be_stopped_while_it_does(folder):
    """Nothing has landed yet: the job prints what it waits for and ends with 0 at SIGTERM."""
    (folder / "landing").rmdir()
    process = Process(folder)
    process.wait_for("Waiting for")
    assert process.stop() == 0


def test_a_bad_rule_is_refused_with_all_its_mistakes(folder):
    """Exit 2, a line for each mistake with its place."""
    (folder / "rule.wa").write_text(
        'STREAM d FROM "x" DELAY 2 sec\nRULE r CORRELATE d AS a, e AS b WHERE |@a - @b| <= 1 s OVER 0\n'
    )
    result = run(folder, "--once")
    assert result.exit_code == 2
    assert "rule.wa:1:27: found the unit sec" in result.output
    assert "rule.wa:2:26: found e, expected" in result.output
    assert "rule.wa:2:61: found OVER 0" in result.output


def test_an_output_folder_of_another_job_is_refused(folder):
    """Another rule, another mode, foreign content: exit 2, nothing touched, and what to do."""
    out = folder / "out"
    out.mkdir()
    (out / "thesis.txt").write_text("mine")
    result = run(folder, "--once")
    assert result.exit_code == 2
    assert "other content" in result.output
    (out / "thesis.txt").unlink()
    (out / "_job.json").write_text("{")
    result = run(folder, "--once")
    assert result.exit_code == 2
    assert "found a damaged _job.json" in result.output
    (out / "_job.json").write_text(
        json.dumps({"version": MARKER_VERSION, "mode": "streaming", "rule": "", "shards": 4})
    )
    result = run(folder, "--once")
    assert result.exit_code == 2
    assert "found results of mode 'streaming', expected 'once'" in result.output


def test_a_file_of_several_rules_needs_a_name(folder):
    """The names to choose from are listed."""
    text = (folder / "rule.wa").read_text()
    (folder / "rule.wa").write_text(text + text.split("RULE near")[1].join(["RULE far", ""]))
    assert "found the rules near, far" in run(folder, "--once").output
    assert "found nearer, expected one of near, far" in run(folder, "--once", "--rule-name", "nearer").output


def test_help_shows_an_example():
    """A person sees how to begin."""
    text = CliRunner().invoke(command, ["--help"]).output
    assert "whenabouts-cloud correlate --landing landing --rule handover.wa --out pairs" in text
    assert "RULE handover" in text
