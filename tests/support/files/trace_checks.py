"""Checks for every recorded dialogue with an M6e, simulated or real."""

from itertools import pairwise
from pathlib import Path

import serial

from whenabouts_edge import serial_handlers
from whenabouts_edge.trace import open_trace
from whenabouts_edge.trace.transport import to_transport


def check_transport(path: Path) -> None:
    """As many records as head lines, in their directions and times, and every frame has the length it states."""
    trace = open_trace(path)
    heads = [line for line in path.read_text().splitlines() if line.startswith(("Sending: ", "Received:"))]
    records = list(trace.records())
    assert heads
    assert trace.format == "transport"
    assert trace.warnings == []
    assert [record.direction for record in records] == ["tx" if head.startswith("Sending") else "rx" for head in heads]
    assert [f"{r.return_ns // 10**9}.{r.return_ns % 10**9:09}" for r in records] == [head.split()[-1] for head in heads]
    for record in records:
        # FF, length of the payload, command, [status, 2 bytes, in answers], payload, checksum of 2 bytes
        assert record.data[0] == 0xFF
        assert len(record.data) == record.data[1] + (7 if record.direction == "rx" else 5)
    for before, after in pairwise(records):
        assert after.direction == "tx" or after.entry_ns == before.return_ns


def check_written_again(path: Path, again: Path) -> None:
    """The output of to_transport() for it gives the same records."""
    warnings: list[str] = []
    again.write_text("".join(to_transport(open_trace(path).records(), warnings.append)))
    assert list(open_trace(again).records()) == list(open_trace(path).records())
    assert warnings == []


def check_dialogue(path: Path, speed: str) -> None:
    """A program that sends the recorded commands gets the answer to each command, and not before the command."""
    serial_handlers.register()
    records = list(open_trace(path).records())
    with serial.serial_for_url(f"replay://{path}?match=tx&speed={speed}", timeout=30) as port:
        for record in records:
            if record.direction == "tx":
                assert port.in_waiting == 0
                port.write(record.data)
            else:
                assert port.read(len(record.data)) == record.data
        assert (port.replay_finished, port.replay_mismatches) == (True, 0)
        assert port.replay_records_played == port.replay_records_total == len(records)
