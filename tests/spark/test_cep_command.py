"""The command as its users run it: a separate process, killed, started again, asked to stop."""

import json
import time
from itertools import count

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from spark.background import Process
from support.cep.landing import (
    GATEWAYS,
    STREAMS,
    as_matches,
    causal_expected,
    causal_readings,
    expected,
    random_readings,
)
from support.cloud.landing import EPOCH_US, land, watermark
from whenabouts_cloud.commands.cep import cep as command
from whenabouts_cloud.rules import load_rules

RULE = """
STREAM shelf FROM "shelf/#"   DELAY 1 h LENGTH 0 us .. 20 ms
STREAM till  FROM "till/tags" DELAY 1 h LENGTH 0 us .. 20 ms
STREAM exit  FROM "exit/tags" DELAY 1 h LENGTH 0 us .. 20 ms
RULE unpaid SEQ(shelf a, !till c, exit e) WITHIN 300 ms PER key
RULE near CORRELATE shelf AS a, exit AS b WHERE |@a - @b| <= 400 ms OVER 80 % AND a.key = b.key
"""
FOREVER_US = EPOCH_US + 10**9


@pytest.fixture
def folder(tmp_path):
    """A rule file and an empty landing."""
    (tmp_path / "rule.wa").write_text(RULE, encoding="utf-8")
    (tmp_path / "landing").mkdir()
    return tmp_path


def watermark_until(process, folder, matches):
    """Advance watermarks until so many matches are in the folder: a match is emitted when a later moment is complete."""
    numbers = count(1)

    def all_emitted():
        n = next(numbers)
        watermark(folder / "landing", dict.fromkeys(GATEWAYS, FOREVER_US + n), n, STREAMS)
        return pq.read_table(folder / "out").num_rows >= matches

    process.until(all_emitted)


@pytest.mark.deep
def test_killed_again_and_again_while_files_arrive_it_ends_with_the_definition(folder):
    """SIGKILL to everything at two arbitrary moments; the matches in the folder are those of the rule, each once."""
    rows = random_readings(seed=21, count=240)
    landing, job = folder / "landing", load_rules(folder / "rule.wa").cep_rules[0]
    watermark(landing, dict.fromkeys(GATEWAYS, EPOCH_US), 0, STREAMS)
    number = iter(range(100))
    parts = iter([rows[n::8] for n in range(8)])
    for wait_s in (0.1, 0.8):
        process = Process(folder, command="cep")
        process.wait_for("Watching")
        for _ in range(3):
            land(landing, next(parts), next(number))
            time.sleep(wait_s)  # the moment of the crash is what varies, not something awaited
        process.kill()
        land(landing, next(parts), next(number))
    last = Process(folder, "--json", command="cep")
    last.wait_for("Watching")
    land(landing, rows[:20], next(number))
    last.wait_for("Batch")
    wanted = expected(job, rows)
    watermark_until(last, folder, len(wanted))
    assert last.stop() == 0, "\n".join(last.err)
    assert as_matches(pq.read_table(folder / "out")) == wanted
    printed = [json.loads(line) for line in last.out]
    assert {x["status"] for x in printed} == {"match"}
    assert last.err[-1].split(" readings, ")[1].endswith(f"{len(printed)} matches")


@pytest.mark.deep
def test_the_rule_file_changes_while_the_job_runs(folder):
    """A mistake is reported and changes nothing; an added rule sees what lands from then on; rows name their rule."""
    rows, landing = random_readings(seed=23, count=160), folder / "landing"
    watermark(landing, dict.fromkeys(GATEWAYS, EPOCH_US), 0, STREAMS)
    process = Process(folder, command="cep")
    process.wait_for("Watching")
    land(landing, rows[:80], 0)
    process.wait_for("Batch")
    wrong = folder / "wrong.wa"
    wrong.write_text(RULE.replace("WITHIN 300 ms", "WITHIN"), encoding="utf-8")
    wrong.rename(folder / "rule.wa")
    process.wait_for("The running rules stay")
    more = folder / "more.wa"
    more.write_text(RULE + "RULE soon SEQ(till c, exit e) WITHIN 200 ms PER key\n", encoding="utf-8")
    more.rename(folder / "rule.wa")
    process.wait_for("added soon")
    land(landing, rows[80:], 1)
    unpaid, soon = load_rules(folder / "rule.wa").cep_rules
    wanted = {"unpaid": expected(unpaid, rows), "soon": expected(soon, rows[80:])}
    watermark_until(process, folder, sum(map(len, wanted.values())))
    assert process.stop() == 0, "\n".join(process.err)
    emitted = pq.read_table(folder / "out")
    assert all(wanted.values())
    for name, matches in wanted.items():
        assert as_matches(emitted.filter(pc.equal(emitted["rule"], name))) == matches
    assert sum(line.startswith("soon  ") for line in process.out) == len(wanted["soon"])


