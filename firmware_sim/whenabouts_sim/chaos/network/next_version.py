"""The next version of the wire format, as a roll-out would bring it: other topics, another schema number, equal content.

A part that was upgraded sends and understands the next version; an ingest still understands the present one too, as
gateways are upgraded later. The present code of a part is below this layer, so it must do what a part of this version does
when others are ahead: keep what nobody takes, and refuse what it cannot read.
"""

from whenabouts_protocol.layout import K_SCHEMA, SCHEMA
from whenabouts_protocol.topics import PREFIX, VERSION
from whenabouts_sim.chaos.network.broker_model import Message

NOW, NEXT = f"{PREFIX}/{VERSION}/", f"{PREFIX}/{VERSION + 1}/"
# Every message is a map whose first entry is the schema; these are the bytes of key and value.
_NOW_HEAD, _NEXT_HEAD = bytes((K_SCHEMA, SCHEMA)), bytes((K_SCHEMA, SCHEMA + 1))


def next_topic(name: str) -> str:
    """A topic or filter in the next version."""
    return NEXT + name.removeprefix(NOW) if name.startswith(NOW) else name


def upgraded(message: Message) -> Message:
    """A message of the present version in the next one."""
    return message._replace(topic=next_topic(message.topic), payload=_swapped(message.payload, _NOW_HEAD, _NEXT_HEAD))


def understood(message: Message) -> Message:
    """A message of either version in the present one."""
    if not message.topic.startswith(NEXT):
        return message
    topic = NOW + message.topic.removeprefix(NEXT)
    return message._replace(topic=topic, payload=_swapped(message.payload, _NEXT_HEAD, _NOW_HEAD))


def _swapped(payload: bytes, old: bytes, new: bytes) -> bytes:
    return payload[:1] + new + payload[3:] if payload[1:3] == old else payload
