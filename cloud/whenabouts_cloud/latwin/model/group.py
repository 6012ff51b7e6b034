"""Common base of the engines that watch a group: checks of inputs, clock heartbeats, renewals, snapshots, counters."""

import json
import operator
import struct
import zlib
from abc import ABC, abstractmethod
from collections.abc import Sequence, Sized
from typing import Any, SupportsIndex

import numpy as np
import numpy.typing as npt

from whenabouts_cloud.latwin.model.layout import (
    BAD_ENTRY,
    BAD_OWN,
    BAD_PROCESS,
    BAD_STATE,
    BAD_TIME,
    CLOCK,
    COUNTER_NAMES,
    FOREVER,
    HEAD,
    META,
    NEVER,
    NUMBER_LIMIT,
    ROOM,
    ROW,
    Ring,
    new_ring,
)

VERSION = 2
Clock = Sequence[int] | npt.NDArray[np.int64]
# What copying a clock into `_row`, `operator.index` and machine code raise for a value that they do not take.
MISFITS = (struct.error, TypeError, OverflowError, ValueError, NotImplementedError)


class Group(ABC):
    """Takes the reports of one group of processes and keeps their windows in `ring`.

    Args:
        processes: how many there are.
        window: how many states of each process are held, or a number for each.
        order: "causal" orders states by clocks only, "hybrid" also by times.
        patient: hybrid only: a state is admitted when nothing that comes before it can still arrive (`effective`).
        room: states of a process that may wait for a predecessor, or to be admitted; see `ring` for the effect of more.
    """

    def __init__(
        self, processes: int, window: int | Sequence[int], order: str = "causal", patient: bool = False,
        room: int = ROOM,
    ) -> None:  # fmt: skip
        self.ring = new_ring(processes, window, order, patient, room)
        self._row = np.zeros(processes, np.int64)
        self._processes = range(processes)
        self._put = struct.Struct(f"{processes}q").pack_into  # twice as fast as numpy's assignment
        self._bytes = self._row.data.cast("B")
        self._entries: Any = self._row.data  # copies an array in half the time, and only one of the same type

    @abstractmethod
    def _noted(self, process: int, number: int, lo: int) -> int:
        """Calls `ring.note` with the clock in `self._row`, then performs the releases."""

    @abstractmethod
    def _renewed(self, process: int, number: int) -> int:
        """Calls `ring.renew`, then performs the releases."""

    @abstractmethod
    def _rebuilt(self) -> None:
        """Rebuilds what is derived from the ring, after a restore."""

    def evidence(self, process: int, clock: Clock | None = None, t: int | None = None) -> None:
        """Takes a clock heartbeat: at time t or later `process` knew `clock` and was still in state `clock[process]`.

        Without a clock the state is the newest that has arrived. No state begins; the heartbeat only raises what is
        known of the end of the newest state and of the time that the process has reached. A heartbeat of a state that is
        over, or that is neither held nor awaited, changes nothing and is counted.

        Raises:
            ValueError: there is no such process, or the clock does not belong to this group.
        """
        number = -1 if clock is None else self._clock(process, None, clock)
        if clock is not None and number < 0:
            raise self._error(BAD_ENTRY, process, None, clock, None, None)
        status = self._noted(process, number, self._times(t, None)[0])
        if status < 0:
            raise self._error(status, process, number, clock, t, t)

    def renew(self, process: int, state: int) -> None:
        """Restarts a process at `state`, as after a gap that will not be filled: its window is empty until that arrives.

        Raises:
            ValueError: there is no such process, or the state is older than one that was admitted.
        """
        whole = isinstance(process, SupportsIndex) and isinstance(state, SupportsIndex)
        if not whole or self._renewed(operator.index(process), operator.index(state)) < 0:
            n = len(self.ring.heads)
            least = int(self.ring.heads[process, HEAD.next]) if whole and 0 <= process < n else 0
            raise ValueError(
                f"renewal: found process {process}, state {state}, expected a process 0 to {n - 1}, a state from {least}"
            )

    def snapshot(self) -> bytes:
        """Returns the ring as bytes; all else follows from it. Within 2 KB for 9 processes, windows of 4, little waiting."""
        ring = self.ring
        waiting = np.argwhere(ring.room[:, :, ROW.number] >= 0)
        parts = [ring.meta, ring.heads, ring.window, ring.ends, waiting, ring.room[tuple(waiting.T)]]
        depth = [ring.window.shape[1], ring.room.shape[1], len(waiting)]
        head = json.dumps({"version": VERSION, "processes": len(ring.heads), "depth": depth}).encode()
        body = b"".join(np.ascontiguousarray(part, "<i8").tobytes() for part in parts)
        planes = np.frombuffer(body, np.uint8).reshape(-1, 8).T.tobytes()  # high bytes are alike, so they compress well
        return head + b"\n" + zlib.compress(planes, 9)

    def restore(self, blob: bytes) -> None:
        """Continues from a snapshot of a group with the same arguments.

        Raises:
            ValueError: it is no snapshot, or one of another version or of a group with other arguments.
        """
        self.ring = _read(blob, self.ring)
        self._rebuilt()

    @property
    def counters(self) -> dict[str, int]:
        """The counters since the beginning, and the number of waiting states."""
        counts = {name: int(self.ring.meta[getattr(META, name)]) for name in COUNTER_NAMES}
        return {**counts, "waiting": int((self.ring.room[:, :, ROW.number] >= 0).sum())}

    def _clock(self, process: int, state: int | None, clock: Clock) -> int:
        """Copies a clock into `self._row`; returns `state`, or the clock's own entry if it is None."""
        if isinstance(clock, np.ndarray) and clock.dtype == np.int64 and clock.shape == self._row.shape:
            self._row[:] = clock
        else:
            try:
                self._put(self._bytes, 0, *clock)
            except (struct.error, TypeError):
                n = len(self._row)
                if isinstance(clock, Sized) and len(clock) != n:
                    raise ValueError(f"clock: found {len(clock)} entries, expected {n}, one for each process") from None
                raise self._error(BAD_ENTRY, process, state, clock, None, None) from None
        try:  # checking for the protocol first would take longer than all the rest
            known = operator.index(process) in self._processes
        except TypeError:
            known = False
        if not known:
            raise self._error(BAD_PROCESS, process, state, clock, None, None)
        return int(self._row[process]) if state is None else state

    def _state(self, state: int) -> int:
        """The checked state number, as an integer for machine code."""
        try:
            number = operator.index(state)
        except TypeError:
            number = -1
        if not 0 <= number < NUMBER_LIMIT:
            raise self._error(BAD_STATE, None, state, None, None, None)
        return number

    def _times(self, t_min: int | None, t_max: int | None) -> tuple[int, int]:
        """The checked bounds, as integers for machine code; the widest where they are None."""
        try:
            lo = NEVER if t_min is None else operator.index(t_min)
            hi = FOREVER if t_max is None else operator.index(t_max)
        except TypeError:
            lo, hi = 1, 0
        if not NEVER <= lo <= hi <= FOREVER:
            raise self._error(BAD_TIME, None, None, None, t_min, t_max)
        return lo, hi

    def _error(self, status: int, process: Any, state: Any, clock: Any, t_min: Any, t_max: Any) -> ValueError:
        """The error for the status that a wrong report caused."""
        n = len(self._row)
        number = f"from 0 to {NUMBER_LIMIT - 1}"
        texts = {
            BAD_PROCESS: f"process: found {process}, expected 0 to {n - 1}",
            BAD_STATE: f"state: found {state}, expected a number {number}",
            BAD_OWN: f"clock: found {clock}, expected the number of the state, {state}, as entry {process}",
            BAD_ENTRY: f"clock: found {clock}, expected {n} numbers of states {number}",
            BAD_TIME: f"time: found {t_min} to {t_max}, expected integers, the earlier first",
        }
        return ValueError(texts[status])


