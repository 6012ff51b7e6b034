"""The laws of queues: what is too much is told, and what is left at the end."""

import sqlite3
from types import SimpleNamespace

from whenabouts_cloud.landing.ranges import Ranges
from whenabouts_edge.readers.thread import MAX_WAITING
from whenabouts_edge.uplink.outbox import MAX_IN_FLIGHT, MAX_UNLANDED
from whenabouts_sim.chaos.checks.limits import left_in_agent, left_in_ingest, over_limits


def empty_spool():
    """The tables of a spool in which nothing is left."""
    database = sqlite3.connect(":memory:")
    for table in ("waiting", "gap"):
        database.execute(f"CREATE TABLE {table} (crc INTEGER)")
    return database


def agent(on_way=0, unlanded=0, refused=(), spool=0, waiting=0, readings=0, room=MAX_WAITING, gap_open=False):
    state = SimpleNamespace(readings=readings, payload_bytes=spool)
    outbox = SimpleNamespace(
        _on_way={n: n % 2 == 1 for n in range(2 * on_way)},
        _unlanded=dict.fromkeys(range(unlanded)),
        _refused={*refused},
    )
    return SimpleNamespace(
        _delivery=SimpleNamespace(uplink=SimpleNamespace(outbox=outbox)),
        _spool=SimpleNamespace(state=state, limit_bytes=100, _db=empty_spool()),
        spool_state=state,
        _intake=SimpleNamespace(waiting=waiting, _room=SimpleNamespace(_value=room), gap_open=gap_open, _gaps={}),
    )


def test_each_queue_has_its_limit():
    at = {"on_way": MAX_IN_FLIGHT, "unlanded": MAX_UNLANDED, "spool": 100, "waiting": MAX_WAITING}
    assert list(over_limits("gw", agent(**at))) == []
    for name, limit in at.items():
        [text] = over_limits("gw", agent(**{**at, name: limit + 1}))
        assert f"gw has {limit + 1} " in text
        assert f"its limit is {limit}" in text


def test_a_refused_message_that_has_landed_keeps_no_place():
    assert list(over_limits("gw", agent(unlanded=2, refused=[1]))) == []
    [text] = over_limits("gw", agent(unlanded=2, refused=[1, 2]))
    assert text == "gw has 1 refused messages that have landed and keep their place, its limit is 0"


def test_at_the_end_nothing_is_left():
    assert list(left_in_agent(agent())) == []
    for more, text in (
        ({"readings": 2}, "2 readings in the spool"),
        ({"spool": 9}, "9 bytes in the spool"),
        ({"unlanded": 3}, "3 messages that have not landed"),
        ({"room": MAX_WAITING - 1}, "1 places of the intake that nobody gave back"),
        ({"room": MAX_WAITING + 1}, "-1 places of the intake that nobody gave back"),
        ({"gap_open": True}, "1 gap readings to store"),
    ):
        assert list(left_in_agent(agent(**more))) == [text]
    waited = {("hall", "gw"): [SimpleNamespace(published={1: (0, 4), 2: (0, 1)})]}
    apart, touching = Ranges(), Ranges()
    apart.firsts, apart.lasts = [0, 6], [4, 7]
    touching.firsts, touching.lasts = [0, 5, 9], [4, 7, 9]
    for boots, readings, ranges, texts in (
        (2, 0, apart, []),
        (3, 0, apart, ["1 boots counted too much in heartbeats"]),
        (2, 5, apart, ["5 readings that are not durable"]),
        (2, 0, touching, ["1 ranges of numbers in the ledger that are not joined"]),
    ):
        bridge = SimpleNamespace(
            waiting_readings=readings,
            _gateways=SimpleNamespace(_boots=boots, _waited=waited),
            _ledger=SimpleNamespace(_landed={"hall/gw": {1: ranges}}),
        )
        assert list(left_in_ingest(bridge)) == texts
