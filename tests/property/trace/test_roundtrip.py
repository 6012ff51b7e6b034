"""Laws of traces: encoding, replay order and timing, capture and replay back to back."""

import tempfile
from decimal import Decimal
from pathlib import Path

import serial
from hypothesis import given, settings
from hypothesis import strategies as st

from whenabouts_edge import serial_handlers
from whenabouts_edge.capture.capture import capture
from whenabouts_edge.readers.port import Chunk, PortError
from whenabouts_edge.trace import Head, Record, encode_head, encode_record, open_trace, to_spy
from whenabouts_edge.trace.player import Player

data = st.binary(max_size=40)
times_ns = st.integers(-(2**62), 2**62)


@st.composite
def a_record(draw: st.DrawFn, start_ns: int = 0) -> Record:
    entry_ns = start_ns + draw(st.integers(0, 10**9))
    return_ns = entry_ns + draw(st.one_of(st.just(0), st.integers(0, 10**9)))
    if draw(st.integers(0, 9)) == 0:
        return Record("error", entry_ns, return_ns, error=draw(st.text(max_size=30)))
    return Record(draw(st.sampled_from(["rx", "tx"])), entry_ns, return_ns, draw(data))


records = st.lists(a_record(), max_size=20)
heads = st.builds(
    Head,
    port=st.text(max_size=20),
    monotonic_ns=times_ns,
    wall_us=st.none() | times_ns,
    baud=st.none() | st.integers(1, 4_000_000),
    bytesize=st.none() | st.integers(5, 8),
    parity=st.none() | st.sampled_from("NEOMS"),
    stopbits=st.none() | st.sampled_from([1, 1.5, 2]),
    clock_bound_us=st.none() | st.integers(0, 10**9),
)


