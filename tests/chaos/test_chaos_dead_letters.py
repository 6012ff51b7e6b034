"""The law of dead letters: what cannot be taken and was acknowledged has one, and what was taken needs none."""

import pytest

from whenabouts_cloud.ingest.dead_letters import DeadLetters
from whenabouts_cloud.ingest.landing_writer import Landing
from whenabouts_cloud.landing.store import Store
from whenabouts_protocol import Birth, Reading, encode_batch, encode_birth, topic
from whenabouts_sim.chaos.checks.landing.dead_letters import broken_dead_letters
from whenabouts_sim.chaos.network import lying_gateway as liar
from whenabouts_sim.chaos.network.broker_model import Message


def batch(gateway="gw", stream="dock/tags"):
    one = Reading(
        site="hall", gateway=gateway, boot=1, seq=0, stream=stream, kind="tag", key="K", t_min=0, t_max=1
    )  # fmt: skip
    return encode_batch([one])


def birth(gateway="gw"):
    return encode_birth(Birth("hall", gateway, 1, [("dock/tags", "tag", None, 0, 1)], None, []))


def message(leaf, payload, gateway="gw"):
    return Message(topic("hall", gateway, leaf), payload, 1, False)


@pytest.mark.parametrize(
    "one",
    [
        message("obs", batch()),
        message("obs", batch("liar", liar.STREAM), "liar"),
        message("birth", birth()),
        message("status", b""),
        message("rules", b"any"),
    ],
)
def test_what_can_be_taken_needs_no_letter(tmp_path, one):
    assert list(broken_dead_letters([tmp_path], [one])) == []


@pytest.mark.parametrize(
    ("one", "why"),
    [
        (message("obs", b"noise"), "found"),
        (message("obs", batch("other")), "it is of another gateway"),
        (message("obs", batch("liar", "dock/tags"), "liar"), "the stream is not the liar's"),
        (message("birth", birth("other")), "it is of another gateway"),
        (message("birth", b""), ""),
        (message("status", b"noise"), "found"),
        (Message("elsewhere", b"", 1, False), "nobody has such a topic"),
    ],
)
def test_what_cannot_be_taken_has_a_letter_when_it_is_acknowledged(tmp_path, one, why):
    landing = Landing(Store.at(tmp_path))
    letters = DeadLetters(landing.letters())
    letters.add(one.topic, one.payload + b"more", "undecodable", "of another", 0)
    letters.flush()
    [text] = broken_dead_letters([tmp_path], [one, one])
    assert one.topic in text
    assert why in text
    letters.add(one.topic, one.payload, "undecodable", "as it came", 0)
    letters.flush()
    landing.close()
    assert list(broken_dead_letters([tmp_path], [one])) == []
