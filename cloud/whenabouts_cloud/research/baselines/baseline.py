"""Common part of K-slack, conservative and aggressive: input columns, disorder bound, late events, snapshots.

Each method adds one kernel, which is called once for a block. The methods support one sequence over points, with
negations between neighbours or at the ends. A late event is ignored, counted and reported; its effect on emitted matches
is not computed.
"""

import io
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from whenabouts_cloud.cep.kernel.layout import FOREVER
from whenabouts_cloud.cep.runtime import validate
from whenabouts_cloud.cep.runtime.checksum import opened, with_checksum
from whenabouts_cloud.cep.runtime.disorder import Disorder, Order
from whenabouts_cloud.cep.runtime.output import Out
from whenabouts_cloud.jit import Array
from whenabouts_cloud.pattern.plan import Plan
from whenabouts_cloud.research.baselines.sequence import LIMIT, Chain, chain_of

ADVANCED = -1  # type and index of a row that is only a new frontier
VERSION = 2


class Events(NamedTuple):
    """The events of a call in the order of arrival: type (ADVANCED: none, only a new frontier), key, t, index; the frontier
    after each, and True if a punctuation follows."""

    code: Array
    key: Array
    t: Array
    arrival: Array
    frontier: Array
    punctuated: Array


class Baseline(ABC):
    """One method over one plan; `feed`, `advance` and `finish` return the output; events are counted from 0."""

    STATE: ClassVar[tuple[type, ...]]  # the tuples of arrays that the kernel works on

    def __init__(
        self,
        plan: Plan,
        type_count: int,
        *,
        k: int | None = None,
        order: Order = "kbound",
        sources: list[int] | None = None,
        pog_every: int = 5,
    ) -> None:
        """
        `pog_every`: events from one punctuation to the next, used only by the conservative method.

        Raises:
            ValueError: the plan is more than one sequence of points, or the disorder bound is incomplete.
        """
        if pog_every < 1:
            raise ValueError(f"pog_every: found {pog_every}, expected at least 1 event")
        self._chain = chain_of(plan, type_count)
        self._per_key = plan.per_key
        self._pog_every = pog_every
        self._disorder = Disorder(order, k, sources)
        self._fed = 0
        self.late_count = 0
        self._state = self._empty(len(self._chain.place), int(self._chain.limits[LIMIT.classes]))

    def feed(
        self,
        type_code: Any,
        key: Any,
        t: Any,
        source: Any = None,
        t_max: Any = None,
        attributes: Any = None,
    ) -> Out:
        """Feed events in the order of arrival, one number each in columns of equal length.

        Raises:
            ValueError: a column has a wrong length or type, holds an invalid value, or t_max differs from t. Then no event
                was taken in.
        """
        times = validate.times("t", t, None)
        count = len(times)
        codes, keys = validate.codes(type_code, count, len(self._chain.first) - 1), validate.column("key", key, count)
        sources = None if source is None else validate.column("source", source, count)
        if t_max is not None and not np.array_equal(t_max, times):
            raise ValueError("t_max: found other than t, expected points for a baseline; infa_hts takes intervals")
        before = self._disorder.frontier
        frontier = self._disorder.after(times, sources)
        late = times < np.concatenate([[before], frontier])[:-1]
        index = np.arange(self._fed, self._fed + len(codes))
        self._fed += len(codes)
        self.late_count += int(late.sum())
        punctuated = (index + 1) % self._pog_every == 0
        keys = keys if self._per_key else np.zeros_like(keys)
        events = Events(np.where(late, ADVANCED, codes), keys, times, index, frontier, punctuated)
        return self._emitted(events, index[late])

    def advance(self, frontier: int | Mapping[int, int]) -> Out:
        """Declare that no event before the frontier will arrive, from any source or from these sources.

        Raises:
            ValueError: a frontier is not a whole number, or given by source in order `kbound`; nothing is changed.
        """
        if isinstance(frontier, Mapping) and self._disorder.k >= 0:
            raise ValueError("frontier by source: found order kbound, expected source, or one number for all")
        return self._at(self._disorder.advance(frontier))

    def finish(self) -> Out:
        """Declare that no event will arrive any more."""
        return self.advance(FOREVER)

    def snapshot(self) -> bytes:
        """Return the whole state, as an uncompressed file of named arrays."""
        arrays = self._disorder.arrays
        arrays["method"] = np.array([VERSION, self._per_key, self._pog_every, self._fed, self.late_count], np.int64)
        for n, part in enumerate((self._chain, *self._state)):
            arrays |= {f"{n}.{name}": array for name, array in part._asdict().items()}
        file = io.BytesIO()
        np.savez(file, **arrays)  # type: ignore[arg-type]  # the stub mistakes the names for options
        return with_checksum([file.getvalue()])

    @classmethod
    def restore(cls, blob: bytes) -> Self:
        """Continue from a snapshot of the same method.

        Raises:
            ValueError: it is damaged, or was written by another version.
        """
        with np.load(io.BytesIO(opened(blob)), allow_pickle=False) as file:
            arrays = dict(file)
        version, per_key, pog_every, fed, late_count = map(int, arrays["method"])
        if version != VERSION:
            raise ValueError(f"snapshot: found version {version}, expected {VERSION}; feed the events again")
        self = cls.__new__(cls)
        parts: list[Any] = [
            kind(*(arrays[f"{n}.{name}"] for name in kind._fields))  # type: ignore[attr-defined]
            for n, kind in enumerate((Chain, *cls.STATE))
        ]
        self._chain, self._state = parts[0], tuple(parts[1:])
        self._per_key, self._pog_every, self._fed, self.late_count = bool(per_key), pog_every, fed, late_count
        self._disorder = Disorder.of(arrays)
        return self

    @property
    def state_bytes(self) -> int:
        """Size of the state, room for growth included."""
        return sum(array.nbytes for part in self._state for array in part)

    @abstractmethod
    def _empty(self, places: int, classes: int) -> tuple[Any, ...]:
        """The state before the first event."""

    @abstractmethod
    def _run(self, events: Events) -> tuple[Array, Array, Array]:
        """Call the kernel: (matches, emitted_at, retractions)."""

    def _at(self, frontier: int) -> Out:
        one = np.zeros(1, np.int64)
        none = np.empty(0, np.int64)
        return self._emitted(Events(one + ADVANCED, one, one, one + ADVANCED, one + frontier, np.ones(1, bool)), none)

    def _emitted(self, events: Events, late: Array) -> Out:
        matches, emitted_at, retractions = self._run(events)
        return Out.of(matches, emitted_at, late, retractions)
