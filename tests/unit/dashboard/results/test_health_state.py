"""The state of gateways from what they report."""

from whenabouts_cloud.dashboard.results import health_state
from whenabouts_cloud.dashboard.results.health_state import HISTORY, HealthState, thin
from whenabouts_cloud.health.records import birth, heartbeat, ingest, status
from whenabouts_cloud.landing.store import Store
from whenabouts_protocol import Birth, Heartbeat, Status


class Reports:
    """Records that come in turns."""

    def __init__(self, *turns):
        self.turns = list(turns)

    def new(self):
        return self.turns.pop(0) if self.turns else []


def beat(gateway, at_us, bound_us=5):
    return heartbeat(Heartbeat("s", gateway, 1, 0, published={}, clock_state="bounded", bound_us=bound_us), at_us)


def state_of(*turns):
    state = HealthState(Store.at("/nowhere"), Reports(*turns))
    while state.follow(1):
        pass
    return state


def test_the_newest_record_of_each_type_counts_whatever_their_order():
    """Ingests write their parts side by side."""
    state = state_of([beat("g", 20, 7), beat("g", 10, 5)], [status(Status("s", "g", 1, "online"), 15)])
    found = state.gateways()["s", "g"]
    assert (found["heartbeat"]["bound_us"], found["status"]["condition"]) == (7, "online")
    assert [point[:2] for point in state.history("s", "g", 0, 100)] == [(10, 5), (20, 7)]
    assert state.version == 2


def test_a_reader_is_known_by_its_gateways_last_birth():
    """None for one that it does not name."""
    state = state_of([birth(Birth("s", "g", 1, [("dock", "tag", None, 1, 2, 3, 4, 5, 6)]), 1)])
    assert state.stream("s", "g", "dock")["wire_us"] == 5
    assert state.stream("s", "g", "door") is None
    assert state.stream("s", "h", "dock") is None


def test_gateways_beyond_the_limit_are_counted_only(monkeypatch):
    """Hostile names fill no memory."""
    monkeypatch.setattr(health_state, "MAX_GATEWAYS", 2)
    monkeypatch.setattr(health_state, "MAX_INGESTS", 1)
    records = [beat(f"g{n}", n) for n in range(4)] + [ingest(f"i{n}", n, {}, {}, True) for n in range(3)]
    state = state_of(records)
    assert (len(state.gateways()), len(state.ingests()), state.refused) == (2, 1, 4)


def test_a_history_thins_out_where_it_is_old():
    """The newest points stay."""
    points = list(range(HISTORY + 1))
    thin(points)
    assert len(points) < HISTORY
    assert points[-HISTORY // 2 :] == list(range(HISTORY + 1))[-HISTORY // 2 :]
