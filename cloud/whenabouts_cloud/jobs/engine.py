"""Interface between the Spark adapters and an engine; all differences between the three engines are behind it.

A job reads the landing, packs readings into rows for shards (`packing`) and gives each shard its tables: the readings of a
micro-batch (`streaming`), or all readings at once (`batch`), where a shard that is too large is cut in time.
The engine chooses the readings, converts them to tables and assigns each row to a shard.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from whenabouts_cloud.frontier.gateways import Watermark
from whenabouts_cloud.rules.model import Rule, Stream
from whenabouts_cloud.shard import Shard, StepOutput

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

AnyRule = TypeVar("AnyRule", bound=Rule)
Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


class TimeSlab(NamedTuple):
    """The results of a shard that begin within [low, high), us since 1970 UTC; their readings may lie `reach` us outside."""

    shard: int
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
    """Columns of the landing that its rules may read; Spark reads no others."""

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
    def readings(self, rules: Sequence[AnyRule], landed: "DataFrame", shards: int) -> "DataFrame":
        """The readings that any rule needs, with the columns that `routed` needs; uses no Python workers."""

    @abstractmethod
    def routed(self, rule: AnyRule, readings: pa.Table, shards: int) -> Iterable[Routed]:
        """The rule's rows of its tables, made from a part of `readings`."""

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

    def shared_rows(self, landed: "DataFrame") -> "DataFrame":
        """Rows of `table` and `rows` (`packing`) for all shards of rules that are `shared`."""
        raise NotImplementedError

    def cut(self, rule: AnyRule) -> "tuple[Column, Callable[[int], int]] | None":
        """Time column and reach for cutting the shards of a batch; None if one result can hold readings any time apart.

        The reach of a slab (`TimeSlab`) is a function of the longest stamp, both in us.
        """
        return None

    def inside(self, rule: AnyRule, table: str, rows: pa.Table) -> Callable[[TimeSlab], Mask]:
        """A function that marks the rows of a table that a slab needs."""
        raise NotImplementedError
