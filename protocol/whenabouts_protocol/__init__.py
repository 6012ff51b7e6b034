"""The protocol between gateways and the cloud: readings and stamps, vector clocks, probability, wire format, topics.

Pure Python in the subset that CPython and MicroPython share. Nothing here opens files or ports, waits, or reads a
clock. Names are loaded lazily, each with its module: a board needs a third of them and has little memory.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from whenabouts_protocol.errors import WireError
    from whenabouts_protocol.interval import Interval
    from whenabouts_protocol.messages.batch import decode_batch, encode_batch
    from whenabouts_protocol.messages.birth_status import (
        Birth,
        Status,
        decode_birth,
        decode_status,
        encode_birth,
        encode_status,
    )
    from whenabouts_protocol.messages.heartbeats import (
        Ack,
        Heartbeat,
        decode_ack,
        decode_heartbeat,
        encode_ack,
        encode_heartbeat,
    )
    from whenabouts_protocol.probability import (
        prob_between,
        prob_deadline,
        prob_delay,
        prob_within,
        ratio_between,
        ratio_deadline,
        ratio_delay,
        ratio_within,
    )
    from whenabouts_protocol.reading import Reading
    from whenabouts_protocol.topics import parse_topic, subscription, topic

__all__ = [
    "Reading",
    "Interval",
    "encode_batch",
    "decode_batch",
    "WireError",
    "prob_within",
    "prob_between",
    "prob_deadline",
    "prob_delay",
    "ratio_within",
    "ratio_between",
    "ratio_deadline",
    "ratio_delay",
    "topic",
    "parse_topic",
    "subscription",
    "Birth",
    "Status",
    "Heartbeat",
    "Ack",
    "encode_birth",
    "decode_birth",
    "encode_status",
    "decode_status",
    "encode_heartbeat",
    "decode_heartbeat",
    "encode_ack",
    "decode_ack",
]

if not TYPE_CHECKING:

    def __getattr__(name):
        """Load a name of `__all__` with its module."""
        from whenabouts_protocol.lazy import load

        homes = (
            ("errors", "WireError"),
            ("interval", "Interval"),
            ("messages.batch", "decode_batch encode_batch"),
            ("messages.birth_status", "Birth Status decode_birth decode_status encode_birth encode_status"),
            ("messages.heartbeats", "Ack Heartbeat decode_ack decode_heartbeat encode_ack encode_heartbeat"),
            (
                "probability",
                "prob_between prob_deadline prob_delay prob_within ratio_between ratio_deadline ratio_delay ratio_within",
            ),
            ("reading", "Reading"),
            ("topics", "parse_topic subscription topic"),
        )
        return load(__name__, name, homes)
