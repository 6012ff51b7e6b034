"""A member of a group that lies: what it says, and that the laws of the honest members hold all the same."""

import asyncio
from random import Random

from whenabouts_edge.group.peers import PeerError, believed, decode_state
from whenabouts_protocol import Birth, encode_birth, parse_topic, topic
from whenabouts_sim.chaos.machine.clock import BEGIN_NS
from whenabouts_sim.chaos.machine.loop import VirtualLoop
from whenabouts_sim.chaos.network.broker_model import Broker, Message
from whenabouts_sim.chaos.network.lying_member import NAME, LyingMember
from whenabouts_sim.chaos.schedule.schedule import draw
from whenabouts_sim.chaos.schedule_run import run
from whenabouts_sim.world.clocks import EPOCH_US
from whenabouts_sim.world.world import SECOND_US

LIED_TO = next(one for one in map(draw, range(100)) if one.lying_member)


def said(seconds):
    """What one of site hall publishes, whose group has an honest member in the shop."""
    loop = VirtualLoop(BEGIN_NS)
    broker, heard = Broker(loop, Random(1)), []
    broker.witness = lambda _client, message: heard.append(message)
    birth = encode_birth(Birth("shop", "gw-1", 4, [], "staff", ["gw-1", NAME]))
    broker.retained[topic("shop", "gw-1", "birth")] = Message(topic("shop", "gw-1", "birth"), birth, 1, True)

    def now_us():
        return EPOCH_US + (loop.now_ns - BEGIN_NS) // 1000

    asyncio.set_event_loop(loop)
    try:
        one = LyingMember("hall", "staff", {"gw-1": "shop"}, broker, Random(2), now_us)
        loop.run_until_complete(one.lie(EPOCH_US + seconds * SECOND_US))
    finally:
        asyncio.set_event_loop(None)
        loop.close()
    return heard


def test_it_speaks_under_its_own_name_and_some_of_its_states_fit_to_the_view():
    """Others are of another gateway, another view, or no states at all."""
    heard = said(20)
    assert {parse_topic(one.topic)[:2] for one in heard} == {("hall", NAME)}
    clocks, wrong = set(), set()
    for one in heard:
        if one.topic.endswith("/state"):
            try:
                _, state = decode_state(one.payload, "hall", NAME)
                clocks.add((state.view, len(state.clock)))
            except PeerError as error:
                wrong.add(error.reason)
    assert len({view for view, size in clocks if size == 2}) > 1
    assert wrong == {"malformed", "foreign"}


def test_lies_change_nothing_for_honest_members():
    outcome = run(LIED_TO)
    assert outcome.broken == []
    assert outcome.landed > 60


def test_a_member_that_is_believed_without_a_limit_is_found(monkeypatch):
    def gullible(gateway, boot, state, view, clock):
        believed(gateway, boot, state, view, clock)
        return state.clock

    monkeypatch.setattr("whenabouts_edge.group.process.believed", gullible)
    assert "knowledge" in {one.law for one in run(LIED_TO).broken}
