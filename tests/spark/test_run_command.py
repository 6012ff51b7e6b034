"""All rules of a file in one Spark: each has the results that its definition gives, through a kill and a new start."""

import json
import time
from collections import Counter
from itertools import count

import pytest
from click.testing import CliRunner

from spark.background import Process
from spark.every_engine import GROUP, READERS, RULES, check, defined, every_kind, published
from support.cep.landing import STREAMS
from support.cloud.landing import land, watermark
from support.latwin.states import FOREVER_US
from support.search import SEED
from whenabouts_cloud.commands.run import run_all
from whenabouts_cloud.jobs.output.sink import claim
from whenabouts_cloud.rules import load_rules

SUMMARIES = {
    "near": "pairs",
    "sure": "pairs",
    "together": "verdicts",
    "unpaid": "matches",
}  # in the order of the output
LAGS = (("near", "shelf"), ("unpaid", "exit"))


@pytest.fixture
def folder(tmp_path):
    """A rule file and an empty landing."""
    (tmp_path / "rule.wa").write_text(RULES, encoding="utf-8")
    (tmp_path / "landing").mkdir()
    return tmp_path


@pytest.fixture
def readings():
    """Those of readers, and states of a group."""
    return every_kind()


def without(rule):
    """The rules without one of them."""
    return "".join(line for line in RULES.splitlines(keepends=True) if not line.startswith(f"RULE {rule} "))


def watermark_all(folder, number, us):
    """Of every gateway."""
    watermark(folder / "landing", dict.fromkeys(READERS, us), 2 * number, STREAMS)
    watermark(folder / "landing", dict.fromkeys(GROUP, us), 2 * number + 1, [f"s{n}/state" for n in range(3)])


def test_once_prints_the_results_of_every_rule(run_once, folder, readings):
    """Every line begins with the name of its rule; every rule reports its counters."""
    tags, states = readings
    land(folder / "landing", [*tags, *states], 0)
    watermark_all(folder, 0, FOREVER_US)
    process = run_once(folder, "run", "--metrics-file", str(folder / "run.prom"))
    assert process.code == 0, "\n".join(process.err)
    counts = check(folder, tags, states)
    assert min(counts[name] for name in ("near", "sure", "unpaid", "together")) > 1
    assert Counter(line.split()[0] for line in process.out) == counts
    assert [line.split()[3:5] for line in process.err[-4:]] == [
        ["job.summary", f"output={name}"] for name in ("pairs/near", "pairs/sure", "verdicts/together", "matches")
    ]
    samples = samples_of(folder / "run.prom")
    for rule, unit in SUMMARIES.items():
        assert samples[f'whenabouts_job_results_total{{kind="{unit}",rule="{rule}"}}'] == counts[rule]


def killed_at_once(folder):
    """Write the output folder of a rule's job that was killed while Spark wrote its first file of offsets."""
    rule = load_rules(folder / "rule.wa").correlate_rules[0]
    out = folder / "out" / "pairs" / rule.name
    claim(out, rule, "streaming", 2)
    offsets = out / "_checkpoint" / "offsets"
    offsets.mkdir(parents=True)
    (offsets / ".0.3f1c.tmp").write_text("v1")


def samples_of(file):
    """The samples of a file of metrics, zeros before it is there, by name and labels."""
    lines = file.read_text().splitlines() if file.exists() else []
    return Counter({name: float(x) for name, x in (line.rsplit(" ", 1) for line in lines if line[0] != "#")})


def check_metrics(samples):
    """Check the samples of a job that has emitted everything and was given one late reading."""
    assert samples['whenabouts_job_side_output_total{rule="unpaid"}'] == 1
    assert samples['whenabouts_job_batches_total{output="matches"}'] > 1
    assert samples['whenabouts_job_batch_seconds{output="matches"}'] > 0
    assert samples['whenabouts_job_silent_gateways{rule="unpaid"}'] == 0
    for rule in ("near", "unpaid", "together"):
        assert f'whenabouts_job_rows_kept{{rule="{rule}"}}' in samples
    assert all_waited(samples)


def all_waited(samples):
    """True if the frontier of every rule is at the last watermark."""
    lags_s = [samples[f'whenabouts_job_lag_seconds{{rule="{x}",stream="{y}"}}'] for x, y in LAGS]
    return all(lag_s == pytest.approx(time.time() - FOREVER_US / 1e6, abs=300) for lag_s in lags_s)


