"""The papers' experiments run small: every figure is there, its counts are right, and the command writes what it names."""

import pytest

from support.cloud.experiments import run_quick
from whenabouts_cloud.pattern.condition import Condition
from whenabouts_cloud.research.experiments.correlation import QUICK
from whenabouts_cloud.research.experiments.figures import Figure, markdown
from whenabouts_cloud.research.experiments.simulate import simulate
from whenabouts_cloud.research.experiments.workload import MS, RHO_US, arrivals

KEYS = ["2009-fig4", "2009-fig5", "2009-fig6", *(f"2010-fig{n}" for n in range(3, 10))]


@pytest.fixture(scope="module")
def command(tmp_path_factory):
    """The command, with plots, report and figures; all figures, a few hundred tuples each."""
    return run_quick("correlation", tmp_path_factory.mktemp("correlation"))


@pytest.fixture(scope="module")
def quick(command):
    """The figures that the command wrote."""
    return command.figures()


def test_every_figure_of_both_papers_is_measured(quick):
    """A value for each point of each line, none negative, and a paragraph."""
    assert list(quick) == KEYS
    for figure in quick.values():
        assert len(figure.remark) > 100
        for values in figure.series.values():
            assert len(values) == len(figure.x)
            assert min(values) >= 0


def test_the_machine_independent_findings_hold(quick):
    """Lazy waits and holds more, hit ratios are shares, both probe regions together are pi - rho wide."""
    response, held = quick["2010-fig4"].series, quick["2010-fig5"].series
    assert all(late > soon for late, soon in zip(response["lazy"], response["eager"], strict=True))
    assert all(more > less for more, less in zip(held["lazy"], held["eager"], strict=True))
    assert all(0 < x < 1 for line in quick["2010-fig7"].series.values() for x in line)
    regions = quick["2010-fig9"].series
    for left, right, both in zip(*regions.values(), strict=True):
        assert left + right == pytest.approx(180, abs=1)
        assert both <= left + right + 0.1
    pairs = quick["2009-fig6"].series["pairs"]
    assert pairs == sorted(pairs)


def test_a_workload_keeps_its_bounds():
    """Lengths, delay, rate; seq is in the order of the maxima."""
    for in_order in (False, True):
        work = arrivals(100, 2000, pi_us=200 * MS, seed=1, in_order=in_order)
        assert work == arrivals(100, 2000, pi_us=200 * MS, seed=1, in_order=in_order)
        assert all(RHO_US <= t_max - t_min <= work.pi_us for _, _, _, t_min, t_max in work.events)
        assert all(0 <= now - t_max <= work.delay_us for now, _, _, _, t_max in work.events)
        assert [e[0] for e in work.events] == sorted(e[0] for e in work.events)
        assert 9_000_000 < work.events[-1][0] <= 10_100_000
        assert sorted((e[1], e[2]) for e in work.events) == [(s, i) for s in "ab" for i in range(1000)]


@pytest.mark.parametrize("name", ["simple", "simple_sort", "eager", "lazy", "lookup", "banded"])
def test_every_operator_finds_the_same_pairs_in_a_simulation(name):
    """And none is late by the workload's own bound."""
    work = arrivals(200, 800, pi_us=300 * MS, seed=3)
    condition = Condition("within", d=500 * MS, confidence="0.8")
    run = simulate(name, condition, work, block=50 if name in ("lazy", "lookup") else None)
    exact = simulate("simple", condition, work)
    assert run.counters.pairs == exact.counters.pairs > 1000
    assert run.counters.late == 0
    assert run.execution_us > 0
    assert run.response_2010_us > run.response_2009_us > 0


def test_the_command_writes_plots_report_and_figures(command):
    """With --out; progress goes to stderr, the report to stdout."""
    result, folder = command
    assert len([line for line in result.stderr.splitlines() if " s  " in line]) > 20
    for key in KEYS:
        assert (folder / f"{key}.png").read_bytes().startswith(b"\x89PNG")
    assert result.stdout == (folder / "report.md").read_text(encoding="utf-8")
    assert result.stdout.count("\n## ") == len(KEYS)
    assert f"Scaled down: {QUICK.tuples} tuples a file" in result.stdout
    assert "compiling" in result.stderr
    data = command.data()
    assert [figure["key"] for figure in data["figures"]] == KEYS


def test_a_table_has_a_row_a_point():
    """Numbers short, zero as zero."""
    figure = Figure("k", "2009, Figure 4", "t", "rate", "ms", (1, 2), {"x": [0.0, 12345.6]}, "Why.")
    assert "| rate | x |\n|---|---|\n| 1 | 0 |\n| 2 | 12 346 |\n\n(ms)\n\nWhy." in markdown([figure], "p")
