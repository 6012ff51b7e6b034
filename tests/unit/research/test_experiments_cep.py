"""The INFA-HTS paper's experiments run small: all figures, exact matches, waits that can be counted by hand."""

import numpy as np
import pytest

from reference import cep as definition
from support.cloud.experiments import run_quick
from whenabouts_cloud.cep import Pattern
from whenabouts_cloud.research.experiments.cep_run import METHODS, cpu_s, held_bytes, in_order, rows_of, run
from whenabouts_cloud.research.experiments.cep_workload import (
    HARD_SHORT,
    TABLE_1,
    TYPES,
    UNIT,
    Stream,
    by_source,
    table_1,
)

KEYS = [*(f"cep-fig{n}" for n in range(4, 9)), "cep-keys", "cep-hard-early", "cep-hard-wait", "cep-sources"]


@pytest.fixture(scope="module")
def command(tmp_path_factory):
    """The command, with plots, report and figures; all figures, some thousand events each."""
    return run_quick("cep", tmp_path_factory.mktemp("cep"))


@pytest.fixture(scope="module")
def quick(command):
    """The figures that the command wrote."""
    return command.figures()


def stream(events, heartbeats=(), k=10 * UNIT):
    """From (type, unit, source) in the order of arrival, each on time or with the one before."""
    codes, units, sources = zip(*events, strict=True)
    t = np.array(units) * UNIT
    heartbeat_rows = np.array(heartbeats, np.int64).reshape(-1, 3) * (1, 1, UNIT)
    code = np.array([TYPES.index(x) for x in codes])
    return Stream(code, np.zeros_like(t), t, np.array(sources), np.maximum.accumulate(t), heartbeat_rows, k)


def test_every_figure_is_measured(quick):
    """A value for each point of each line, none negative, and a paragraph."""
    assert list(quick) == KEYS
    for figure in quick.values():
        assert len(figure.remark) > 100
        for values in figure.series.values():
            assert len(values) == len(figure.x)
            assert min(values) >= 0


def test_all_methods_are_exact_and_a_broken_disorder_bound_is_seen(quick):
    """Recall and precision 1 and nothing twice; K-slack with half the delay loses matches and emits wrong ones."""
    lines = quick["cep-fig7"].series
    for method in METHODS:
        assert set(lines[f"{method}: recall"]) == set(lines[f"{method}: precision"]) == {1.0}
    assert set(lines["duplicates of all four"]) == {0.0}
    assert lines["kslack, K 5: recall"][0] == 1
    assert lines["kslack, K 5: recall"][-1] < 0.9
    assert lines["kslack, K 5: precision"][-1] < 1


def test_waits_have_the_order_that_follows_from_what_each_method_waits_for(quick):
    """Aggressive never; sure only where it matters; conservative until a punctuation; K-slack always."""
    waits = quick["cep-fig6"].series
    for at_once, sure, quantised, always in zip(
        *(waits[m] for m in ("aggressive", *METHODS[:1], *METHODS[2:0:-1])), strict=True
    ):
        assert 0 == at_once <= sure <= quantised < always
    assert 9 < waits["kslack"][0] <= 11
    for by_source_wait, bound, slack in zip(*quick["cep-sources"].series.values(), strict=True):
        assert by_source_wait < bound <= slack


def test_negation_before_the_last_event_makes_eager_wrong_and_everyone_wait(quick):
    """With only a K-bound no method waits less than K-slack there."""
    early, wait = quick["cep-hard-early"], quick["cep-hard-wait"]
    assert early.x == wait.x
    rows = [n for n, name in enumerate(early.x) if name.startswith(("AB!CD ", "ABDEF!CG"))]
    assert len(rows) == 4
    for n in rows:
        assert early.series["retracted, on arrival"][n] > 1
        assert early.series["must wait, infa_hts"][n] > 95
        assert wait.series["infa_hts"][n] == wait.series["kslack"][n]


def test_a_wait_is_counted_from_the_last_event_to_the_one_that_makes_it_final():
    """Time ->  A0   B2   J11   J13; K 10: at 13 nothing before 3 can come, so B's left side is closed; at 11 it is not."""
    one = stream([("A", 0, 0), ("B", 2, 0), ("J", 11, 0), ("J", 13, 0)])
    result = run("SEQ(A, !C, B) WITHIN 40", "infa_hts", one, k=one.k)
    assert rows_of(result.emitted) == [(0, 1)]
    assert result.wait_units.tolist() == [11.0]
    assert result.must_wait.tolist() == [True]
    free = run("SEQ(A, B) WITHIN 40", "infa_hts", one, k=one.k)
    assert (free.wait_units.tolist(), free.must_wait.tolist()) == ([0.0], [False])


def test_a_heartbeat_ends_a_wait_at_its_own_time():
    """Time ->  A0   B2   both sources send heartbeat 5 after B: emitted 3 units later, though no event came."""
    one = stream([("A", 0, 0), ("B", 2, 1), ("J", 30, 0)], heartbeats=[(2, 0, 5), (2, 1, 5)])
    result = run("SEQ(A, !C, B) WITHIN 40", "infa_hts", one)
    assert (rows_of(result.emitted), result.wait_units.tolist()) == ([(0, 1)], [3.0])


def test_a_match_emitted_only_at_the_end_has_no_wait():
    """Nothing made it final while the stream ran."""
    one = stream([("A", 0, 0), ("B", 2, 0)])
    result = run("SEQ(A, !C, B) WITHIN 40", "infa_hts", one, k=one.k)
    assert rows_of(result.emitted) == [(0, 1)]
    assert np.isnan(result.wait_units).all()
    assert result.mean_wait_units == 0


@pytest.mark.parametrize("text", [HARD_SHORT, "SEQ(!C, A, B) WITHIN 4", "SEQ(A, B, !C) WITHIN 4"])
def test_the_truth_is_that_of_the_definition(text):
    """An in-order engine over the sorted events, in indices of arrival."""
    total = 0
    for seed in range(8):
        one = table_1(60, 2, 0.5, seed=seed)
        plan = Pattern.parse(text, unit_us=UNIT).plan(TYPES)
        rows = [definition.Event(*map(int, row)) for row in zip(one.type_code, one.key, one.t, one.t, strict=True)]
        expected = definition.final(definition.Case(plan, len(TYPES), tuple(rows), k=one.k))
        assert in_order(text, one) == expected
        total += len(expected)
    assert total > 10


@pytest.mark.parametrize("method", METHODS)
def test_every_method_has_a_cost_and_a_size(method):
    """CPU seconds and bytes, above nothing; a source's order is understood too."""
    one = table_1(1000, 4, 0.2, seed=1)
    assert cpu_s(TABLE_1, (method,), one, 1)[0] > 0
    assert held_bytes(TABLE_1, method, one) > 1000
    many = by_source(400, 2, 0.2, seed=1)
    result = run(HARD_SHORT, method, many)
    assert set(rows_of(result.emitted)) - set(rows_of(result.retracted)) == in_order(HARD_SHORT, many)
    assert result.late == 0


def test_the_command_writes_plots_report_and_figures(command):
    """With --out; progress goes to stderr, the report to stdout."""
    result, folder = command
    assert len([line for line in result.stderr.splitlines() if " s  " in line]) > 20
    for key in KEYS:
        assert (folder / f"{key}.png").read_bytes().startswith(b"\x89PNG")
    assert result.stdout == (folder / "report.md").read_text(encoding="utf-8")
    assert result.stdout.startswith("# The INFA-HTS paper's experiments")
    data = command.data()
    assert [figure["key"] for figure in data["figures"]] == KEYS
