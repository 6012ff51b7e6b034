"""A capture as the demonstration plays it."""

from whenabouts_edge.trace.format import Head, Record, encode_head, encode_record
from whenabouts_edge.trace.reader import open_trace
from whenabouts_sim.stack.sources import Capture
from whenabouts_sim.world.clocks import SimClock

BYTE_NS = 10_000_000_000 // 9600


def tag(number):
    """A frame of an RDM6300."""
    body = f"{number:010X}"
    check = 0
    for at in range(0, 10, 2):
        check ^= int(body[at : at + 2], 16)
    return b"\x02" + f"{body}{check:02X}".encode() + b"\x03"


def test_frames_that_one_late_read_gave_together_come_as_the_line_carries_them(tmp_path):
    """
    line       |--tag 1--|--tag 2--|        |--tag 3--|
    read                           |^ both            |^
    played               ^         ^                  ^
    """
    records = [
        Record("rx", 0, 50_000_000, tag(1) + tag(2)),
        Record("rx", 50_000_000, 90_000_000, tag(3)),
    ]
    trace = tmp_path / "late.jsonl"
    head = Head(port="/dev/ttyS0", baud=9600)
    trace.write_bytes(encode_head(head) + b"".join(encode_record(record) for record in records))
    capture = Capture(trace, SimClock(1_790_000_000_000_000, 0), tmp_path)
    played = list(open_trace(tmp_path / "capture.jsonl").records())
    assert [record.data for record in played] == [tag(1), tag(2), tag(3)]
    assert [record.return_ns for record in played] == [50_000_000 - len(tag(2)) * BYTE_NS, 50_000_000, 90_000_000]
    assert (capture.frames, capture.damaged) == (3, 0)
