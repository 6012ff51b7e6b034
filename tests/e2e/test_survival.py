"""Agent, ingest and Spark job are killed with SIGKILL in turn while readings flow; their guarantees hold."""

import time
from fractions import Fraction

import pytest

from whenabouts_edge.config.settings import SPOOL
from whenabouts_sim.demo.rules import CONFIDENCE, D_US, RULE
from whenabouts_sim.judge.placement import place
from whenabouts_sim.judge.truth import rule_pairs
from whenabouts_sim.stack.sources import SimulatedReaders
from whenabouts_sim.stack.stack import Stack
from whenabouts_sim.world.clocks import EPOCH_US, SimClock
from whenabouts_sim.world.world import DOCK, DOOR, World

SEED = 20
DURATION_S = 26
# SIGKILL can take the readings between the port and the disk: those of one commit. The rest is room for an agent without a
# processor for a second, as happens while Spark starts on the same machine.
LOSS_WINDOW_US = SPOOL["commit_ms"].default * 1000 + 1_950_000


@pytest.mark.deep  # quick tests have each of these kills by itself, also that of a job with rules of every kind
@pytest.mark.timeout(600)
def test_nothing_is_lost_and_nothing_comes_twice_when_every_part_is_killed_in_turn(tmp_path):
    """Every reading that reached a living agent lands once, and the pairs are exactly the rule's, each once.

    s   0        4    5        9   10        14        16         26
        readings ...............................................|
                 x agent dock-1, again at 5
                           x ingest, again at 10
                                     x Spark job, again at once
    """
    clock = SimClock(EPOCH_US, time.monotonic_ns())
    world = World.make(SEED, DURATION_S, items=40, people=6, d_us=D_US)
    source = SimulatedReaders(world, clock, tmp_path / "ports")
    gateways = {reader.gateway: reader.site for reader in source.readers}
    rule = RULE.format(a=DOCK, b=DOOR)
    with Stack(tmp_path) as stack:
        stack.broker.start()
        stack.start_ingest()
        stack.start_job(rule, "--shards", "2", "--trigger", "3")
        source.plug()
        for gateway, site in gateways.items():
            stack.configure_agent(site, gateway, source.tables(gateway), world.clocks[gateway], clock)
            stack.start_agent(gateway)
        stack.wait("agents", lambda: all(map(stack.agent_ready, gateways)), 120)
        source.go(time.monotonic_ns(), stack)
        began_s = time.monotonic()

        def until(second: float) -> None:
            time.sleep(max(0.0, began_s + second - time.monotonic()))  # the time line above

        until(4)
        killed_us = clock.true_us(time.monotonic_ns())
        stack.parts["dock-1"].kill()
        until(5)
        stack.start_agent("dock-1")
        stack.wait("agent again", lambda: stack.agent_ready("dock-1"), 120)
        again_us = clock.true_us(time.monotonic_ns())
        until(9)
        stack.parts["ingest"].kill()
        until(10)
        stack.start_ingest()
        stack.wait("pairs before the kill", lambda: bool(stack.found_pairs()), 240)
        stack.parts["job"].kill()
        stack.start_job(rule, "--shards", "2", "--trigger", "3")
        until(DURATION_S + 1)

        def unobservable(entry) -> bool:
            return entry.reader == DOCK.name and killed_us - LOSS_WINDOW_US <= entry.last_byte_us <= again_us

        made = source.emitted()
        must_land = [entry for entry in made if not entry.damaged and not unobservable(entry)]
        stack.wait(
            "everything has landed",
            lambda: (
                stack.landed_count() >= len(must_land)
                and not any(stack.status(gateway)["spool"]["readings"] for gateway in gateways)
            ),
            240,
        )
        landed = stack.landed()
        side = {r.name: [x for x in landed if (x.gateway, x.stream) == (r.gateway, r.stream)] for r in (DOCK, DOOR)}
        expected = rule_pairs(side[DOCK.name], side[DOOR.name], D_US, Fraction(CONFIDENCE))
        stack.wait("all pairs", lambda: len(stack.found_pairs()) >= len(expected), 240)
        stack.parts["job"].stop()  # ends after the micro-batch under way: any repeated result has come by then
        pairs = stack.found_pairs()
        source.stop()
    placement = place(landed, made, source.readers, world.clocks)
    arrived = set(placement.sighting_of.values())

    assert len(must_land) > 100
    assert len(expected) > 20
    assert [entry for entry in must_land if entry.id not in arrived] == []
    assert placement.repeated == 0
    assert (placement.violations, placement.surplus, placement.invented) == ((), (), ())
    assert sorted(pairs) == sorted(expected)
