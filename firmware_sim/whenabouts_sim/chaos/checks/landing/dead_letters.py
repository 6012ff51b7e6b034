"""The law of dead letters: what an ingest acknowledged to the broker and must not take is in `_dead`, as it came.

What it must take has laws of its own.
"""

import base64
import contextlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from whenabouts_cloud.ingest.dead_letter_files import DEAD
from whenabouts_cloud.ingest.dead_letters import MAX_PAYLOAD_BYTES
from whenabouts_protocol import WireError, decode_batch, decode_birth, decode_status, parse_topic
from whenabouts_sim.chaos.network import lying_gateway as liar
from whenabouts_sim.chaos.network.broker_model import Message

Letter = tuple[str, bytes]
"""Topic and payload."""


def broken_dead_letters(parts: Iterable[Path], confirmed: Iterable[Message]) -> Iterator[str]:
    """Messages without their letter. parts: folders of a landing."""
    letters = {letter for folder in parts for letter in _letters(folder)}
    for topic, payload in dict.fromkeys((one.topic, one.payload) for one in confirmed):
        why = _refusal(topic, payload)
        if why and (topic, payload[:MAX_PAYLOAD_BYTES]) not in letters:
            yield f"a message of {topic} was acknowledged, is in no dead letter, and cannot be taken: {why}"


def _letters(folder: Path) -> Iterator[Letter]:
    for path in sorted((folder / DEAD).glob("*.jsonl")):
        for line in path.read_bytes().splitlines():
            with contextlib.suppress(ValueError):  # the damage of a file is not of this law
                letter = json.loads(line)
                yield letter["topic"], base64.b64decode(letter["payload"])


def _refusal(topic: str, payload: bytes) -> str:
    """Why no ingest may take a message; empty if it may."""
    place = parse_topic(topic)
    if place is None:
        return "nobody has such a topic"
    site, gateway, leaf = place
    try:
        if leaf == "obs":
            readings = decode_batch(payload)
            origins = {(one.site, one.gateway) for one in readings}
            if gateway == liar.NAME and any(one.stream != liar.STREAM for one in readings):
                return "the stream is not the liar's"
        elif leaf == "birth":
            birth = decode_birth(payload)
            origins = {(birth.site, birth.gateway)}
        elif leaf == "status" and payload:
            status = decode_status(payload)
            origins = {(status.site, status.gateway)}
        else:
            return ""
    except WireError as error:
        return str(error)
    return "" if origins == {(site, gateway)} else "it is of another gateway"