def _read(blob: bytes, like: Ring) -> Ring:
    """The ring of a snapshot, of the shape of `like`.

    Raises:
        ValueError: as `Group.restore`.
    """
    line, _, packed = blob.partition(b"\n")
    n, depth, places = len(like.heads), like.window.shape[1], like.room.shape[1]
    try:
        head = json.loads(line)
        version, processes, (window, room, waiting) = head["version"], head["processes"], head["depth"]
        body = zlib.decompress(packed)
    except (ValueError, KeyError, TypeError, zlib.error):
        raise ValueError(f"snapshot: found {line[:40]!r}, expected one of a group, of version {VERSION}") from None
    if (version, processes, window, room) != (VERSION, n, depth, places):
        raise ValueError(
            f"snapshot: found {processes} processes, windows of {window} and room for {room}, version {version}, "
            f"expected {n}, {depth}, {places} and {VERSION}"
        )
    long = CLOCK + n
    shapes = [like.meta.shape, like.heads.shape, like.window.shape, like.ends.shape, (waiting, 2), (waiting, long)]
    sizes = [int(np.prod(shape)) for shape in shapes]
    if len(body) != 8 * sum(sizes):
        raise ValueError(f"snapshot: found {len(body)} bytes, expected {8 * sum(sizes)}")
    flat = np.frombuffer(np.frombuffer(body, np.uint8).reshape(8, -1).T.tobytes(), "<i8").astype(np.int64)
    cut = np.split(flat, np.cumsum(sizes)[:-1])
    meta, heads, held, ends, where, rows = (part.reshape(shape) for part, shape in zip(cut, shapes, strict=True))
    if (heads[:, HEAD.width] != like.heads[:, HEAD.width]).any() or (
        meta[: META.patient + 1] != like.meta[: META.patient + 1]
    ).any():
        raise ValueError("snapshot: found another order or other windows, expected those of this group")
    waits = np.zeros_like(like.room)
    waits[:, :, ROW.number] = -1
    waits[tuple(where.T)] = rows
    return Ring(*(np.ascontiguousarray(part) for part in (meta, heads, held, waits, ends)))
