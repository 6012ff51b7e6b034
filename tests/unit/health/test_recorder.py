"""Which health records are kept (`whenabouts_cloud.health.recorder`)."""

import json

from support.cloud.ingest import NOW_US, SITE
from whenabouts_cloud.health import recorder as recorder_module
from whenabouts_cloud.health.recorder import HEARTBEAT_EVERY_US, Recorder
from whenabouts_protocol import Birth, Heartbeat, Status

S = 1_000_000
HOUR_US = NOW_US - NOW_US % (3600 * S)


def beat(gateway="g1", state="bounded", bound_us=1000):
    return Heartbeat(SITE, gateway, 7, None, {}, state, bound_us)


def born(gateway="g1", name="s"):
    return Birth(SITE, gateway, 7, [(name, "tag", None, 1, 2)])


def taken(recorder):
    return [(hour, json.loads(line)) for hour, line in recorder.take()]


def test_a_gateways_heartbeats_are_kept_every_ten_seconds():
    """
    s           0  1  ... 9 10 ... 19 20     each second from two gateways; a clock that was set back begins anew
    kept        x            x         x
    """
    recorder = Recorder()
    for second in range(21):
        for gateway in ("g1", "g2"):
            recorder.heartbeat(beat(gateway), HOUR_US + second * S)
    assert [(r["gateway"], r["at_us"] - HOUR_US) for _, r in taken(recorder)] == [
        (gateway, at * S) for at in (0, 10, 20) for gateway in ("g1", "g2")
    ]
    assert (recorder.counters.health_records, recorder.counters.health_thinned) == (6, 36)
    recorder.heartbeat(beat(), HOUR_US + 5 * S)
    assert len(taken(recorder)) == 1


def test_a_change_of_the_clocks_state_is_kept_at_once():
    """Bounded, unbounded a second later, bounded again."""
    recorder = Recorder()
    for second, state in enumerate(["bounded", "bounded", "unbounded", "unbounded", "bounded"]):
        recorder.heartbeat(beat(state=state), HOUR_US + second * S)
    assert [r["clock_state"] for _, r in taken(recorder)] == ["bounded", "unbounded", "bounded"]


def test_with_many_gateways_heartbeats_are_kept_more_rarely(monkeypatch):
    """Twice the gateways that fit: half as often, from the time on when all are known."""
    monkeypatch.setattr(recorder_module, "FULL_RATE", 5)
    recorder = Recorder()
    names = [f"g{n}" for n in range(10)]
    for second in range(41):
        for name in names:
            recorder.heartbeat(beat(name), HOUR_US + second * S)
    of_last = [(r["at_us"] - HOUR_US) // HEARTBEAT_EVERY_US for _, r in taken(recorder) if r["gateway"] == "g9"]
    assert of_last == [0, 2, 4]


def test_births_and_statuses_are_always_kept_and_begin_each_hour_again():
    """
    hour  17: birth, two statuses, a heartbeat of g1, birth of g2    18: the newest of each, then what comes
    """
    recorder = Recorder()
    recorder.birth(born(name="before"), HOUR_US)
    recorder.birth(born(), HOUR_US)
    recorder.status(Status(SITE, "g1", 7, "online"), HOUR_US)
    recorder.status(Status(SITE, "g1", 7, "offline"), HOUR_US)
    recorder.birth(born("g2"), HOUR_US)
    recorder.heartbeat(beat(), HOUR_US)
    first = taken(recorder)
    assert [r["type"] for _, r in first] == ["birth", "birth", "status", "status", "birth", "heartbeat"]
    assert len({hour for hour, _ in first}) == 1
    later_us = HOUR_US + 3600 * S
    recorder.heartbeat(beat(), later_us)
    again = taken(recorder)
    assert {hour for hour, _ in again}.isdisjoint({first[0][0]})
    assert {r["at_us"] for _, r in again} == {later_us}
    assert [(r["type"], r["gateway"]) for _, r in again] == [
        ("birth", "g1"), ("status", "g1"), ("birth", "g2"), ("heartbeat", "g1"),
    ]  # fmt: skip
    assert (again[0][1]["streams"][0]["name"], again[1][1]["condition"]) == ("s", "offline")
    assert taken(recorder) == []


def test_the_ingest_reports_every_ten_seconds_and_at_its_end():
    """With its name, its counts, and dead letters by reason."""
    recorder = Recorder("a")
    for second in range(0, 12, 2):
        recorder.ingest({"landed": second}, {"stream": 1}, True, HOUR_US + second * S)
    recorder.ingest({"landed": 11}, {}, False, HOUR_US + 11 * S, last=True)
    found = [r for _, r in taken(recorder)]
    assert [(r["counters"]["landed"], r["connected"]) for r in found] == [(0, True), (10, True), (11, False)]
    assert (found[0]["ingest"], found[0]["dead_letters"]) == ("a", {"stream": 1})


def test_a_gateway_that_reports_too_much_does_not_take_the_room_of_others(monkeypatch):
    """Births beyond its bytes are dropped and counted; another one's are kept, and its own again in the next hour."""
    monkeypatch.setattr(recorder_module, "GATEWAY_BYTES", 2000)
    recorder = Recorder()
    for n in range(100):
        recorder.birth(born("evil", f"{n:0200d}"), HOUR_US)
    recorder.birth(born(), HOUR_US)
    kept = [r["gateway"] for _, r in taken(recorder)]
    assert 2 <= kept.count("evil") <= 5
    assert kept.count("g1") == 1
    assert recorder.counters.health_dropped == 100 - kept.count("evil")
    recorder.birth(born("evil"), HOUR_US + 3600 * S)
    newest = [r for _, r in taken(recorder) if r["gateway"] == "evil"]
    assert {r["streams"][0]["name"] for r in newest} == {"s"}


def test_every_limit_drops_and_counts(monkeypatch):
    """Bytes of an hour, gateways of an hour, bytes that wait, bytes that are repeated. The ingest's own record stays."""
    size = 300  # of a record here, about
    for limit, value in (("HOUR_BYTES", 10 * size), ("MAX_GATEWAYS", 10), ("WAITING_BYTES", 10 * size)):
        with monkeypatch.context() as patched:
            patched.setattr(recorder_module, limit, value)
            recorder = Recorder()
            for n in range(100):
                recorder.status(Status(SITE, f"g{n}", 7, "online"), HOUR_US)
            kept = len(recorder.take())
            assert 5 <= kept <= 30
            assert recorder.counters.health_dropped == 100 - kept
            recorder.ingest({}, {}, True, HOUR_US)
            assert len(recorder.take()) == 1
    monkeypatch.setattr(recorder_module, "REPEATED_BYTES", 10 * size)
    recorder = Recorder()
    for n in range(100):
        recorder.status(Status(SITE, f"g{n}", 7, "online"), HOUR_US)
    assert len(recorder.take()) == 100
    recorder.ingest({}, {}, True, HOUR_US + 3600 * S)
    repeated = len(recorder.take()) - 1
    assert 5 <= repeated <= 30
    assert recorder.counters.health_dropped == 100 - repeated
