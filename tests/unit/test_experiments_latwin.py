"""The Lat-Win paper's workload and experiments run small: clocks, stamps and truth of the office, and every figure."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from whenabouts_cloud.experiments.office import (
    HEARTBEAT,
    HOUR,
    LOG2,
    MINUTE,
    REPORT,
    SECOND,
    STATE,
    Workload,
    simulate,
)

RECEIPTS = ("state", "silent", "report", "no messages")
TABLE_II = {2: 9, 3: 25, 4: 78, 5: 221}


def mean_size(office, window=4):
    """Average number of consistent global states over the last states of each process, after each arrival, by definition."""
    n = office.workload.processes
    held, sizes = [[] for _ in range(n)], []
    for row in np.flatnonzero(office.kind == STATE):
        p = office.process[row]
        held[p] = [*held[p], (int(office.state[row]), office.clock[row])][-window:]
        box = np.ones([len(states) for states in held], bool)
        for i, j in itertools.permutations(range(n), 2):
            unaware = np.array([[clock[i] <= number for _, clock in held[j]] for number, _ in held[i]], bool)
            shape = [len(states) if p in (i, j) else 1 for p, states in enumerate(held)]
            box &= (unaware if i < j else unaware.T).reshape(shape)
        sizes.append(box.sum())
    return np.mean(sizes)


@pytest.mark.parametrize("processes", TABLE_II)
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
    """What is known of another process had begun by then; own rows in the order of sending never know less."""
    office = simulate(Workload(3, 60 * HOUR, receipt, control_delay_us=5 * MINUTE), 8)
    begins = [office.begins(p)[0] for p in range(3)]
    for p in range(3):
        assert (begins[p][office.clock[:, p]] <= office.true_us).all()
        assert (np.diff(office.clock[office.process == p], axis=0) >= 0).all()
    foreign = office.clock.sum(axis=1) - office.state
    assert foreign.any() == (receipt != "no messages")


def test_each_onset_is_told_to_all_others():
    """With short delays every other process knows of it before anything else happens; an end is told to nobody."""
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


def test_the_choice_of_receipt_changes_what_is_told_and_not_what_happens():
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
    found = np.zeros(len(moments), bool)
    for begin, end in stretches:
        assert begin < end
        found |= (begin <= moments) & (moments < end)
    assert (found == true).all()


def test_an_office_needs_two_processes_and_some_time():
    """One process has no global state."""
    with pytest.raises(ValueError, match="1 processes for"):
        simulate(Workload(1), 0)
