"""A reading in detail."""

import pytest

from support.browser import known_run
from support.browser.known_run import DOCK, DOOR, KEYS, LATE_SEQ
from whenabouts_cloud.dashboard.answers.reading_answer import parts_of, reading
from whenabouts_cloud.dashboard.data.landed import LandedIndex
from whenabouts_cloud.dashboard.results.health_state import HealthState
from whenabouts_cloud.dashboard.results.result_index import ResultIndex
from whenabouts_cloud.landing.store import Store


@pytest.fixture(scope="module")
def indices(tmp_path_factory):
    """The known run, read whole."""
    landing, results, _ = known_run.make(tmp_path_factory.mktemp("known"))
    made = LandedIndex(Store.at(landing)), ResultIndex([Store.at(results)]), HealthState(Store.at(landing))
    while made[0].follow(10) or made[1].follow(10) or made[2].follow(10):
        pass
    return made


def ask(indices, lane, seq):
    row = next(x for x in known_run.readings() if (x["gateway"], x["stream"]) == lane and x["seq"] == seq)
    return reading(*indices, (row["site"], row["gateway"], row["boot"], seq, row["t_min"], row["t_max"]))


def test_a_reading_has_its_identity_its_results_and_its_true_time(indices):
    """The true time lies within its stamp."""
    found = ask(indices, DOCK, 3)
    assert (found["reading"]["key"], found["reading"]["seq"]) == (KEYS[3], "3")
    assert [(one["rule"], one["id"], one["probability"]) for one in found["results"]] == [("handover", "pair-3", 0.97)]
    assert found["truth"] == {"true_us": known_run.true_us(DOCK, 3), "inside": True}
    assert found["lateness_us"] == 1_000_000 - known_run.HALF_US[DOCK]


def test_the_parts_of_a_stamp_add_up_to_its_width(indices):
    """The clock has what the reader, adapter, wire and polling leave."""
    parts = ask(indices, DOCK, 3)["parts"]
    assert sum(part["us"] for part in parts) == 2 * known_run.HALF_US[DOCK]
    assert {part["name"]: part["us"] for part in parts[1:]} == {
        "reader": 30_000,
        "adapter": 1_000,
        "wire": 12_000,
        "polling": 2_000,
    }


def test_a_late_reading_says_for_which_rule_and_why(indices):
    """As the side output tells it."""
    assert ask(indices, DOOR, LATE_SEQ)["side_output"] == [{"rule": "handover", "reason": "late b"}]


def test_a_reading_that_is_not_there_is_none(indices):
    """And raises nothing."""
    assert reading(*indices, ("hall", "gw-1", 1, 99, 0, 1))["reading"] is None


def test_parts_that_are_wider_than_the_stamp_are_not_pretended():
    """A reader may have been changed since."""
    [part] = parts_of({"t_min": 0, "t_max": 10}, {"latency_us": 100, "adapter_us": None})
    assert (part["name"], part["us"]) == ("whole width", 10)
