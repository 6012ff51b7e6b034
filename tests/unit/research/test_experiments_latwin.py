"""The Lat-Win paper's workload and experiments run small: clocks, stamps and truth of the office, and every figure."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from support.cloud.experiments import run_quick
from whenabouts_cloud.research.experiments.latwin_hybrid import hybrid_sizes
from whenabouts_cloud.research.experiments.latwin_run import emitted, verdicts, windows
from whenabouts_cloud.research.experiments.latwin_truth import held_in_window
from whenabouts_cloud.research.experiments.office import (
    HEARTBEAT,
    HOUR,
    LOG2,
    MINUTE,
    REPORT,
    SECOND,
    STATE,
    Office,
    Workload,
    simulate,
)

RECEIPTS = ("state", "silent", "report", "no messages")
TABLE_II = {2: 9, 3: 25, 4: 78, 5: 221}


def mean_size(office, window=4):
    """Average number of consistent global states over the last states of each process, after each arrival, by definition."""
    n = office.workload.processes
    held, sizes = [np.zeros(0, int) for _ in range(n)], []  # rows
    for row in np.flatnonzero(office.kind == STATE):
        p = office.process[row]
        held[p] = np.append(held[p], row)[-window:]
        box = np.ones([len(states) for states in held], bool)
        for i, j in itertools.permutations(range(n), 2):
            unaware = office.clock[held[j], i] <= office.state[held[i]][:, None]
            shape = [len(states) if p in (i, j) else 1 for p, states in enumerate(held)]
            box &= (unaware if i < j else unaware.T).reshape(shape)
        sizes.append(box.sum())
    return np.mean(sizes)


@pytest.mark.parametrize("processes", [*sorted(TABLE_II)[:-1], pytest.param(max(TABLE_II), marks=pytest.mark.deep)])
def test_windows_have_the_sizes_of_the_paper(processes):
    """Table II within 10 %, with receipts as states; samples at random and at common moments bracket it."""
    size = TABLE_II[processes]
    hours = 300 if processes < 4 else 100
    workload = Workload(processes, duration_us=hours * HOUR)
    scattered = mean_size(simulate(workload, 5))
    aligned = mean_size(simulate(replace(workload, aligned=True), 5))
    slower = {name: LOG2 * getattr(workload, name) for name in ("on_us", "off_us")}
    longer = mean_size(simulate(replace(workload, aligned=True, **slower), 5))
    assert scattered < aligned
    assert 0.8 * size < scattered < 1.1 * size
    assert 0.9 * size < longer < 1.1 * size


@pytest.mark.parametrize("receipt", RECEIPTS)
@pytest.mark.parametrize("in_order", [False, True])
def test_rows_are_what_a_checker_would_get(receipt, in_order):
    """States are numbered without gaps from 0, stamps hold the true time, nothing arrives before it was sent."""
    workload = Workload(4, 40 * HOUR, receipt, heartbeat_us=10 * MINUTE, report_delay_us=40 * SECOND, in_order=in_order)
    office = simulate(workload, 3)
    assert (np.diff(office.arrival_us) >= 0).all()
    assert (office.arrival_us >= office.true_us).all()
    assert (office.lo <= office.true_us).all()
    assert (office.true_us <= office.hi).all()
    assert (office.clock[np.arange(len(office.state)), office.process] == office.state).all()
    overtaken = 0
    for p in range(4):
        begins, holds = office.begins(p)
        own = office.process == p
        assert sorted(office.state[own & (office.kind == STATE)]) == list(range(len(begins)))
        assert (np.diff(begins) >= 0).all()
        overtaken += (np.diff(office.true_us[own]) < 0).sum()
        lasting = own & (office.kind != STATE)
        assert (np.searchsorted(begins, office.true_us[lasting], side="right") - 1 == office.state[lasting]).all()
        assert (holds[office.state[lasting]] == office.holds[lasting]).all()
    assert (overtaken == 0) == in_order


@pytest.mark.parametrize("receipt", RECEIPTS)
def test_a_clock_knows_what_has_happened_and_grows(receipt):
    """States known of another process had begun by then; own rows in the order of sending never know less."""
    office = simulate(Workload(3, 60 * HOUR, receipt, control_delay_us=5 * MINUTE), 8)
    begins = [office.begins(p)[0] for p in range(3)]
    for p in range(3):
        assert (begins[p][office.clock[:, p]] <= office.true_us).all()
        assert (np.diff(office.clock[office.process == p], axis=0) >= 0).all()
    foreign = office.clock.sum(axis=1) - office.state
    assert foreign.any() == (receipt != "no messages")


def test_each_onset_is_reported_to_all_others():
    """With short delays every other process knows of it before anything else happens; an end is reported to nobody."""
    office = simulate(Workload(3, 60 * HOUR, "report", control_delay_us=1000), 2)
    begins, holds = office.begins(0)
    assert holds[1::2].all()
    assert not holds[::2].any()
    for number in range(1, 40):
        later = (
            (office.process == 1) & (office.true_us > begins[number] + SECOND) & (office.true_us < begins[number + 1])
        )
        assert (office.clock[later, 0] == number - (number % 2 == 0)).all()
    reports = (office.kind == REPORT).sum()
    onsets = sum(office.begins(p)[1].sum() for p in range(3))
    assert reports == 2 * onsets


def test_the_choice_of_receipt_changes_what_is_reported_and_not_what_happens():
    """One seed gives the same changes, hence the same truth; states of receipts, reports and heartbeats come on top."""
    offices = {receipt: simulate(Workload(3, 30 * HOUR, receipt), 4) for receipt in RECEIPTS}
    truths = [office.occurrences().tolist() for office in offices.values()]
    assert len(truths[0]) > 20
    assert all(truth == truths[0] for truth in truths)
    states = {receipt: (office.kind == STATE).sum() for receipt, office in offices.items()}
    assert states["silent"] == states["report"] == states["no messages"] < states["state"]
    beating = simulate(Workload(3, 30 * HOUR, "silent", heartbeat_us=MINUTE), 4)
    assert (beating.kind == HEARTBEAT).sum() == 3 * 30 * 60


@pytest.mark.parametrize("seed", range(4))
def test_occurrences_are_the_stretches_in_which_all_hold(seed):
    """Looked up at every second of some hours, with common and with scattered moments of sampling."""
    office = simulate(Workload(2, 4 * HOUR, aligned=seed % 2 == 0), seed)
    moments = np.arange(0, 4 * HOUR, SECOND)
    true = np.ones(len(moments), bool)
    for p in range(2):
        begins, holds = office.begins(p)
        true &= holds[np.searchsorted(begins, moments, side="right") - 1]
    stretches = office.occurrences()
    assert len(stretches) > 2
    covered = np.zeros(len(moments), bool)
    for begin, end in stretches:
        assert begin < end
        covered |= (begin <= moments) & (moments < end)
    assert (covered == true).all()


def test_an_office_needs_two_processes_and_some_time():
    """One process has no global state."""
    with pytest.raises(ValueError, match="1 processes for"):
        simulate(Workload(1), 0)


def by_hand(changes, end_us=100 * MINUTE):
    """An office without messages from the minutes at which each process changes; each state arrives as it begins."""
    rows = [(p, k, at * MINUTE) for p, times in enumerate(changes) for k, at in enumerate([0, *times])]
    rows.sort(key=lambda row: row[2])
    process, state, at = (np.array(column) for column in zip(*rows, strict=True))
    clock = np.where(np.arange(len(changes)) == process[:, None], state[:, None], 0)
    zeros = np.zeros(len(rows), np.int64)
    workload = Workload(len(changes), end_us, "no messages", clock_error_us=0)
    return Office(workload, zeros, process, state, clock, state % 2 == 1, at, at, at, at)


def test_a_window_holds_what_its_states_lasted_or_only_what_the_paper_counts():
    """Minutes:  0    5    9   12        the last states of a run count to their begin, or to their end.
    first        .    1111111111111
    second       .         1111.
    """
    office = by_hand([[5, 40], [9, 12]])
    one, two = held_in_window(office, 1), held_in_window(office, 2)
    arrivals = [(0, 0), (1, 0), (0, 1), (1, 1), (1, 2), (0, 2)]
    assert list(zip(office.process.tolist(), office.state.tolist(), strict=True)) == arrivals
    assert one.truly.tolist() == [False, False, False, True, False, False]
    assert not one.as_paper.any()
    # After the end of the second's run, the first one's is on and counts as the instant of its begin.
    assert two.truly.tolist() == [False, False, False, True, True, True]
    assert two.as_paper.tolist() == [False, False, False, False, False, True]


def test_runs_that_touch_count_only_for_the_paper():
    """Minutes:  0    5    9   12     the first ends at the moment at which the second begins."""
    held = held_in_window(by_hand([[5, 9], [9, 12]]), 4)
    assert held.as_paper.tolist()[-1]
    assert not held.truly.any()


def test_stretches_are_named_by_the_runs_that_make_them():
    """Minutes:  0    5    9   12   20   30   40
    first        .    1111111111111111.    111
    second       .         1111.
    third        1111111111111111111111111111111   (by its first change at minute 1)
    """
    office = by_hand([[5, 20, 30, 40], [9, 12], [1]])
    stretches, runs = office.together(office.true_us)
    assert (stretches // MINUTE).tolist() == [[9, 12]]
    assert runs.tolist() == [[1, 1, 1]]
    later = office.true_us + np.where(office.process == 1, 23 * MINUTE, 0)
    stretches, runs = office.together(later)
    assert (stretches // MINUTE).tolist() == [[32, 35]]
    assert runs.tolist() == [[3, 1, 1]]


@pytest.mark.parametrize("seed", range(3))
def test_the_readings_of_a_window_agree_with_every_instant(seed):
    """`truly`: some moment lies in a true state of each window; looked up at all moments between changes."""
    office = simulate(Workload(3, 5 * HOUR, aligned=seed == 0), seed)
    held = held_in_window(office, 3)
    rows = np.flatnonzero(office.kind == STATE)
    moments = np.unique(office.true_us[rows])
    latest = np.full(3, -1)
    at = [np.searchsorted(office.begins(p)[0], moments, side="right") - 1 for p in range(3)]
    for row, truly in zip(rows, held.truly, strict=True):
        latest[office.process[row]] = office.state[row]
        inside = [(latest[p] - 3 < at[p]) & (at[p] <= latest[p]) & office.begins(p)[1][at[p]] for p in range(3)]
        assert truly == np.logical_and.reduce(inside).any()


KEYS = [
    "latwin-table2", "latwin-time", "latwin-fig7", "latwin-sound", "latwin-fig4", "latwin-fig4-space", "latwin-fig6",
    "latwin-fig5", "latwin-fig5-space", "latwin-hybrid", "latwin-emitted", "latwin-emitted-wait",
]  # fmt: skip


@pytest.fixture(scope="module")
def command(tmp_path_factory):
    """The command, with plots, report and figures; all figures, of some hours each."""
    return run_quick("latwin", tmp_path_factory.mktemp("latwin"))


@pytest.fixture(scope="module")
def quick(command):
    """The figures that the command wrote."""
    return command.figures()


def test_every_figure_is_measured(quick):
    """A value for each point of each line, and a paragraph; only the paper's lines have holes."""
    assert list(quick) == KEYS
    for figure in quick.values():
        assert len(figure.remark) > 30
        for name, values in figure.series.items():
            assert len(values) == len(figure.x)
            assert name.startswith("paper") or min(values) >= 0


