"""Inputs of the agents of a demonstration: simulated readers behind pseudo-terminals, or a recorded capture.

Both report afterwards what was put on the lines and when, so that the run can be judged. For a capture the real times of
the tags in the field are not known. Its "true" times are the reader's own time since its cycle began, if the capture has
one, else the moment at which the replay puts the frame's first bit on the line.
"""

import itertools
import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from whenabouts_edge.trace.format import Head, Record, encode_head, encode_record
from whenabouts_edge.trace.reader import open_trace
from whenabouts_hardware import READERS as KINDS
from whenabouts_hardware import Frame
from whenabouts_sim.readers.m6e import M6eNano
from whenabouts_sim.readers.pty_link import PtyLink
from whenabouts_sim.readers.rdm6300 import Rdm6300
from whenabouts_sim.stack.stack import Stack, reader_table
from whenabouts_sim.world.clocks import SimClock
from whenabouts_sim.world.emitted import EmittedFrame
from whenabouts_sim.world.world import DOCK, DOOR, GATE, Model, SimReader, World

LEAD_US = 500_000  # between the moment when all is ready and the first event
BETWEEN_FILES_NS = 200_000_000  # pause between the captures of a folder
TRACE_SUFFIXES = (".transport", ".jsonl", ".trace", ".spy", ".txt")


class SimulatedReaders:
    """Readers of a seeded world, in this process, behind pseudo-terminals."""

    def __init__(self, world: World, clock: SimClock, ports: Path, truth: Path | None = None) -> None:
        """truth: folder with one file per reader for the sightings that leave it, written as they happen."""
        self.readers: Sequence[SimReader] = world.readers
        self._clock, self._ports = clock, ports
        self.world = world  # `go` moves it to its true time
        if truth is not None:
            truth.mkdir(parents=True, exist_ok=True)
        self._links = [
            PtyLink(
                (M6eNano if r.model == "m6e" else Rdm6300)(r.name, world.seed),
                clock,
                ports / r.name,
                truth and truth / f"{r.name}.jsonl",
            )
            for r in world.readers
        ]
        self._numbers = Counter(sighting.reader for sighting in world.sightings)

    @property
    def duration_s(self) -> float:
        """Length of the events, in real seconds."""
        return (self.world.duration_us + LEAD_US) / self._clock.speed_milli / 1000

    def tables(self, gateway: str) -> list[dict[str, str | int | bool]]:
        """Configuration of the gateway's readers."""
        return [reader_table(r, self._ports / r.name) for r in self.readers if r.gateway == gateway]

    def plug(self) -> None:
        """Make the ports appear."""
        for link in self._links:
            link.start()

    def go(self, now_ns: int, stack: Stack) -> None:
        """Let the world's events begin."""
        self.world = self.world.starting_at(self._clock.true_us(now_ns) + LEAD_US)
        for link in self._links:
            link.go(self.world.sightings)

    @property
    def end_us(self) -> int:
        """True time at which the events given so far end; valid after `go`."""
        return self.world.epoch_us + self.world.duration_us

    def more(self, world: World) -> None:
        """Let the events of another world of the same readers follow; sighting numbers continue."""
        follows = world.starting_at(self.end_us)
        numbered = [replace(s, number=s.number + self._numbers[s.reader]) for s in follows.sightings]
        self._numbers.update(sighting.reader for sighting in numbered)
        self.world = replace(follows, sightings=tuple(numbered))
        for link in self._links:
            link.go(numbered)

    def emitted(self) -> list[EmittedFrame]:
        """Sightings that have left the readers so far."""
        return sorted((e for link in self._links for e in link.emitted), key=lambda e: (e.true_us, e.id))

    def stop(self) -> None:
        """Unplug the readers."""
        for link in self._links:
            link.stop()


class Capture:
    """A recorded capture, played to dock, gate and door at once."""

    def __init__(self, trace: Path, clock: SimClock, folder: Path) -> None:
        self._clock = clock
        self._file = folder / "capture.jsonl"
        self.files = _files(trace)
        records = _joined(self.files)
        self.model, self.frames, self.damaged = _recognise(records)
        self._baud = KINDS[self.model].baud
        records = _one_by_one(self.model, records)
        first_ns = records[0].entry_ns if records else 0
        self._sightings = [
            (event_ns - first_ns, end_ns - first_ns, key) for event_ns, end_ns, key in _sightings(self.model, records)
        ]
        self._length_ns = records[-1].return_ns - first_ns if records else 0
        self._file.write_bytes(
            encode_head(Head(port=str(trace), baud=self._baud)) + b"".join(encode_record(record) for record in records)
        )
        self.readers = tuple(SimReader(r.name, r.site, r.gateway, r.stream, self.model) for r in (DOCK, GATE, DOOR))
        self._emitted: list[EmittedFrame] = []

    @property
    def duration_s(self) -> float:
        """Length of the replay, in real seconds."""
        return self._length_ns / 1e6 / self._clock.speed_milli

    def tables(self, gateway: str) -> list[dict[str, str | int | bool]]:
        """Configuration of the gateway's replay."""
        speed = self._clock.speed_milli / 1000
        url = f"replay://{self._file}?speed={speed:g}"
        return [
            {**reader_table(r, Path()), "port": url, "listen_only": True} for r in self.readers if r.gateway == gateway
        ]

    def plug(self) -> None:
        """Nothing to do: a replay begins when its port is opened."""

    def go(self, now_ns: int, stack: Stack) -> None:
        """Learn from the agents when their replays began."""
        for reader in self.readers:
            status = stack.status(reader.gateway)
            assert status is not None, "the agents are ready"
            began_us = self._clock.true_us(status["readers"][reader.name]["opened_ns"])
            for number, (event_ns, end_ns, key) in enumerate(self._sightings):
                event_us, end_us = began_us + event_ns // 1000, began_us + end_ns // 1000
                self._emitted.append(EmittedFrame(reader.name, number, key, event_us, end_us))

    def emitted(self) -> list[EmittedFrame]:
        """Sightings that the replays have put on the lines so far."""
        now_us = self._clock.true_us(time.monotonic_ns())
        return sorted((e for e in self._emitted if e.last_byte_us <= now_us), key=lambda e: (e.true_us, e.id))

    def stop(self) -> None:
        """Nothing to do: the agents close their replays."""


