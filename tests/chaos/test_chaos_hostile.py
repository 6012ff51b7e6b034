"""The liar and the next version of the wire in schedules."""

import asyncio
from dataclasses import replace
from random import Random

import pytest

from whenabouts_cloud.ingest.owners import Owners
from whenabouts_protocol import Ack, WireError, decode_ack, decode_batch, encode_ack, parse_topic, topic
from whenabouts_sim.chaos.machine.clock import BEGIN_NS
from whenabouts_sim.chaos.machine.loop import VirtualLoop
from whenabouts_sim.chaos.network.broker_model import Broker, Message
from whenabouts_sim.chaos.network.lying_gateway import NAME, STREAM, Liar, Victim
from whenabouts_sim.chaos.network.next_version import NEXT, next_topic, understood, upgraded
from whenabouts_sim.chaos.schedule.fault import CLOUD, Fault
from whenabouts_sim.chaos.schedule.schedule import draw
from whenabouts_sim.chaos.schedule_run import run
from whenabouts_sim.world.clocks import EPOCH_US
from whenabouts_sim.world.world import SECOND_US

ACK = Message(topic("hall", "gw-1", "ack"), encode_ack(Ack("hall", "gw-1", {1: 2})), 1, True)


def test_a_part_of_this_version_understands_nothing_of_the_next_one():
    """Neither topic nor content; a part of the next version understands both."""
    later = upgraded(ACK)
    assert later.topic.startswith(NEXT)
    assert parse_topic(later.topic) is None
    with pytest.raises(WireError, match="a newer gateway needs a newer receiver"):
        decode_ack(later.payload)
    assert understood(later) == ACK == understood(ACK)
    empty = ACK._replace(payload=b"")
    assert understood(upgraded(empty)) == empty
    assert next_topic("elsewhere") == "elsewhere"


def heard_of_a_liar(seconds):
    """What a liar of site hall publishes about two honest gateways."""
    loop = VirtualLoop(BEGIN_NS)
    broker, heard = Broker(loop, Random(1)), []
    broker.witness = lambda _client, message: heard.append(message)
    victims = [Victim("hall", "gw-1", ["dock/tags"]), Victim("shop", "gw-2", ["door/tags", "till/tags"])]

    def now_us():
        return EPOCH_US + (loop.now_ns - BEGIN_NS) // 1000

    asyncio.set_event_loop(loop)
    try:
        one = Liar("hall", victims, broker, Random(2), now_us)
        loop.run_until_complete(one.lie(EPOCH_US + seconds * SECOND_US))
    finally:
        asyncio.set_event_loop(None)
        loop.close()
    return heard


def test_a_liar_speaks_under_its_own_name_and_says_everything_else_there_is():
    """Readings of others, in streams of others, in its own; watermarks, births, and noise."""
    heard = heard_of_a_liar(20)
    assert {parse_topic(one.topic)[:2] for one in heard} == {("hall", NAME)}
    assert {parse_topic(one.topic)[2] for one in heard} == {"obs", "heartbeat", "birth", "status"}
    read = []
    for one in heard:
        if one.topic.endswith("/obs"):
            try:
                read += decode_batch(one.payload)
            except WireError:
                read.append(None)
    assert None in read
    places = {(one.gateway, one.stream) for one in read if one is not None}
    assert {("gw-1", "dock/tags"), ("gw-2", "till/tags"), (NAME, "dock/tags"), (NAME, STREAM)} <= places


def lied_to(seed):
    """The schedule of a seed, without its faults, and with a liar."""
    return replace(draw(seed), faults=(), numbers=(), liar="hall")


def test_a_liar_changes_nothing_for_others():
    """All laws hold as if it were not there."""
    outcome = run(lied_to(3))
    assert outcome.broken == []
    assert outcome.landed > 100


def test_an_ingest_that_lets_everybody_publish_everything_is_found(monkeypatch):
    """Then the liar's goods are among those that readers saw."""
    monkeypatch.setattr(Owners, "may_publish", lambda self, origin, stream: True)
    laws = {one.law for one in run(lied_to(3)).broken}
    assert "owners" in laws


@pytest.mark.parametrize("first", ["gateway", "ingest"])
def test_a_roll_out_of_the_next_version_loses_nothing_in_either_order(first):
    """What an upgraded gateway sends waits in its spool until the ingest is upgraded, too."""
    plain = replace(draw(3), liar="", faults=(), numbers=())
    gateway = f"{plain.gateways[0].site}/{plain.gateways[0].name}"
    early, late = (gateway, CLOUD) if first == "gateway" else (CLOUD, gateway)
    faults = (Fault("upgrade", SECOND_US, 1000, early), Fault("upgrade", 3 * SECOND_US, 1000, late))
    outcome = run(replace(plain, faults=faults, numbers=(0, 1)))
    assert outcome.broken == []
    assert outcome.landed > 100
