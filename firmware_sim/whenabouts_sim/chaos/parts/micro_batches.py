"""Spark's micro-batches, simulated: offsets, commits and state in a checkpoint, and what a kill or power cut leaves.

    _checkpoint/offsets/12     written before micro-batch 12 runs
    _checkpoint/state/0/13     the state after it, written while it runs
    _checkpoint/commits/12     written after it was published

Files are renamed into place and not synced, as Spark's. A micro-batch that has begun and is not committed is repeated with
the same offsets and the state before it. The product's own `start_query` runs on this; it knows Spark by these few calls.
"""

import json
import os
import pickle
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd

from whenabouts_cloud.landing.files import DamagedFileError


class Spark:
    """In place of a session of Spark."""

    def __init__(self) -> None:
        self._sources: dict[str, type] = {}
        self.dataSource = SimpleNamespace(register=self._register)
        self.readStream = SimpleNamespace(format=self._format)

    def _register(self, source: Any) -> None:
        self._sources[source.name()] = source

    def _format(self, name: str) -> Any:
        return SimpleNamespace(load=lambda: _Rows(self._sources[name]({})))


class _Rows:
    """The rows of a source, then grouped, then with a function on each group and its state."""

    def __init__(self, source: Any) -> None:
        self._reader = source.streamReader(None)
        self._work: Callable[..., Iterator[pd.DataFrame]]

    def groupBy(self, _column: str) -> "_Rows":
        return self

    def applyInPandasWithState(self, work: Callable[..., Iterator[pd.DataFrame]], *_schemas: Any) -> "_Rows":
        self._work = work
        return self

    @property
    def writeStream(self) -> "Query":
        return Query(self._reader, self._work)


class _State:
    """Spark's state of one group."""

    def __init__(self, value: tuple[Any, ...] | None) -> None:
        self.value = value

    @property
    def exists(self) -> bool:
        return self.value is not None

    @property
    def get(self) -> tuple[Any, ...]:
        assert self.value is not None
        return self.value

    def update(self, value: tuple[Any, ...]) -> None:
        self.value = value

    def remove(self) -> None:
        self.value = None


class Query:
    """A query: `trigger` runs the next micro-batch, if there is something new."""

    def __init__(self, reader: Any, work: Callable[..., Iterator[pd.DataFrame]]) -> None:
        self._reader, self._work = reader, work
        self._publish: Callable[[Any, int], None]
        self._checkpoint: Path
        self._next = 0
        self._end: dict[str, Any] = {}
        self.reads: Callable[[Sequence[Any]], None] = lambda partitions: None  # told what it reads now

    def foreachBatch(self, publish: Callable[[Any, int], None]) -> "Query":
        self._publish = publish
        return self

    def outputMode(self, _mode: str) -> "Query":
        return self

    def trigger(self, processingTime: str) -> "Query":
        return self

    def option(self, _name: str, value: str) -> "Query":
        self._checkpoint = Path(value)
        return self

    def start(self) -> "Query":
        """Begin behind the last committed micro-batch."""
        for folder in ("offsets", "commits", "state/0"):
            (self._checkpoint / folder).mkdir(parents=True, exist_ok=True)
        committed = self._newest("commits")
        self._next = committed + 1
        self._end = self._offset(committed)
        return self

    @property
    def end(self) -> dict[str, Any]:
        """The offset up to which it has read."""
        return self._end

    def run_next(self) -> bool:
        """Run the next micro-batch; False if nothing is new."""
        batch, start = self._next, self._end or self._reader.initialOffset()
        if self._newest("offsets") >= batch:
            end = self._offset(batch)  # it has begun: it is repeated
        else:
            end = self._reader.latestOffset(start, self._reader.getDefaultReadLimit())
            if end == start:
                return False
            self._write(f"offsets/{batch}", f'v1\n{{"batchWatermarkMs":0}}\n{json.dumps(end)}'.encode())
        self._publish(SimpleNamespace(collect=lambda: self._computed(batch, start, end)), batch)
        self._write(f"commits/{batch}", b'v1\n{"nextBatchWatermarkMs":0}')
        self._reader.commit(end)
        self._next, self._end = batch + 1, end
        old = self._checkpoint / f"state/0/{batch - 1}"
        if old.exists():
            old.unlink()
        return True

    def _computed(self, batch: int, start: dict[str, Any], end: dict[str, Any]) -> list[tuple[bytes]]:
        """The rows that the tasks return; their state is on the disk."""
        groups: dict[int, list[tuple[str, bytes]]] = {}
        partitions = self._reader.partitions(start, end)
        self.reads(partitions)
        for partition in partitions:
            try:
                read = list(self._reader.read(partition))
            except DamagedFileError as error:  # Spark reports an error of a task as text
                raise RuntimeError(f"{type(error).__name__}: {error}") from error
            for rows in read:
                for group, table, blob in zip(*(column.to_pylist() for column in rows.columns), strict=True):
                    groups.setdefault(group, []).append((table, blob))
        state: dict[int, Any] = pickle.loads(self._read(f"state/0/{batch}")) if batch else {}  # noqa: S301
        written = list[tuple[bytes]]()
        for group, blobs in groups.items():
            one = _State(state.get(group))
            frame = pd.DataFrame(blobs, columns=["table", "rows"])
            for made in self._work((group,), iter([frame]), one):
                written += [(row,) for row in made["written"]]
            state[group] = one.value
        left = {group: value for group, value in state.items() if value is not None}
        self._write(f"state/0/{batch + 1}", pickle.dumps(left))
        return written

    def _newest(self, log: str) -> int:
        names = os.listdir(self._checkpoint / log)
        return max((int(name) for name in names if name.isdecimal()), default=-1)

    def _offset(self, batch: int) -> dict[str, Any]:
        return {} if batch < 0 else dict(json.loads(self._read(f"offsets/{batch}").decode().splitlines()[2]))

    def _read(self, name: str) -> bytes:
        return (self._checkpoint / name).read_bytes()

    def _write(self, name: str, data: bytes) -> None:
        place = self._checkpoint / name
        temporary = place.with_name(f".{place.name}.tmp")
        temporary.write_bytes(data)
        temporary.rename(place)
