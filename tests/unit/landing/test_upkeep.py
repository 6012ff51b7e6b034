"""The commands `compact` and `retain` say what they have done, and refuse what makes no sense."""

import pytest
from click.testing import CliRunner

from support.cloud.landing import land, reading
from whenabouts_cloud.commands.landing.upkeep import compact_landing, retain_landing
from whenabouts_cloud.landing.compaction import held
from whenabouts_cloud.landing.store import Store


@pytest.fixture
def landing(tmp_path):
    """Two hours of files, the first of them closed and with a damaged one."""
    for hour in ("01", "02"):
        for n in range(4):
            land(tmp_path / "l", [reading("g", n, "s", "k", n, n)], hour=f"2026-11-20T{hour}")
    damaged = land(tmp_path / "l", [reading("g", 9, "s", "k", 9, 9)], hour="2026-11-20T01")
    damaged.write_bytes(b"PAR1")
    return str(tmp_path / "l")


def test_compact_says_what_it_has_merged_and_deleted(landing):
    """Twice: the second run deletes what the first has replaced."""
    texts = [CliRunner().invoke(compact_landing, ["--landing", landing, "--grace", "0s"]).stdout for _ in range(2)]
    assert texts == [
        "4 files with 4 readings merged into 1; 0 originals of earlier merges deleted\n",
        "0 files with 0 readings merged into 0; 4 originals of earlier merges deleted\n",
    ]


def test_compact_names_what_it_leaves_to_a_run_that_is_at_work(landing):
    """Nothing is merged meanwhile, and that is no error."""
    with held(Store.at(landing)):
        done = CliRunner().invoke(compact_landing, ["--landing", landing, "--grace", "0s"])
    assert done.exit_code == 0
    assert done.stderr == f"left to another run, which is at work there: {landing}\n"
    assert done.stdout.startswith("0 files with 0 readings merged")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--grace", "soon"], "found 'soon', expected a duration such as 30s, 10m or 1h"),
        (["--landing", "nfs4://x/y"], "found no such kind of store"),
        (["--landing", "/nowhere"], "found nothing at /nowhere, expected a landing"),
    ],
)
def test_what_makes_no_sense_is_refused(landing, options, text):
    """With what was found and what is expected."""
    for command, more in ((compact_landing, []), (retain_landing, ["--days", "3"])):
        if command is retain_landing and "--grace" in options:
            continue
        done = CliRunner().invoke(command, ["--landing", landing, *options, *more])
        assert done.exit_code == 2
        assert text in " ".join(done.output.split())
