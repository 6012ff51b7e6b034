"""Outputs of jobs, and which of their batches are new."""

import os
import shutil

import pytest

from support.browser import known_run
from whenabouts_cloud.correlation.pairs import RESULT as PAIR
from whenabouts_cloud.dashboard.results.outputs import LATE, Batches, Output, outputs_in
from whenabouts_cloud.landing.store import Store


def test_outputs_are_found_in_a_place_or_in_the_folders_of_it(tmp_path):
    """Each once, though a place is given twice."""
    _, results, _ = known_run.make(tmp_path)
    for places in ([results], [results.parent], [results, results]):
        found = {(one.name, one.kind) for one in outputs_in([Store.at(place) for place in places])}
        assert found == {("pairs/handover", "pair"), ("matches", "match")}


def test_a_batch_is_new_once(tmp_path):
    """The side output has batches of its own."""
    _, results, _ = known_run.make(tmp_path)
    [output] = [one for one in outputs_in([Store.at(results)]) if one.kind == "pair"]
    batches = Batches(output)
    assert sorted((side, number) for side, _, number in batches.new()) == [("", 0), ("", 1), (LATE, 0)]
    assert batches.new() == []
    known_run.publish(results / "pairs" / "handover", PAIR, 2, known_run.pairs()[:1])
    assert [(side, number) for side, _, number in batches.new()] == [("", 2)]
    assert not batches.replaced()


@pytest.mark.parametrize("count", [1, 3, 5])
@pytest.mark.parametrize("is_looked_at", [True, False])
def test_an_output_that_was_deleted_and_computed_anew_is_told_as_anew(tmp_path, count, is_looked_at):
    """With fewer batches than before, or as many, or more; seen while it was away, or not."""
    out = tmp_path / "pairs" / "handover"
    batches = Batches(Output(Store.at(out), "pairs/handover", "pair"))
    for number in range(3):
        known_run.publish(out, PAIR, number, known_run.pairs()[:1])
    assert (len(batches.new()), batches.replaced()) == (3, False)
    shutil.rmtree(out)
    if is_looked_at:
        assert (batches.replaced(), batches.new(), batches.replaced()) == (True, [], False)
    for number in range(count):
        known_run.publish(out, PAIR, number, known_run.pairs()[:1])
    assert batches.replaced() is not is_looked_at
    assert [number for _, _, number in batches.new()] == list(range(count))
    assert not batches.replaced()


def test_a_batch_is_new_although_its_folder_had_just_changed(tmp_path):
    """Within a tick of the file system's clock, which then shows the same time as before."""
    out = tmp_path / "pairs" / "handover"
    batches = Batches(Output(Store.at(out), "pairs/handover", "pair"))
    known_run.publish(out, PAIR, 0, known_run.pairs()[:1])
    assert len(batches.new()) == 1
    changed_ns = out.stat().st_mtime_ns
    known_run.publish(out, PAIR, 1, known_run.pairs()[:1])
    os.utime(out, ns=(changed_ns, changed_ns))
    assert [number for _, _, number in batches.new()] == [1]


def test_nothing_is_found_where_nothing_is(tmp_path):
    """And nothing is raised."""
    assert outputs_in([Store.at(tmp_path / "nowhere")]) == []
