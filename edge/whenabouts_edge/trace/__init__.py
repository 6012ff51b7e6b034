"""Traces of serial traffic: the trace format, readers of other formats, and the player behind replay://."""

from whenabouts_edge.trace.format import (
    Head,
    Record,
    TraceError,
    decode_head,
    decode_record,
    encode_head,
    encode_record,
)
from whenabouts_edge.trace.reader import Trace, open_trace
from whenabouts_edge.trace.spy import to_spy

__all__ = [
    "Head",
    "Record",
    "Trace",
    "TraceError",
    "decode_head",
    "decode_record",
    "encode_head",
    "encode_record",
    "open_trace",
    "to_spy",
]