@settings(deadline=None)
@given(head=heads, records=records)
def test_a_trace_comes_back_as_it_was_written(head: Head, records: list[Record]) -> None:
    """Head and records of a file equal those that were encoded."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t"
        path.write_bytes(encode_head(head) + b"".join(map(encode_record, records)))
        trace = open_trace(path)
        assert trace.head == head
        assert list(trace.records()) == records


@settings(deadline=None)
@given(records=st.lists(a_record().filter(lambda record: record.data), min_size=1, max_size=20))
def test_spy_text_keeps_every_byte_and_millisecond(records: list[Record]) -> None:
    """The text for human readers reads back with the same chunks, stamps within the rounding."""
    records.sort(key=lambda record: record.return_ns)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t"
        path.write_text("".join(to_spy(records, 0)))
        given_back = list(open_trace(path).records())
    assert [(r.direction, r.data) for r in given_back] == [(r.direction, r.data) for r in records]
    for spy, record in zip(given_back, records, strict=True):
        assert spy.return_ns - 1_000_000 <= record.return_ns <= spy.return_ns


@settings(deadline=None)
@given(records=records, sizes=st.lists(st.integers(1, 50), min_size=1), loop=st.booleans())
def test_replay_gives_the_bytes_in_order_with_any_read_sizes(
    records: list[Record], sizes: list[int], loop: bool
) -> None:
    """Reads of any sizes give the received bytes in order, once, or over and over with end=loop."""
    serial_handlers.register()
    records = [record for record in records if record.direction != "error"]
    expected = b"".join(record.data for record in records if record.direction == "rx")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t"
        path.write_bytes(encode_head(Head("x")) + b"".join(map(encode_record, records)))
        url = f"replay://{path}?speed=max&end={'loop' if loop else 'empty'}"
        with serial.serial_for_url(url, timeout=0) as port:
            parts = [port.read(size) for size in sizes]
            given_back = b"".join(parts)
            if loop and expected:
                assert [len(part) for part in parts] == sizes
                assert given_back == (expected * (1 + len(given_back) // len(expected)))[: len(given_back)]
            else:
                assert given_back + port.read(10_000) == expected


@given(
    records=records,
    speed=st.sampled_from([Decimal(1), Decimal("0.3"), Decimal(7), Decimal(1000)]),
    steps_ns=st.lists(st.integers(0, 10**9), min_size=1, max_size=40),
)
def test_no_byte_is_available_before_its_time(records: list[Record], speed: Decimal, steps_ns: list[int]) -> None:
    """At any moment exactly the records are played whose time, and that of all before them, has come."""
    start_ns = 5
    records = [record for record in records if record.direction != "error"]
    player = Player(lambda: iter(records), start_ns, speed=speed)
    now_ns = start_ns
    taken = b""
    for step_ns in steps_ns:
        now_ns += step_ns
        player.advance(now_ns)
        taken += player.take(10_000)
        due = 0
        for record in records:
            # trace: first entry --- (return - first entry) ---> record;   player: start --- that / speed ---> available
            if (now_ns - start_ns) * speed < record.return_ns - records[0].entry_ns:
                break
            due += 1
        assert player.records_played == due
        assert taken == b"".join(record.data for record in records[:due] if record.direction == "rx")
        following_ns = player.next_due_ns()
        assert (following_ns is None) == (due == len(records))
        assert following_ns is None or following_ns > now_ns


@given(
    records=st.lists(a_record().filter(lambda record: record.data), max_size=20),
    late_ns=st.lists(st.integers(0, 10**8), min_size=1),
    cuts=st.lists(st.integers(1, 5), min_size=1),
)
def test_an_answer_comes_as_long_after_its_command_as_recorded(
    records: list[Record], late_ns: list[int], cuts: list[int]
) -> None:
    """A program that sends the recorded commands, late and in pieces, gets every answer in its recorded time."""
    records.sort(key=lambda record: record.return_ns)
    player = Player(lambda: iter(records), 0, match_tx=True)
    now_ns = base_ns = 0
    base_trace_ns = records[0].entry_ns if records else 0
    for place, record in enumerate(records):
        if record.direction == "tx":
            now_ns += late_ns[place % len(late_ns)]
            assert player.next_due_ns() is None
            size = cuts[place % len(cuts)]
            for begin in range(0, len(record.data), size):
                assert player.expected_write == record.data[begin:]
                player.wrote(record.data[begin : begin + size], now_ns)
            base_ns, base_trace_ns = now_ns, record.return_ns
        else:
            # trace: command --- d ---> answer;   player: written --- d ---> available
            due_ns = max(now_ns, base_ns + record.return_ns - base_trace_ns)
            player.advance(due_ns - 1)
            assert player.waiting_bytes == 0 or due_ns == now_ns
            player.advance(due_ns)
            now_ns = due_ns
            assert player.take(len(record.data)) == record.data
    assert player.finished
    assert player.mismatches == 0


class Listed:
    """A port that gives the chunks of a list and is then lost."""

    def __init__(self, chunks: list[Chunk | None]) -> None:
        self._chunks = iter(chunks)
        self.empty_ns = 0

    def read(self) -> Chunk | None:
        try:
            return next(self._chunks)
        except StopIteration:
            raise PortError("gone") from None


@settings(deadline=None)
@given(
    chunks=st.lists(
        st.none() | st.builds(Chunk, st.binary(min_size=1, max_size=30), st.integers(0, 50), st.integers(50, 99))
    ),
    bytes_max=st.none() | st.integers(0, 2000),
)
def test_a_capture_holds_what_was_read_up_to_its_limit(chunks: list[Chunk | None], bytes_max: int | None) -> None:
    """Every chunk becomes a record with its two bounds; a size limit is never passed and leaves whole lines."""
    read = [Record("rx", chunk.after_ns, chunk.before_ns, chunk.data) for chunk in chunks if chunk is not None]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t"
        with path.open("xb") as sink:
            limit = {} if bytes_max is None else {"trace_bytes_max": bytes_max}
            done = capture(Listed(chunks), sink, lambda: 100, lambda: 7, lambda: False, settings=Head("p"), **limit)
        assert path.stat().st_size == done.trace_bytes <= (bytes_max if bytes_max is not None else 2**40)
        if not done.trace_bytes:
            assert done.reason == "size limit"
            return
        trace = open_trace(path)
        assert (trace.head.monotonic_ns, trace.head.wall_us) == (100, 7)
        written = list(trace.records())
    if done.reason == "port lost":
        assert written == [*read, Record("error", 0, 100, error="gone")]
    else:
        assert done.reason == "size limit"
        assert written == read[: len(written)]
        assert done.chunks == len(written)
