"""What is told about gateways."""

import pytest

from support.browser import known_run
from support.browser.known_run import BEGIN_US, FRONTIER_US, SECOND_US
from whenabouts_cloud.dashboard.answers.gateways_answer import STALE_US, gateway, gateways
from whenabouts_cloud.dashboard.data.landed import LandedIndex
from whenabouts_cloud.dashboard.results.health_state import HealthState
from whenabouts_cloud.landing.store import Store

NOW_US = BEGIN_US + 60 * SECOND_US


@pytest.fixture(scope="module")
def indices(tmp_path_factory):
    """Health and readings of the known run."""
    landing, _, _ = known_run.make(tmp_path_factory.mktemp("known"))
    health, landed = HealthState(Store.at(landing)), LandedIndex(Store.at(landing))
    while landed.follow(10) or health.follow(10):
        pass
    return health, landed


def test_each_gateway_tells_its_last_heartbeat_and_its_readers(indices):
    """Those in trouble first: gw-2 has stopped."""
    rows = gateways(*indices, NOW_US)["gateways"]
    assert [(row["gateway"], row["condition"]) for row in rows] == [("gw-2", "stopped"), ("gw-1", "online")]
    first = rows[1]
    assert (first["bound_us"], first["clock_source"], first["spool_readings"]) == (known_run.bound_us(5), "chrony", 5)
    assert (first["heard_us"], first["age_us"], first["stale"]) == (BEGIN_US + 50 * SECOND_US, 10 * SECOND_US, False)
    assert first["frontier_us"] == FRONTIER_US
    [stream] = first["streams"]
    assert (stream["name"], stream["readings"], stream["wire_us"]) == ("dock/tags", 20, 12_000)


def test_a_gateway_that_was_not_heard_for_long_is_stale(indices):
    """Whatever it said last."""
    assert all(row["stale"] for row in gateways(*indices, NOW_US + STALE_US)["gateways"])


def test_a_gateway_without_health_records_is_known_by_its_readings(indices):
    """Landings of before, and of other programs, have none."""
    rows = gateways(HealthState(Store.at("/nowhere")), indices[1], NOW_US)["gateways"]
    assert {(row["gateway"], row["condition"]) for row in rows} == {("gw-1", "unknown"), ("gw-2", "unknown")}


def test_the_history_of_a_gateway_has_each_heartbeat_of_a_time(indices):
    """Bound and source of the clock among them."""
    found = gateway(indices[0], "hall", "gw-1", BEGIN_US + 1, NOW_US)
    assert found["bound_us"] == [known_run.bound_us(n) for n in range(1, 6)]
    assert set(found["clock_source"]) == {"chrony"}
    assert gateway(indices[0], "hall", "nobody", 0, NOW_US)["at_us"] == []
