"""What is heard at the broker: each heartbeat with what had been acknowledged before it, and nothing of a liar."""

from whenabouts_protocol import Ack, Heartbeat, encode_ack, encode_heartbeat, topic
from whenabouts_sim.chaos.network.broker_model import Message
from whenabouts_sim.chaos.network.lying_gateway import NAME
from whenabouts_sim.chaos.network.next_version import upgraded
from whenabouts_sim.chaos.network.overheard import EVER_US, Arrived, Overheard


def ack(landed, gateway="gw-1"):
    return Message(topic("hall", gateway, "ack"), encode_ack(Ack("hall", gateway, landed)), 1, True)


def heartbeat(gateway="gw-1"):
    beat = Heartbeat("hall", gateway, 7, None, {}, "bounded", 1)
    return Message(topic("hall", gateway, "heartbeat"), encode_heartbeat(beat), 0, False)


def heard(*messages):
    found = Overheard(lambda: 5)
    for one in messages:
        found.published("anybody", one)
    return found


def test_a_heartbeat_comes_with_what_had_been_acknowledged_before_it():
    """Not with what is acknowledged later; an older acknowledgement that comes again takes nothing back."""
    found = heard(heartbeat(), ack({7: 3}), heartbeat(), upgraded(ack({7: 5, 6: 1})), ack({7: 4}), heartbeat())
    assert [dict(one.confirmed) for one in found.heartbeats] == [{}, {7: 3}, {7: 5, 6: 1}]
    assert found.acked == {("hall", "gw-1", 7): 5, ("hall", "gw-1", 6): 1}


def test_a_liar_and_noise_are_not_heard():
    noise = Message(topic("hall", "gw-1", "ack"), b"?", 1, True)
    found = heard(ack({7: 3}, NAME), heartbeat(NAME), noise, Message("elsewhere", b"", 0, False))
    assert (found.heartbeats, found.acked) == ([], {})


def test_states_that_reach_peers_are_heard_with_their_time():
    state = Message(topic("hall", "gw-1", "state"), b"...", 1, False)
    now_us = iter((3, 8))
    found = Overheard(lambda: next(now_us))
    for one in (heartbeat(), state, upgraded(state)):
        found.arrived("shop/gw-2", one)
    assert found.states == [Arrived(3, "shop/gw-2", state), Arrived(8, "shop/gw-2", state)]


def test_links_are_the_spans_in_which_messages_pass():
    """A link that ends twice, as it stalls and then breaks, has ended when it did so first."""
    now_us = iter((0, 2, 5, 6, 9))
    found = Overheard(lambda: next(now_us))
    for is_up in (True, False, False, True):
        found.linked("hall/gw-1", is_up)
    assert found.links == {"hall/gw-1": [[0, 2], [6, EVER_US]]}
