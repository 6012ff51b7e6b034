"""The command as its users run it: a separate process, killed, started again, asked to stop."""

import json
import random
import time
from itertools import count

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from reference.latwin import simulate
from spark.background import Process
from support.cloud.landing import land, watermark
from support.latwin.states import FOREVER_US, choices, emitted, states_of, watermarks_of
from whenabouts_cloud.commands.latwin import latwin as command

RULE = """
STREAM s0 FROM "s0/state" DELAY 1 h LENGTH 0 us .. 6 ms
STREAM s1 FROM "s1/state" DELAY 1 h LENGTH 0 us .. 6 ms
STREAM s2 FROM "s2/state" DELAY 1 h LENGTH 0 us .. 6 ms
RULE together DEFINITELY s0 AND s1 AND s2 WINDOW 4 IN GROUP office
RULE near CORRELATE s0 AS a, s1 AS b WHERE |@a - @b| <= 400 ms OVER 80 %
"""


@pytest.fixture
def folder(tmp_path):
    """A rule file and an empty landing."""
    (tmp_path / "rule.wa").write_text(RULE, encoding="utf-8")
    (tmp_path / "landing").mkdir()
    return tmp_path


def watermarked(folder, number, to_come, us=FOREVER_US):
    """Write watermarks of the three gateways while these rows have not landed."""
    watermark(folder / "landing", {name[5:]: at for name, at, _ in watermarks_of(to_come, 3, us)}, number)


@pytest.mark.deep
def test_killed_again_and_again_while_files_arrive_it_ends_with_the_definition(folder):
    """SIGKILL to everything at two arbitrary moments; the verdicts in the folder are those of the rule, each once."""
    rng = random.Random(26)
    rows = states_of(simulate(rng, 3, 90))
    wanted = choices(rows, 3)
    shuffled = rng.sample(rows, len(rows))
    parts = [shuffled[n::9] for n in range(9)]
    at = iter(range(9))

    def next_part():
        n = next(at)
        land(folder / "landing", parts[n], n)
        watermarked(folder, n, [r for part in parts[n + 1 :] for r in part])

    for wait_s in (0.1, 0.8):
        process = Process(folder, command="latwin")
        process.wait_for("Watching")
        for _ in range(3):
            next_part()
            time.sleep(wait_s)  # the moment of the crash is what varies, not something awaited
        process.kill()
        next_part()
    last = Process(folder, "--json", command="latwin")
    last.wait_for("Watching")
    next_part()
    last.wait_for("Batch")
    watermarks = count(9)

    def all_emitted():
        """Advance watermarks each time: a verdict is emitted when everything before a later moment has landed."""
        n = next(watermarks)
        watermarked(folder, n, [], FOREVER_US + n)
        return pq.read_table(folder / "out").num_rows >= len(wanted)

    last.until(all_emitted)
    assert last.stop() == 0, "\n".join(last.err)
    assert emitted(pq.read_table(folder / "out")) == wanted
    assert len(wanted) > 3
    printed = [json.loads(line) for line in last.out]
    assert {row["status"] for row in printed} <= {"emitted"}
    assert last.err[-1].split(" readings, ")[1].endswith(f"{len(printed)} verdicts")


def test_once_prints_a_line_for_every_verdict(run_once, folder):
    """--once chooses the only rule of its kind, counts the watermarks in the landing, and writes what it prints."""
    rows = states_of(simulate(random.Random(9), 3, 60))
    for n in range(2):
        land(folder / "landing", rows[n::2], n)
    watermarked(folder, 0, [])
    process = run_once(folder, "latwin", "--draw", str(folder / "windows.svg"))
    assert process.code == 0, "\n".join(process.err)
    wanted = choices(rows, 3)
    assert emitted(pq.read_table(folder / "out")) == wanted
    assert len(process.out) == len(wanted) > 1
    assert all("  office  definitely  s0 " in line and "@hall/g2 " in line for line in process.out)
    assert f" {len(wanted)} verdicts" in process.err[-1]
    assert sorted(x.name for x in (folder / "out").iterdir()) == ["_job.json", "_progress.json", "batch=00000000"]
    drawn = (folder / "windows.svg").read_text(encoding="utf-8")
    assert "together: s0 AND s1 AND s2" in drawn
    assert "when the latest verdict came to hold" in drawn


def run(folder, *more):
    options = ["--landing", folder / "landing", "--rule", folder / "rule.wa", "--out", folder / "out"]
    return CliRunner().invoke(command, [*map(str, options), *more])


def test_a_rule_for_another_command_is_refused_with_its_name(folder):
    """Exit 2, and which command runs it."""
    result = run(folder, "--once", "--rule-name", "near")
    assert result.exit_code == 2
    assert "found that rule near is for another command: whenabouts-cloud correlate" in result.output


def test_help_shows_an_example():
    """A person sees how to begin."""
    text = CliRunner().invoke(command, ["--help"]).output
    assert "whenabouts-cloud latwin --landing landing --rule mute.wa --out verdicts" in text
    assert 'DEFINITELY phone.room = "meeting" AND rfid.speaker AND projector.on' in text