def test_no_verdict_is_about_an_overlap_that_never_was(quick):
    """No verdict of the sound Def names runs that did not truly overlap; with short delays hardly a stretch is missed."""
    assert quick["latwin-emitted"].remark.startswith("0 of all verdicts")
    for name, percent in zip(quick["latwin-emitted"].x, quick["latwin-emitted"].series["3 processes"], strict=True):
        assert percent == 100 or name in ("silent", "no messages, 10 s, 10 s")


def test_bounded_clocks_and_reports_make_windows_small(quick):
    """Each of the two by itself, and both together most."""
    line = {name: values[0] for name, values in quick["latwin-hybrid"].series.items()}
    assert line["1 ms"] < line["clocks alone"]
    assert line["reports, 100 ms"] <= line["reports, clocks alone"] < line["clocks alone"]
    assert line["no messages, 100 ms"] < line["1 ms"]


def test_more_processes_have_larger_windows_and_bounded_clocks_fewer_of_them():
    """With only clocks sizes grow exponentially with the processes; ordered by good stamps they hardly do."""
    figure = hybrid_sizes((3, 5), 10, 2, lambda text: None)
    alone, stamped = figure.series["clocks alone"], figure.series["1 ms"]
    assert alone[1] > 4 * alone[0]
    assert stamped[1] < 3 * stamped[0]