def _files(trace: Path) -> list[Path]:
    if trace.is_dir():
        files = sorted(path for path in trace.iterdir() if path.suffix in TRACE_SUFFIXES and path.stat().st_size)
        files = [path for path in files if not path.name.upper().startswith(("README", "LICENSE"))]
        if not files:
            raise FileNotFoundError(f"{trace}: found no capture, expected files ending in {', '.join(TRACE_SUFFIXES)}")
        return files
    if not trace.exists():
        raise FileNotFoundError(f"{trace}: no such file, expected a serial capture or a folder of captures")
    return [trace]


def _joined(files: Sequence[Path]) -> list[Record]:
    """The records of all files as one capture: each file begins shortly after the end of the previous one."""
    joined: list[Record] = []
    end_ns = 0
    for path in files:
        shift_ns: int | None = None
        for record in open_trace(path).records():
            if shift_ns is None:
                shift_ns = end_ns + (BETWEEN_FILES_NS if joined else 0) - record.entry_ns
            moved = Record(
                record.direction, record.entry_ns + shift_ns, record.return_ns + shift_ns, record.data, record.error
            )
            joined.append(moved)
            end_ns = moved.return_ns
    if not any(record.direction == "rx" for record in joined):
        raise ValueError(f"{files[0]}: found no bytes that a reader sent, expected some")
    return joined


def _recognise(records: Sequence[Record]) -> tuple[Model, int, int]:
    """The kind of reader that sent these bytes, and its numbers of good and damaged frames."""
    data = b"".join(record.data for record in records if record.direction == "rx")
    counts: Counter[Model] = Counter()
    frames: dict[Model, list[Frame]] = {}
    kinds: tuple[Model, ...] = ("m6e", "rdm6300")
    for kind in kinds:
        decode = KINDS[kind].new_decoder()
        frames[kind] = [*decode.feed(data), *decode.flush()]
        counts[kind] = sum(frame.ok for frame in frames[kind])
    model, good = counts.most_common(1)[0]
    if not good:
        raise ValueError("capture: found no frame of a known reader, expected an M6e Nano or RDM6300")
    return model, good, len(frames[model]) - good


def _one_by_one(model: Model, records: Sequence[Record]) -> list[Record]:
    """Records with one frame each, ending at the latest time at which its last byte can have come.

    One late read may return several frames. Played all at once they would come faster than the line carries them, which
    no stamp allows for.
    """
    decode = KINDS[model].new_decoder()
    byte_ns = 10_000_000_000 // KINDS[model].baud
    parts: list[Record] = []
    before = 0  # bytes of earlier records
    for record in records:
        size = len(record.data)
        frames = decode.feed(record.data) if record.direction == "rx" else []
        ends = sorted({frame.end - before for frame in frames})
        cuts = [0, *(end for end in ends[:-1] if 0 < end < size), size]
        for first, last in itertools.pairwise(cuts):
            return_ns = record.return_ns - (size - last) * byte_ns
            if parts:
                return_ns = max(return_ns, parts[-1].return_ns)
            entry_ns = min(record.entry_ns, return_ns)
            parts.append(replace(record, entry_ns=entry_ns, return_ns=return_ns, data=record.data[first:last]))
        before += size if record.direction == "rx" else 0
    return parts


def _sightings(model: Model, records: Sequence[Record]) -> list[tuple[int, int, str]]:
    """(time of the event, time of the frame's last byte, key) of every sighting in a capture, in its nanoseconds."""
    decode = KINDS[model].new_decoder()
    byte_ns = 10_000_000_000 // KINDS[model].baud
    cycle_ns: int | None = None
    events: list[tuple[int, int, str]] = []
    for record in records:
        for frame in decode.feed(record.data) if record.direction == "rx" else ():
            first_bit_ns = record.return_ns - (frame.end - frame.start) * byte_ns - 1000
            if KINDS["m6e"].is_anchor(frame):
                cycle_ns = first_bit_ns
            for sighting in KINDS[model].sightings(frame):
                event_ns = first_bit_ns
                if cycle_ns is not None and sighting.ts_ms is not None and sighting.read_count == 1:
                    event_ns = min(first_bit_ns, cycle_ns + sighting.ts_ms * 1_000_000)
                events.append((event_ns, record.return_ns, sighting.key))
    return events


def new_seed() -> int:
    """A seed for a run that was given none; it is printed, so that the run can be repeated."""
    return random.SystemRandom().randrange(1, 100_000)
