"""Batches that a board encodes directly from pending readings: the bytes of the equivalent readings, or none."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.search import examples
from whenabouts_edge.board.batch import Batches, Buffer
from whenabouts_edge.readers.pending import PendingReading
from whenabouts_protocol import Reading, WireError, decode_batch, encode_batch
from whenabouts_protocol.reading import CLOCK_STATES, KINDS

BYTES_MAX = 700
names = st.text("ab/é", min_size=0, max_size=3)
values = st.one_of(
    st.none(), st.booleans(), st.integers(-(1 << 64), 1 << 64), st.floats(), st.text(max_size=6), st.just("\ud800"),
    st.just(b"no value"),
)  # fmt: skip
times = st.one_of(st.integers(-5, 5), st.integers(-(1 << 62), 1 << 62), st.just(1_790_000_000_000_000))


@st.composite
def pending_readings(draw):
    """A pending reading with its stamp; some are not valid readings."""
    key = draw(st.one_of(st.none(), st.sampled_from(["E200", "e200", "0A", "0A1", "", "x" * 257]), names))
    attrs = draw(st.dictionaries(names, values.filter(lambda v: v is not None), max_size=3))
    kind = draw(st.sampled_from([*KINDS, *KINDS, "none such"]))
    unit = draw(st.sampled_from([None, "Cel", ""]))
    pending = PendingReading(draw(names), kind, 0, 0, key, draw(values), unit, attrs)
    pending.vclock = draw(st.sampled_from([(), (0,), (3, 0), (-1,)]))
    t_min = draw(times)
    pending.stamp = (
        t_min,
        t_min + draw(st.sampled_from([0, 7, 300_000, 1 << 40, -1])),
        draw(st.sampled_from(CLOCK_STATES)),
    )
    return pending


def reference(batch, first_seq):
    """The message of the readings that these become; None if they are invalid or it is too long."""
    try:
        message = encode_batch([
            Reading(
                site="hall", gateway="gw", boot=7 << 32, seq=first_seq + n, stream=d.stream, kind=d.kind, key=d.key,
                value=d.value, unit=d.unit, attrs=d.attrs, t_min=d.stamp[0], t_max=d.stamp[1], clock_state=d.stamp[2],
                vclock=d.vclock,
            )
            for n, d in enumerate(batch)
        ])  # fmt: skip
    except ValueError:
        return None
    return message if len(message) <= BYTES_MAX else None


@settings(max_examples=examples(200))
@given(st.lists(pending_readings(), min_size=1, max_size=12), st.sampled_from([0, 5, 1 << 33]))
def test_the_bytes_are_those_of_the_readings(batch, first_seq):
    """At every prefix, and one by one, with one buffer for all of them."""
    batches = Batches("hall", "gw", 7 << 32, BYTES_MAX)
    for part in [batch[: n + 1] for n in range(len(batch))] + [[pending] for pending in batch]:
        message = batches.encoded(part, first_seq, lambda pending: pending.stamp)
        assert message == reference(part, first_seq)


def test_good_pending_readings_do_give_messages():
    """The bridge decodes a batch that fits; a batch one byte over the limit gives None."""
    batch = [
        PendingReading("dock/tags", "tag", 0, 0, f"E2{n:06X}", attrs={"rssi": -50 - n, "antenna": 1}) for n in range(20)
    ]
    for n, pending in enumerate(batch):
        pending.stamp = 1_790_000_000_000_000 + n, 1_790_000_000_070_000 + n, "bounded"
    message = Batches("hall", "gw", 7 << 32, BYTES_MAX).encoded(batch, 3, lambda pending: pending.stamp)
    assert [(r.seq, r.key, r.attrs["rssi"]) for r in decode_batch(message)] == [
        (3 + n, f"E2{n:06X}", -50 - n) for n in range(20)
    ]
    assert Batches("hall", "gw", 7 << 32, len(message)).encoded(batch, 3, lambda pending: pending.stamp) == message
    assert Batches("hall", "gw", 7 << 32, len(message) - 1).encoded(batch, 3, lambda pending: pending.stamp) is None


@given(st.lists(st.binary(max_size=5), max_size=10), st.integers(0, 20))
def test_a_buffer_takes_what_fits(pieces, size):
    """A piece that does not fit is refused whole; the content written before stays."""
    buffer, expected = Buffer(size), b""
    for piece in pieces:
        if len(expected) + len(piece) <= size:
            buffer.extend(piece)
            expected += piece
        else:
            with pytest.raises(WireError, match="found more than"):
                buffer.extend(piece)
        assert buffer.content() == expected
    for _ in range(size - len(expected)):
        buffer.append(1)
    with pytest.raises(WireError, match=f"found more than {size} bytes"):
        buffer.append(1)
    buffer.clear()
    assert buffer.content() == b""