def test_the_detector_and_the_lattice_say_the_same():
    """The paper's Def over the lattice is that of the detector, by clocks and with stamps."""
    office = simulate(Workload(3, 20 * HOUR, clock_error_us=30 * SECOND, report_delay_us=20 * SECOND), 9)
    for order in ("causal", "hybrid"):
        lattice, detector = windows(office, 3, order), verdicts(office, 3, order)
        assert (lattice.definitely == detector.in_window).all()
        assert 0 < detector.definitely.mean() < 1


def test_silent_receipts_report_what_is_still_in_the_window():
    """All runs but the last have to end before anything is known of it; a long window has them all still."""
    office = simulate(Workload(3, 40 * HOUR, "silent"), 1)
    stretches, runs = office.together(office.true_us)
    short, long = emitted(office, 4), emitted(office, 64)
    assert set(short) < set(long) <= set(map(tuple, runs.tolist()))
    assert len(long) > 0.95 * len(stretches)


def test_emitted_stretches_are_true_and_come_after_they_began():
    """Each emitted stretch is a true one, emitted no earlier than it began; by clocks that err by a minute too."""
    for error in (SECOND, MINUTE):
        office = simulate(Workload(3, 50 * HOUR, "report", clock_error_us=error, heartbeat_us=30 * SECOND), 3)
        stretches, runs = office.together(office.true_us)
        begins = dict(zip(map(tuple, runs.tolist()), stretches[:, 0].tolist(), strict=True))
        stretches_emitted = emitted(office, 4, "hybrid")
        assert len(stretches_emitted) > 100
        assert set(stretches_emitted) <= set(begins)
        assert all(at >= begins[run] for run, at in stretches_emitted.items())


def test_the_command_writes_plots_report_and_figures(command):
    """With --out; progress goes to stderr, the report to stdout; what the paper does not say is no number."""
    result, folder = command
    assert len([line for line in result.stderr.splitlines() if " s  " in line]) > 15
    for key in KEYS:
        assert (folder / f"{key}.png").read_bytes().startswith(b"\x89PNG")
    assert result.stdout == (folder / "report.md").read_text(encoding="utf-8")
    assert result.stdout.startswith("# The Lat-Win paper's experiments")
    data = command.data()
    assert [figure["key"] for figure in data["figures"]] == KEYS
    by_key = {figure["key"]: figure for figure in data["figures"]}
    assert by_key["latwin-fig4"]["series"]["paper"] == [None, 97.11]
    assert "| 1 | - |" in result.stdout
