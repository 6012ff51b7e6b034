"""Outputs of jobs, and which of their batches are new."""

from support.browser import known_run
from whenabouts_cloud.correlation.pairs import RESULT as PAIR
from whenabouts_cloud.dashboard.results.outputs import LATE, Batches, outputs_in
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


def test_nothing_is_found_where_nothing_is(tmp_path):
    """And nothing is raised."""
    assert outputs_in([Store.at(tmp_path / "nowhere")]) == []
