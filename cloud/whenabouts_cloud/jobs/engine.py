"""What the Spark adapters must know of an engine: the one place where the three differ.

A job reads the landing, packs readings into rows for shards (`packing`) and gives each shard its tables: of what lands in a
micro-batch (`streaming`), or of everything at once (`batch`), where a shard that is too large is cut in time (`slabs`). The
engine says which readings it wants, as which tables, in which shard.
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


class Slab(NamedTuple):
    """A shard's results that begin within [low, high), and how far beyond that their readings may lie; us since 1970 UTC."""

    shard: int
    low: int
    high: int
    reach: int


class Routed(NamedTuple):
    """Rows of one table of an engine, and the shard of each."""

    table: str
    rows: pa.Table
    shard: Ints


class Engine(ABC, Generic[AnyRule]):
    """One engine. Methods run in the driver as in tasks; an engine has no state."""

    columns: tuple[str, ...]
    """Of the landing those that its rules may read; Spark reads no others."""

    waits = False
    """Whether a whole landing gives other results with the watermarks than without."""

    group_rows = 1_000_000
    """Readings aimed at in one group of a batch, which a worker holds in memory whole."""

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
        """The readings that some rule needs, with the columns that `routed` needs; all by Spark's own code."""

    @abstractmethod
    def routed(self, rule: AnyRule, readings: pa.Table, shards: int) -> Iterable[Routed]:
        """The rule's part of some of these `readings`, as rows of its tables."""

    @abstractmethod
    def shard(self, rule: AnyRule) -> Shard:
        """A shard that has seen nothing."""

    @abstractmethod
    def whole(
        self, rule: AnyRule, tables: Mapping[str, pa.Table], watermarks: Sequence[Watermark], slab: Slab | None
    ) -> StepOutput:
        """The results of a shard, or of a slab of it, from all of its readings at once."""

    def shards(self, rule: AnyRule, shards: int) -> int:
        """How many of so many shards the rule makes use of."""
        return shards

    def heard(self, rule: AnyRule, site: str, streams: Sequence[str]) -> list[int]:
        """The lists that a watermark goes to, of a gateway at this site that feeds these streams."""
        return [n for n, one in enumerate(self.streams(rule)) if any(one.matches(site, name) for name in streams)]

    def shared(self, rule: AnyRule) -> bool:
        """Whether every shard of the rule is given `shared_rows`."""
        return False

    def shared_rows(self, landed: "DataFrame") -> "DataFrame":
        """Rows of `table` and `rows` (`packing`) for all shards of rules that are `shared`."""
        raise NotImplementedError

    def cut(self, rule: AnyRule) -> "tuple[Column, Callable[[int], int]] | None":
        """How the shards of a batch can be cut in time; None if what lies far apart can be in one result.

        The time of a reading, and from the longest stamp how far beyond a slab lie readings that its results need, in us.
        """
        return None

    def inside(self, rule: AnyRule, table: str, rows: pa.Table) -> Callable[[Slab], Mask]:
        """Tells which of these rows of a table a slab needs."""
        raise NotImplementedError
