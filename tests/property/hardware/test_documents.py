"""Laws of the decoder of published events, against Python's own JSON."""

import json
from fractions import Fraction
from math import floor

from hypothesis import example, given, settings
from hypothesis import strategies as st

from support.edge.posting import EPC, impinj, zebra
from support.search import examples
from whenabouts_hardware import READERS
from whenabouts_hardware.network.documents import MESSAGE_BYTES_MAX, message, tags, whole
from whenabouts_hardware.network.impinj import ImpinjDecoder
from whenabouts_hardware.network.zebra import ZebraDecoder

often = settings(max_examples=examples(120), deadline=None)
KINDS = {"impinj": (ImpinjDecoder, impinj), "zebra": (ZebraDecoder, zebra)}
kinds = st.sampled_from(sorted(KINDS))
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["data", "idHex", "tagInventoryEvent", "epcHex", "epc", "reads"]), inner)
    ),
    max_leaves=8,
)


def keys(kind, stream):
    return [s.key for frame in KINDS[kind][0]().feed(stream) for s in READERS[kind].sightings(frame)]


@often
@given(kinds, st.lists(st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=3), max_size=4), st.data())
def test_events_come_back_however_they_are_written_and_split(kind, numbers, data):
    """As a list, joined, on lines of their own, indented; read at once or in two pieces."""
    stream = b""
    for of_message in numbers:
        events = [KINDS[kind][1](number) for number in of_message]
        way = data.draw(st.sampled_from(["list", "joined", "lines", "indented"]))
        separator = {"joined": "", "lines": "\r\n"}.get(way)
        written = json.dumps(events, indent=2 if way == "indented" else None)
        stream += message((separator.join(map(json.dumps, events)) if separator is not None else written).encode())
    expected = [EPC.format(number) for of_message in numbers for number in of_message]
    assert keys(kind, stream) == expected
    at = data.draw(st.integers(0, len(stream)))
    decoder = KINDS[kind][0]()
    frames = decoder.feed(stream[:at]) + decoder.feed(stream[at:])
    assert [s.key for frame in frames for s in tags(frame)] == expected


@often
@given(kinds, st.lists(anything | st.binary(max_size=20), max_size=4))
def test_any_message_is_read_or_counted_and_the_next_one_is_found(kind, pieces):
    """Any JSON in any place, and bytes that are none; the good event behind them comes out."""
    stream = b"".join(message(p if isinstance(p, bytes) else json.dumps(p).encode()) for p in pieces)
    decoder = KINDS[kind][0]()
    frames = decoder.feed(stream + message(json.dumps(KINDS[kind][1](7)).encode()))
    assert len(frames) == len(pieces) + 1
    assert READERS[kind].sightings(frames[-1])[0].key == EPC.format(7)
    for frame in frames:
        for seen in READERS[kind].sightings(frame):
            assert seen.key == seen.key.upper()
            assert all(type(value) is int for value in seen.attrs.values())


@often
@given(kinds, st.binary(max_size=60), st.binary(max_size=60))
def test_every_byte_is_accounted_for(kind, begin, end):
    """A message that was cut costs no other."""
    stream = begin + message(json.dumps(KINDS[kind][1](1)).encode()) + end
    decoder = KINDS[kind][0]()
    frames = decoder.feed(stream) + decoder.flush()
    assert sum(len(frame.raw) for frame in frames) + decoder.counters["noise_bytes"] == len(stream)
    assert EPC.format(1) in [s.key for frame in frames for s in READERS[kind].sightings(frame)]


@often
@example(-52.7, 1)
@example(-5270, 100)
@given(st.integers(-(2**31) + 1, 2**31 - 1) | st.floats(-(2.0**30), 2.0**30), st.sampled_from([1, 100]))
def test_numbers_are_rounded_down_by_one_rule(given_number, divisor):
    """Below zero too, written with a point or in hundredths: -52.7 dBm and -5270 cdBm are -53 dBm."""
    attrs = {}
    whole(attrs, "rssi", given_number, divisor)
    assert attrs == {"rssi": floor(Fraction(given_number) / divisor)}


def test_a_message_without_end_is_given_up():
    """Beyond the limit nothing is kept."""
    decoder = ImpinjDecoder()
    decoder.feed(b"\x1e" + b" " * (MESSAGE_BYTES_MAX + 10))
    assert decoder.counters["overruns"] == 1
    assert len(decoder.pending) < decoder.FRAME_BYTES_MAX
