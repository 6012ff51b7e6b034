"""A board's agent with real sockets: simulated readers on ports, a real broker, the real bridge; here and on the VM.

What lands is what the readers reported, once, and the true time is in every stamp.
"""

import pytest

from support.board.site import board_config, check_landed, interrupt_board, start_board
from support.edge.agent import badges, passed, witness

# The same program on this Python, where it can be looked at, shows nothing that the VM does not.
WHERE = ["board", pytest.param("here", marks=pytest.mark.deep)]


def reader(bench):
    return {"port": str(bench.folder / "ports" / "gate"), "kind": "rdm6300", "stream": "gate/tags"}


def nothing_kept(heartbeat, boot):
    """True if a heartbeat reports that all numbers of this boot have landed and none of an earlier boot is kept."""
    return not heartbeat.spool_readings and [(b, first - last) for b, (first, last) in heartbeat.published.items()] == [
        (boot, 1)
    ]


@pytest.mark.parametrize("where", WHERE)
def test_readings_land_once_through_kills_of_board_and_broker(bench, gate, ntp, where):
    """
    board    |------------- killed  |-----------------------------|  asked to end
    broker   |--------------------------- killed      |-----------|  (state lost)
    badges      =====                 =====    =====     =====
    """
    bench.broker.start()
    bench.start_ingest()
    config = board_config(bench, ntp.port, [reader(bench)])
    with witness(bench.broker.port) as seen:
        board = start_board(bench, config, where)
        seen.wait("a watermark", lambda: any(b.frontier_us for b in seen.heartbeats()))
        expected = passed(bench, gate, badges(bench, 6, 0))
        seen.wait("first badges", lambda: seen.keys() >= expected)
        bench.wait(
            "first landed", lambda: {row.key for row in bench.landed()} >= expected, 30
        )  # the ingest is there too
        board.kill()
        seen.wait("the last will", lambda: seen.conditions()[-1:] == ["offline"], 60)
        board = start_board(bench, config, where)
        seen.wait("a second boot", lambda: len({b.boot for b in seen.heartbeats() if b.frontier_us}) == 2)
        expected |= passed(bench, gate, badges(bench, 6, 100))
        bench.broker.kill()
        for path in bench.broker.directory.glob("*.db*"):
            path.unlink()
        expected |= passed(bench, gate, badges(bench, 6, 200))
        seen.seen.clear()
        bench.broker.start()
        expected |= passed(bench, gate, badges(bench, 6, 300))
        bench.wait("landed", lambda: {row.key for row in bench.landed()} >= expected, 60)
        newest = max(row.boot for row in bench.landed())
        seen.wait("all confirmed", lambda: nothing_kept(seen.heartbeats()[-1], newest), 60)
        interrupt_board(config)
        seen.wait("an orderly end", lambda: seen.conditions()[-1] == "stopped")
    check_landed(bench, gate)


@pytest.mark.parametrize("where", WHERE)
def test_readings_from_before_the_time_is_known_are_dated_afterwards(bench, gate, ntp, where):
    """
    time server  ........ silent ........ |----- answers
    badges           =====                     === dated all the same, within a second of the truth
    """
    ntp.silent = True
    bench.broker.start()
    with witness(bench.broker.port) as seen:
        start_board(bench, board_config(bench, ntp.port, [reader(bench)]), where)
        seen.wait("a heartbeat", seen.heartbeats)
        keys = passed(bench, gate, badges(bench, 4, 0))
        assert seen.heartbeats()[-1].clock_state == "unbounded"
        assert seen.readings() == []
        ntp.silent = False
        seen.wait("badges", lambda: seen.keys() >= keys, 60)
        true_us = {e.key: e.true_us for e in gate.emitted}
        for r in seen.readings():
            assert r.clock_state == "bounded"
            assert r.t_min <= true_us[r.key] <= r.t_max < r.t_min + 1_000_000
        seen.wait("a watermark", lambda: seen.heartbeats()[-1].frontier_us)
        assert seen.heartbeats()[-1].bound_us < 1_000_000
