"""Every published frame of the readers we decode, however it arrives, against the fields its source gives."""

import pytest

from support.files.reader_frames import published
from whenabouts_hardware import DECODERS, Decoder, Frame, decoder
from whenabouts_hardware.readers.m6e_frames import ANSWER_OVERHEAD_BYTES, COMMAND_OVERHEAD_BYTES

VECTORS = published()
WITHOUT_START = ("uhfreader18", "line")  # any byte may begin a frame
# Frames that show what they are even when damaged, and all that are not damaged.
PLACED = [v for v in VECTORS if v.reader not in WITHOUT_START and (v.ok or v.reader == "rdm6300")]
every_vector = pytest.mark.parametrize("vector", VECTORS, ids=str)

# The last two hold start bytes of both protocols: a lone one, and one that claims a frame longer than what follows.
NOISE = [b"\x00", b"zz\r\n\x03", b"\x01\x80\xfe", b"\x02", b"\xff", b"\xff\x0f\x02\x31", b"\x02\x30\x30\xff\xff\x40"]


def frames_of(decoder: Decoder, *chunks: bytes) -> list[Frame]:
    """All frames of a stream that ends after the chunks."""
    frames = [frame for chunk in chunks for frame in decoder.feed(chunk)]
    return frames + decoder.flush()


def plain(frame: Frame) -> tuple:
    """A frame without its place in the stream."""
    return frame.kind, frame.fields, frame.ok, frame.error, frame.raw


def test_table_covers_all_decoders():
    """The table is the one meant: a file without these protocols would pass every test unseen."""
    assert {vector.reader for vector in VECTORS} == set(DECODERS)
    assert len(VECTORS) >= 65


@every_vector
def test_vector_fed_whole(vector):
    """One frame, valid or not as in the source, with at least the source's fields, over all its bytes."""
    raw = vector.raw
    reader = decoder(vector.reader)
    [frame] = frames_of(reader, raw)
    assert frame.ok is vector.ok, frame
    assert (frame.error is None) is vector.ok
    assert {name: frame.fields.get(name) for name in vector.fields} == vector.fields
    assert (frame.raw, frame.start, frame.end) == (raw, 0, len(raw))
    assert reader.pending == b""
    assert reader.counters["noise_bytes"] == 0


@every_vector
def test_vector_fed_byte_by_byte_and_in_every_two_parts(vector):
    """The frame does not depend on where reads cut it, and is held back until its last byte."""
    raw = vector.raw
    whole = frames_of(decoder(vector.reader), raw)
    slow = decoder(vector.reader)
    for byte in raw[:-1]:
        assert slow.feed(bytes([byte])) == []
    assert slow.pending == raw[:-1]
    assert slow.feed(raw[-1:]) + slow.flush() == whole
    for cut in range(len(raw) + 1):
        assert frames_of(decoder(vector.reader), raw[:cut], raw[cut:]) == whole


@every_vector
def test_vector_glued_twice(vector):
    """Two frames without a gap are two frames, side by side."""
    raw = vector.raw
    first, second = frames_of(decoder(vector.reader), raw + raw)
    assert plain(first) == plain(second)
    assert (first.end, second.start, second.end) == (len(raw), len(raw), 2 * len(raw))


@pytest.mark.parametrize("vector", PLACED, ids=str)
@pytest.mark.parametrize("noise", NOISE, ids=lambda noise: noise.hex())
def test_vector_between_noise(vector, noise):
    """A frame between noise is found where it is, even if the noise holds start bytes; every byte is accounted for."""
    raw = vector.raw
    reader = decoder(vector.reader)
    stream = noise + raw + noise + raw + noise
    frames = frames_of(reader, stream)
    places = [(frame.start, frame.raw) for frame in frames if frame.kind != "damaged"]
    places_sent = [(len(noise), raw), (2 * len(noise) + len(raw), raw)]
    assert places == places_sent
    assert sum(len(frame.raw) for frame in frames) + reader.counters["noise_bytes"] == len(stream)
    if bytes([reader.START]) not in noise:
        assert reader.counters["noise_bytes"] == 3 * len(noise)
        assert len(frames) == 2


@pytest.mark.parametrize("vector", [v for v in VECTORS if v.reader == "m6e"], ids=str)
def test_mercury_frame_in_the_mode_of_its_direction(vector):
    """With the right direction the decoder gives the same frame as without one; with the wrong one, no good frame."""
    raw = vector.raw
    [frame] = decoder("m6e").feed(raw)
    right, wrong = ("host", "reader") if frame.kind == "command" else ("reader", "host")
    overhead = COMMAND_OVERHEAD_BYTES if right == "host" else ANSWER_OVERHEAD_BYTES
    assert len(raw) == raw[1] + overhead
    assert decoder("m6e", mode=right).feed(raw) == [frame]
    assert [other.ok for other in frames_of(decoder("m6e", mode=wrong), raw)] in ([], [False])
