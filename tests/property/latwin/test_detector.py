"""The detector of conjunctions against the definitions and true time: after every report, in every order of arrival."""

from itertools import pairwise
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from property.strategies_latwin import Case, cases, computations
from reference.latwin import Checker, by_brute_force, clocks_of, consistent, definitely, possibly, simulate
from support.latwin.checks import report, runs_overlapped, watch
from support.search import examples, seeds
from whenabouts_cloud.latwin.conjunction.detector import ConjunctionDetector

ROOM = 64  # no gap of these computations is given up
ORDERS = st.sampled_from(["causal", "hybrid"])


def detector(case, order="causal", patient=False):
    """A detector for a case."""
    return ConjunctionDetector(case.computation.processes, list(case.window), order, patient, ROOM)


def all_hold(checker):
    """The conjunction over what the checker has accepted."""
    return lambda g: all(checker.holds(p, s) for p, s in enumerate(g))


@given(cases(any_order=True), ORDERS)
@settings(max_examples=examples(150))
def test_possibly_and_the_windowed_definitely_are_those_of_the_lattice_of_the_windows(case, order):
    """By brute force over every window that a report makes; by stamps too, as far as they have come."""
    one = detector(case, order)
    for index, checker, made in watch(case):
        verdict = report(one, case.computation.events[index])
        clocks, hold = checker.clocks(order == "hybrid"), all_hold(checker)
        lattices = [by_brute_force(clocks, windows) for windows in made]
        assert verdict.possibly == any(possibly(states, hold) for states in lattices)
        assert verdict.definitely_in_window == any(definitely(states, hold) for states in lattices)


@given(cases(most_processes=3, most_steps=18, most_window=3, any_order=True))
@settings(max_examples=examples(150))
def test_definitely_is_that_of_the_whole_lattice_on_the_runs_of_the_window(case):
    """Definitely is reported exactly if every way through every continuation of the computation meets the runs."""
    one = detector(case)
    for index, checker, made in watch(case):
        before = len(checker.accepted)
        verdict = report(one, case.computation.events[index])
        if len(made) == 1:
            assert verdict.definitely == checker.definitely()
        elif checker.definitely():
            assert verdict.definitely
        assert len(checker.accepted) == before


@given(cases(most_processes=3, most_steps=16, most_window=3, any_order=True))
@settings(max_examples=examples(100))
def test_by_stamps_definitely_never_exceeds_that_of_the_whole_lattice(case):
    """What has left the window may be forgotten, never invented."""
    one = detector(case, "hybrid")
    for index, checker, made in watch(case):
        if report(one, case.computation.events[index]).definitely and len(made) == 1:
            assert checker.definitely(True)


@given(computations(most_processes=3, most_steps=16, any_order=True))
@settings(max_examples=examples(100))
def test_by_stamps_definitely_is_that_of_the_whole_lattice_while_nothing_is_forgotten(computation):
    """In windows that hold everything; except first states: others know their begin by time only from the process itself."""
    case = Case(computation, (16,) * computation.processes)
    one = detector(case, "hybrid")
    for index, checker, _ in watch(case):
        verdict = report(one, computation.events[index])
        if all(first > 0 for p in range(computation.processes) for first, _ in checker.runs(p)):
            assert verdict.definitely == checker.definitely(True)


@given(cases(any_order=True, most_processes=5, most_steps=40), ORDERS, st.booleans())
@settings(max_examples=examples(200))
def test_definitely_is_never_contradicted_by_true_time(case, order, patient):
    """The reported runs truly overlapped, each choice once; patient or not, late, doubled, out of order."""
    one = detector(case, order, patient and order == "hybrid")
    emitted = []
    for index in case.computation.arrivals:
        verdict = report(one, case.computation.events[index])
        emitted += one.overlaps
        assert emitted or not verdict.definitely
        assert verdict.definitely or not one.overlaps
    assert all(runs_overlapped(case.computation, firsts) for firsts in emitted)
    assert len(emitted) == len(set(emitted))
    for earlier, later in pairwise(emitted):
        assert all(a <= b for a, b in zip(earlier, later, strict=True))


@given(cases(most_processes=3, most_steps=18, most_window=4, any_order=True))
@settings(max_examples=examples(150))
def test_every_sure_overlap_is_emitted_when_it_becomes_sure(case):
    """By causality all choices of runs in the window for which Def holds on the whole lattice, not only the latest."""
    one = detector(case)
    sure, emitted = set(), set()
    for index, checker, made in watch(case):
        report(one, case.computation.events[index])
        emitted |= set(one.overlaps)
        if len(made) > 1:
            emitted |= (overlaps := checker.overlaps()) & set(one.overlaps)
            sure |= overlaps
            assert sure <= emitted
            sure |= emitted  # what was sure in the windows between
        else:
            sure |= checker.overlaps()
            assert sure == emitted