def test_counts_are_printed_and_published(run_once, folder):
    """--once needs no EVERY; a job that goes on does, and the error states it."""
    text = RULE.split("RULE unpaid")[0] + "RULE n SEQ(shelf a, exit e) WITHIN 300 ms PER key COUNT, AVG(a.rssi)\n"
    (folder / "rule.wa").write_text(text, encoding="utf-8")
    rows = random_readings(seed=24, count=100)
    land(folder / "landing", rows, 0)
    result = run(folder)
    assert result.exit_code == 2
    assert "found COUNT without EVERY in rule n, expected --once, or EVERY" in result.output
    process = run_once(folder, "cep")
    assert process.code == 0, "\n".join(process.err)
    emitted = pq.read_table(folder / "out/batch=00000000").to_pylist()
    assert {row["key"] for row in emitted} <= {"hot", "k1", "k2", "k3"}
    assert sum(row["matches"] for row in emitted) > 5
    assert len(process.out) == len(emitted)
    assert all(line.startswith("ever  ") and "  AVG(a.rssi) -" in line for line in process.out)
    assert "counted at the middles of their stamps" in process.err[-1]


def test_once_prints_a_line_for_every_match(run_once, folder):
    """--once chooses the only rule of its kind, and writes what it prints."""
    rows, job = random_readings(seed=22, count=150), load_rules(folder / "rule.wa").cep_rules[0]
    for n in range(2):
        land(folder / "landing", rows[n::2], n)
    process = run_once(folder, "cep")
    assert process.code == 0, "\n".join(process.err)
    wanted = expected(job, rows)
    assert as_matches(pq.read_table(folder / "out")) == wanted
    assert len(process.out) == len(wanted) > 5
    assert all("  a shelf/" in line and "  e exit/tags@hall/g" in line for line in process.out)
    assert process.err[-1].endswith(f" 0 repeats dropped, {len(wanted)} matches")
    assert sorted(x.name for x in (folder / "out").iterdir()) == ["_job.json", "_progress.json", "batch=00000000"]


def run(folder, *more):
    options = ["--landing", folder / "landing", "--rule", folder / "rule.wa", "--out", folder / "out"]
    return CliRunner().invoke(command, [*map(str, options), *more])


def test_a_rule_for_another_command_is_refused_with_its_name(folder):
    """Exit 2, and which command runs it."""
    result = run(folder, "--once", "--rule-name", "near")
    assert result.exit_code == 2
    assert "found that rule near is for another command: whenabouts-cloud correlate" in result.output


def test_a_rule_that_is_not_there_is_refused_with_those_that_are(folder):
    """Only rules that this command runs are offered."""
    result = run(folder, "--once", "--rule-name", "unpayed")
    assert result.exit_code == 2
    assert "found unpayed, expected one of unpaid in" in result.output


def test_help_shows_an_example():
    """A person sees how to begin."""
    text = CliRunner().invoke(command, ["--help"]).output
    assert "whenabouts-cloud cep --landing landing --rule unpaid.wa --out matches" in text
    assert "SEQ(shelf a, !till c, exit e) WITHIN 1 h PER key" in text


def test_readings_without_a_clock_of_a_group_are_reported(run_once, folder):
    """CAUSAL over ungrouped gateways: the matches of each by itself, and the names of these gateways."""
    text = RULE.split("RULE near")[0].replace("PER key", "PER key CAUSAL").replace("20 ms", "40 ms")
    (folder / "rule.wa").write_text(text, encoding="utf-8")
    rows, facts = causal_readings(seed=8, steps=200)
    land(folder / "landing", rows, 0)
    process = run_once(folder, "cep")
    assert process.code == 0, "\n".join(process.err)
    assert as_matches(pq.read_table(folder / "out")) == causal_expected(rows, facts)
    said = "Gateway hall/g3 stamps without a group's clock: its readings are ordered only among themselves"
    assert sum(line.endswith(said) for line in process.err) == 1
    assert "without a group's clock" in process.err[-1]
