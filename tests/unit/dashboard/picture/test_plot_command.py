"""`whenabouts-cloud plot`: files without a server, and clear refusals."""

import pytest
from click.testing import CliRunner

from support.browser import known_run
from support.browser.known_run import BEGIN_US, SECOND_US
from whenabouts_cloud.commands.dashboard.plot import plot
from whenabouts_cloud.dashboard.picture.view_file import MEDIA_TYPES


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The known run."""
    return known_run.make(tmp_path_factory.mktemp("known"))


def ran(run, *arguments):
    landing, results, _ = run
    return CliRunner().invoke(plot, ["--landing", str(landing), "--results", str(results), *map(str, arguments)])


@pytest.mark.parametrize("kind", MEDIA_TYPES)
def test_all_that_landed_is_drawn_into_a_file_of_each_kind(run, tmp_path, kind):
    """And the command says what it has written."""
    done = ran(run, tmp_path / f"out.{kind}")
    assert done.exit_code == 0
    assert f"out.{kind}: {(tmp_path / f'out.{kind}').stat().st_size} bytes, 3 lanes, 20 results" in done.output


def test_a_part_of_the_time_has_its_readings_only(run, tmp_path):
    """Times are ISO 8601 or microseconds."""
    done = ran(run, "--from", BEGIN_US, "--to", "2026-11-18T11:06:41.9Z", "--search", "dock", tmp_path / "out.csv")
    assert done.exit_code == 0
    assert BEGIN_US + 1_900_000 > BEGIN_US + SECOND_US
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 1 + 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(["out.gif"], "expected a name that ends in .svg, .png, .csv or .parquet"),
     (["--from", "soon", "out.svg"], "--from: found 'soon'"),
     (["--from", "5", "--to", "4", "out.svg"], "expected a time after --from"), (["/nowhere/out.svg"], "cannot be written")],
)  # fmt: skip
def test_wrong_usage_is_told_with_what_was_expected(run, tmp_path, monkeypatch, arguments, said):
    """No file is left."""
    monkeypatch.chdir(tmp_path)
    done = ran(run, *arguments)
    assert done.exit_code != 0
    assert said in " ".join(done.output.split())
    assert list(tmp_path.iterdir()) == []


def test_a_landing_without_readings_is_told(tmp_path):
    """Nothing could be drawn."""
    done = CliRunner().invoke(plot, ["--landing", str(tmp_path), str(tmp_path / "out.svg")])
    assert "found no readings" in done.output