@pytest.mark.parametrize("moments_s", [(0.8,), pytest.param((0.1, 0.8), marks=pytest.mark.deep)])
def test_killed_again_and_again_while_files_arrive_every_rule_ends_with_its_definition(folder, readings, moments_s):
    """SIGKILL to everything at arbitrary moments; the results of each rule are those of its definition, each once.

    landing   | | |    |    | | |    |    |  watermarks ... until all is emitted
    job       |------ killed |------ killed   |------------------ asked to end

    A quick run has one rule for each engine, a deep one two correlations.
    """
    tags, states = readings
    if not SEED:
        (folder / "rule.wa").write_text(without("sure"), encoding="utf-8")
    count_of_parts = 4 * len(moments_s) + 1
    parts = iter([[*tags[n::count_of_parts], *states[n::count_of_parts]] for n in range(count_of_parts)])
    numbers = count()
    killed_at_once(folder)
    killed = []
    for wait_s in moments_s:
        killed.append(Process(folder, "--json", command="run"))
        killed[-1].wait_for("Watching")
        for _ in range(3):
            land(folder / "landing", next(parts), next(numbers))
            time.sleep(wait_s)  # the moment of the crash is what varies, not something awaited
        killed[-1].kill()
        land(folder / "landing", next(parts), next(numbers))
    file = folder / "run.prom"
    last = Process(folder, "--json", "--log-format", "json", "--metrics-file", str(file), command="run")
    last.wait_for("Watching")
    land(folder / "landing", next(parts), next(numbers))
    wanted = defined(load_rules(folder / "rule.wa"), tags, states)
    queries = [folder / "out" / name / "_checkpoint" / "commits" for name in ("matches", "pairs/near")]
    watermarked = []

    def all_emitted():
        """Advance watermarks after each micro-batch: results are emitted when all before a later moment has landed."""
        done = [sum(file.name.isdigit() for file in commits.glob("*")) for commits in queries]
        if done not in watermarked:
            watermark_all(folder, len(watermarked), FOREVER_US + len(watermarked))
            watermarked.append(done)
        # Each rule has a query of its own: a reading behind the watermark of one may be in time for another.
        return wanted == published(folder / "out") and all_waited(samples_of(file))

    last.until(all_emitted)
    seen = next(row for row in tags if row["kind"] == "tag" and row["key"] and row["stream"] == "exit/tags")
    land(folder / "landing", [seen | {"seq": 9999}], next(numbers))  # behind every watermark
    last.until(lambda: samples_of(file)['whenabouts_job_late_total{rule="unpaid"}'] == 1)
    check_metrics(samples_of(file))
    assert last.stop() == 0, "\n".join(last.err)
    counts = check(folder, tags, states)
    by_last = [json.loads(line) for line in last.out]
    printed = Counter(json.loads(line)["rule"] for process in (*killed, last) for line in process.out)
    assert printed <= counts
    assert printed["together"] > 1
    assert {row["status"] for row in by_last if row["rule"] == "unpaid"} <= {"match"}
    assert {row["status"] for row in by_last if row["rule"] == "together"} <= {"emitted"}
    emitted_last = Counter(row["rule"] for row in by_last)
    summaries = {name: unit for name, unit in SUMMARIES.items() if name in counts}
    events = [json.loads(line) for line in last.err if line.startswith("{")]  # Java writes other lines
    assert [event["event"] for event in events[:3]] == ["spark.starting", "spark.started", "query.started"]
    assert {"batch.done", "job.summary"} <= {event["event"] for event in events}
    said = {event["output"].split("/")[-1]: event for event in events if event["event"] == "job.summary"}
    for name, unit in summaries.items():
        event = said["matches" if unit == "matches" else name]
        assert event["results"] == emitted_last[name]
        assert f", {emitted_last[name]} {unit}" in event["text"]
    assert (said["matches"]["late"], said["matches"]["level"]) == (1, "info")


def run(folder, *more):
    options = ["--landing", folder / "landing", "--rule", folder / "rule.wa", "--out", folder / "out"]
    return CliRunner().invoke(run_all, [*map(str, options), *more])


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('STREAM a FROM "a" DELAY 1 s', "found no RULE, expected one"),
        ("RULE x SEQ(a, b) WITHIN 1 s PER key", "rule.wa:1:15: found b, expected one of the declared streams"),
        (RULES + "RULE ever SEQ(shelf a, exit e) WITHIN 1 s PER key COUNT", "found COUNT without EVERY in rule ever"),
    ],
)
def test_a_file_that_cannot_run_is_refused(folder, text, problem):
    """Nothing to run, a mistake, a count that is never final: exit 2, and Spark is not started."""
    (folder / "rule.wa").write_text(text, encoding="utf-8")
    result = run(folder)
    assert result.exit_code == 2
    assert problem in result.output
    assert not (folder / "out").exists()


def test_a_folder_of_other_rules_is_not_changed(folder):
    """The rules of a result stand in its folder."""
    (folder / "out" / "matches").mkdir(parents=True)
    (folder / "out" / "matches" / "other").write_text("")
    result = run(folder, "--once")
    assert result.exit_code == 2
    assert "matches: found a folder with other content" in result.output