def test_definitely_is_never_contradicted_by_true_time_in_larger_computations():
    """Of up to six processes, both orders, patient or not."""
    emitted, tried = 0, seeds(500)
    for seed in tried:
        random = Random(seed)
        computation = simulate(
            random,
            random.choice([2, 3, 4, 6]),
            60,
            error=random.choice([0, 1, 5, 50]),
            receives=random.choice(["state", "heartbeat", "silent", "mixed"]),
            joins_late=seed % 3 == 0,
            delay=random.choice([0, 5, 40]),
        )
        order = random.choice(["causal", "hybrid"])
        one = ConjunctionDetector(
            computation.processes, random.choice([1, 2, 4]), order, order == "hybrid" and seed % 2
        )
        for index in computation.arrivals:
            report(one, computation.events[index])
            emitted += len(one.overlaps)
            assert all(runs_overlapped(computation, firsts) for firsts in one.overlaps), f"seed {seed}"
    assert emitted > len(tried) / 4


@given(cases(any_order=True))
@settings(max_examples=examples(100))
def test_a_finer_order_only_adds_to_definitely(case):
    """A result sure by causality stays sure with stamps; except for first states, whose begin time may prove late."""
    coarse, fine = detector(case), detector(case, "hybrid")
    for index, checker, _ in watch(case):
        event = case.computation.events[index]
        sure, surer = report(coarse, event), report(fine, event)
        if all(first > 0 for p in range(case.computation.processes) for first, _ in checker.runs(p)):
            assert surer.definitely or not sure.definitely


@given(cases(any_order=True))
@settings(max_examples=examples(150))
def test_retracted_is_set_exactly_if_a_possible_result_is_refuted(case):
    """Eager by stamps: of the windows last called possible no consistent global state with all true is left."""
    one = detector(case, "hybrid")
    emitted, stands = [], False  # windows last called possible; whether the last of them stood then
    for index, checker, made in watch(case):
        verdict = report(one, case.computation.events[index])
        clocks, hold = checker.clocks(True), all_hold(checker)
        refuted = bool(emitted) and not possibly(by_brute_force(clocks, emitted[-1]), hold)
        assert refuted or not verdict.retracted
        assert verdict.retracted or not (refuted and stands)
        emitted = [windows for windows in made if possibly(by_brute_force(clocks, windows), hold)]
        stands = bool(emitted) and emitted[-1] == made[-1]


@given(cases(any_order=True))
@settings(max_examples=examples(100))
def test_patient_retracts_nothing_and_possible_results_stay_possible(case):
    """Its windows, once let in, are judged as if everything had come."""
    one = detector(case, "hybrid", patient=True)
    everything = Checker(case.computation, (64,) * case.computation.processes)
    for index in case.computation.arrivals:
        everything.push(index)
    clocks = clocks_of(case.computation, everything.accepted)
    for index in case.computation.arrivals:
        verdict = report(one, case.computation.events[index])
        assert not verdict.retracted
        if verdict.possibly:
            assert consistent(clocks, one.witness)
            assert all_hold(everything)(one.witness)


@pytest.mark.compiles
@given(cases(any_order=True), ORDERS, st.data())
@settings(max_examples=examples(100))
def test_batches_and_restarts_change_nothing(case, order, data):
    """Columns fed in pieces, with a restart between them, give the verdicts of one report after the other."""
    events = [case.computation.events[i] for i in case.computation.arrivals if case.computation.events[i].begins]
    one, many = detector(case, order), detector(case, order)
    singly = [(*report(one, event), one.overlaps) for event in events]
    cuts = sorted({0, len(events), *data.draw(st.lists(st.integers(0, len(events)), max_size=3))})
    batched = []
    for begin, end in pairwise(cuts):
        part = events[begin:end]
        columns = many.feed(
            [e.process for e in part], [e.state for e in part], [e.clock for e in part], [e.holds for e in part],
            [e.lo for e in part], [e.hi for e in part],
        )  # fmt: skip
        emitted = [columns.overlaps[columns.overlap_row == row].tolist() for row in range(len(part))]
        verdicts = zip(*columns[:4], emitted, strict=True)
        batched += [(*map(bool, row[:4]), list(map(tuple, row[4]))) for row in verdicts]
        blob = many.snapshot()
        many = detector(case, order)
        many.restore(blob)
    assert batched == singly


@given(computations(heartbeats=True))
@settings(max_examples=examples(80))
def test_heartbeats_and_repetition_never_take_from_definitely(computation):
    """With clock heartbeats it is reported whenever it is without them; a repeated state changes nothing."""
    case = Case(computation, (3,) * computation.processes)
    bare, helped = detector(case), detector(case)
    for index in computation.arrivals:
        event = computation.events[index]
        if event.begins:
            emitted, without = report(helped, event), report(bare, event)
            assert emitted.definitely or not without.definitely
            assert all(before or not again for before, again in zip(emitted, report(helped, event), strict=True))
        else:
            report(helped, event)


@pytest.mark.parametrize("processes", [1, 2, 64])
def test_any_number_of_processes(processes):
    """A group of one is watched too, and one as large as a clock may be."""
    one = ConjunctionDetector(processes, 2)
    columns = np.arange(processes), np.zeros(processes, int), np.zeros((processes, processes), int)
    verdicts = one.feed(*columns, np.ones(processes, bool))
    assert verdicts.possibly.tolist() == verdicts.definitely.tolist() == [False] * (processes - 1) + [True]
