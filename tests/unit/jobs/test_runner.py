"""A run of works before Spark is needed (`jobs.runner`, `jobs.running_work`); tests of jobs on Spark run the rest."""

import contextlib
import socket
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from support.cloud.s3 import variables
from whenabouts_cloud.cli import main
from whenabouts_cloud.jobs.output.output_place import Output
from whenabouts_cloud.jobs.output.sink import claim
from whenabouts_cloud.jobs.runner import LISTED_AGAIN, _Run, run
from whenabouts_cloud.jobs.work import Options, Work
from whenabouts_cloud.landing.store import Store
from whenabouts_cloud.rules import parse_rules

STREAMS = 'STREAM a FROM "a" DELAY 1 s\nSTREAM b FROM "b" DELAY 1 s\n'
NEAR, THEN = parse_rules(
    STREAMS
    + "RULE near CORRELATE a AS x, b AS y WHERE |@x - @y| <= 1 s OVER 80 %\nRULE then SEQ(a, b) WITHIN 1 s PER key"
).rules


@pytest.fixture
def start(tmp_path):
    """Runs one work on a landing of this name; its work must not begin."""

    def start(landing, once, rule=NEAR):
        def never(*_):
            raise AssertionError

        places = Store.at(tmp_path / landing), Output.at(tmp_path / "out")
        options = Options(*places, once, False, 2, 0.0, "local[1]", False, "text", None)
        run([Work([rule], options.out, "pairs", str, {}, never, never)], options)

    return start


def test_one_pass_needs_a_landing(start, tmp_path):
    """Wrong usage, and nothing is written."""
    with pytest.raises(click.UsageError, match=r"--landing: found no folder .*none, expected what the ingest writes"):
        start("none", once=True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("once", [True, False])
def test_an_output_of_another_rule_is_refused(start, tmp_path, once):
    """Before Spark starts, in both modes."""
    (tmp_path / "landing").mkdir()
    claim(tmp_path / "out", THEN, "once" if once else "streaming", 2)
    with pytest.raises(click.UsageError, match=r"found results of rule .*take another --out"):
        start("landing", once)


@pytest.mark.parametrize("times", [LISTED_AGAIN, LISTED_AGAIN + 1])
def test_one_pass_begins_anew_a_few_times_when_files_that_it_has_listed_are_gone(tmp_path, monkeypatch, times):
    """They were merged or deleted meanwhile; for ever would be a landing that is deleted faster than it is read."""
    (tmp_path / "landing").mkdir()
    left_out = []

    def compute(_, names):
        left_out.append(list(names))
        if len(left_out) <= times:
            raise OSError(
                "DamagedFileError: hour=2026-11-20T18/part-00000001.parquet: found no whole Parquet file (gone)"
            )
        return Store.at(tmp_path / "none"), []

    monkeypatch.setattr(_Run, "_session", lambda _: contextlib.nullcontext())
    places = Store.at(tmp_path / "landing"), Output.at(tmp_path / "out")
    options = Options(*places, True, False, 2, 0.0, "local[1]", True, "text", None)
    ends = (
        pytest.raises(click.ClickException, match="not computed") if times > LISTED_AGAIN else contextlib.nullcontext()
    )
    with ends:
        run([Work([NEAR], options.out, "pairs", str, {}, compute, compute)], options)
    assert left_out == [[]] * (LISTED_AGAIN + 1)


def test_a_signal_ends_the_wait_for_a_landing(tmp_path):
    """A job may start before the ingest; it ends without an error if it is stopped first."""
    (tmp_path / "rules.wa").write_text(NEAR.text(), encoding="utf-8")
    options = ["--landing", tmp_path / "none", "--rule", tmp_path / "rules.wa", "--out", tmp_path / "out"]
    command = [sys.executable, "-m", "whenabouts_cloud.cli", "correlate", *map(str, options)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        first = process.stderr.readline()
        process.terminate()
        rest = process.stderr.read()
    assert "landing.waiting" in first
    assert (process.returncode, rest) == (0, "")


@pytest.mark.parametrize("once", [["--once"], []])
def test_an_object_store_that_does_not_answer_is_told_in_one_line(tmp_path, monkeypatch, once):
    """Before Spark is started."""
    with socket.socket() as taken:  # nobody listens there
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    for name, value in variables(port).items():
        monkeypatch.setenv(name, value)
    (tmp_path / "rules.wa").write_text(NEAR.text(), encoding="utf-8")
    options = ["--landing", "s3://none/landing", "--rule", tmp_path / "rules.wa", "--out", tmp_path / "out"]
    done = CliRunner().invoke(main, ["correlate", *map(str, options), *once])
    assert done.exit_code == 1, done.output
    assert "Error: landing s3://none/landing: cannot be reached (" in done.output


@pytest.mark.parametrize(
    ("more", "warned"), [([], True), (["--checkpoint", "c"], False), (["--master", "local"], False)]
)
def test_a_checkpoint_that_workers_of_a_cluster_may_not_reach_is_warned_of(tmp_path, bucket, monkeypatch, more, warned):
    """With results in an object store it is in a folder of this machine, unless one is named."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "rules.wa").write_text(NEAR.text(), encoding="utf-8")
    out = f"{bucket}/{tmp_path.name}/out"
    options = [
        "--landing",
        tmp_path / "none",
        "--rule",
        tmp_path / "rules.wa",
        "--out",
        out,
        "--master",
        "spark://none:1",
    ]
    command = [sys.executable, "-m", "whenabouts_cloud.cli", "correlate", *map(str, options), *more]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=tmp_path) as process:
        assert process.stderr is not None
        lines = iter(process.stderr.readline, "")
        said = [next(lines)]
        while " landing.waiting " not in said[-1]:
            said.append(next(lines))
        process.terminate()
        process.stderr.read()
    assert (f"checkpoint.local folder={tmp_path}/state/whenabouts/checkpoints/" in "".join(said)) is warned
    assert process.returncode == 0
