"""Interface between the Spark adapters and an engine; all differences between the three engines are behind it.

The tasks that read the landing (`source`) pack readings into rows for shards (`packing`); each shard is given its tables:
the readings of a micro-batch (`streaming`), or all readings (`batch`), where a shard that is too large is cut in time. The
engine chooses the readings, converts them to tables and assigns each row to a shard. All of this is on Arrow tables, so
no reading becomes a row of Spark or an object of Python.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from whenabouts_cloud.frontier.gateways import Watermark
from whenabouts_cloud.rules.model import Rule, Stream
from whenabouts_cloud.shard import Shard, StepOutput

AnyRule = TypeVar("AnyRule", bound=Rule)
Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


class TimeSlab(NamedTuple):
    """The results of a shard that begin within [low, high), us since 1970 UTC; their readings may lie `reach` us outside."""

    low: int
    high: int
    reach: int


class Routed(NamedTuple):
    """Rows of one table of an engine, and the shard of each row."""

    table: str
    rows: pa.Table
    shard: Ints


class EngineJob(ABC, Generic[AnyRule]):
    """One engine. Methods run in the driver and in tasks; an engine has no state."""

    columns: tuple[str, ...]
    """Columns of the landing that its rules may read; no others are read."""

    waits = False
    """True if the results of a whole landing depend on watermarks."""

    group_rows = 1_000_000
    """Target number of readings in one group of a batch, which a worker holds in memory whole."""

    @abstractmethod
    def results(self, rule: AnyRule) -> pa.Schema:
        """The columns of the rule's results."""

    @abstractmethod
    def tables(self, rule: AnyRule) -> Mapping[str, pa.Schema]:
        """The tables that a shard is given, by name."""

    @abstractmethod
    def streams(self, rule: AnyRule) -> Sequence[Stream]:
        """The streams of the rule; a shard is given a list of watermarks for each."""

    @abstractmethod
    def readings(self, rules: Sequence[AnyRule], landed: pa.Table) -> pa.Table:
        """The readings that any rule needs, among landed ones with `columns`, texts encoded; with what `routed` needs."""

    @abstractmethod
    def routed(self, rule: AnyRule, readings: pa.Table, shards: int) -> Iterable[Routed]:
        """The rule's rows of its tables, made from `readings`."""

    @abstractmethod
    def shard(self, rule: AnyRule) -> Shard:
        """A new, empty shard."""

    @abstractmethod
    def whole(
        self, rule: AnyRule, tables: Mapping[str, pa.Table], watermarks: Sequence[Watermark], slab: TimeSlab | None
    ) -> StepOutput:
        """The results of a shard, or of a slab of it, from all of its readings at once."""

    def shards(self, rule: AnyRule, shards: int) -> int:
        """Number of shards that the rule uses, at most `shards`."""
        return shards

    def heard(self, rule: AnyRule, site: str, gateway: str, streams: Sequence[str]) -> list[int]:
        """Indexes of the watermark lists (`streams`) that this gateway, with these streams, counts for."""
        own = enumerate(self.streams(rule))
        return [n for n, one in own if any(one.matches(site, gateway, name) for name in streams)]

    def shared(self, rule: AnyRule) -> bool:
        """True if every shard of the rule is given `shared_rows`."""
        return False

    def shared_rows(self, landed: pa.Table) -> Iterable[tuple[str, pa.Table]]:
        """Tables, by name, that all shards of rules that are `shared` are given, from landed readings."""
        raise NotImplementedError

    def reach(self, rule: AnyRule) -> Callable[[int], int] | None:
        """The reach of a slab (`TimeSlab`) as a function of the longest stamp, both in us.

        None if one result can hold readings any time apart: then shards are not cut.
        """
        return None

    def times(self, rule: AnyRule, table: str, rows: pa.Table) -> Ints:
        """The time by which rows of a table are cut, us since 1970 UTC."""
        raise NotImplementedError

    def inside(self, rule: AnyRule, table: str, rows: pa.Table) -> Callable[[TimeSlab], Mask]:
        """A function that marks the rows of a table that a slab needs."""
        raise NotImplementedError
