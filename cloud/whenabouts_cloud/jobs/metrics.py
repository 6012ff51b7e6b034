"""Counts of a job and the latest state of its shards, also as metrics for Prometheus.

Tasks return their counts to the driver with each batch (`task_files`). A shard runs only in batches that have a row for it,
so its last state is kept here. Cost of a batch: proportional to the shards of its query.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from prometheus_client.core import Metric

from whenabouts_cloud.delivery.courier import Progress
from whenabouts_cloud.metrics_file import Labels, counter, gauge

MOST_STREAMS = 1000  # that get their own sample: those furthest behind
RETRACTED = frozenset({"retracted"})  # counts, by the engines' names, of results emitted too early
GONE = ""  # name for the sum of counts of rules that no longer run, so that names do not grow without limit
_STATES_OF_DELIVERY = frozenset({"delivery_waiting", "delivery_lag_seconds"})
_STANDING = frozenset({"shard", "rows_kept", "keys_kept", "groups", "frontier_us"})  # states, not counts


@dataclass(frozen=True)
class Tally:
    """Counts of one query since its start, by rule, and the last state of each of its shards.

    `output` names the query, `unit` is the name of the count of results, `irregular` the names of further counts.
    """

    output: str
    unit: str
    irregular: Collection[str]
    by_rule: Mapping[str, Counter[str]] = field(default_factory=dict)
    shards: Mapping[int, dict[str, Any]] = field(default_factory=dict)
    batches: int = 0
    batch_s: float | None = None
    damaged_files: int = 0

    def after(self, counts: Sequence[dict[str, Any]], seconds: float) -> "Tally":
        """The tally after a batch with these counts of shards or groups."""
        by_rule = dict(self.by_rule)
        for one in counts:
            by_rule[one["rule"]] = by_rule.get(one["rule"], Counter()) + total([one])
        shards = {**self.shards, **{one["shard"]: one for one in counts}}
        return replace(self, by_rule=by_rule, shards=shards, batches=self.batches + 1, batch_s=seconds)

    def restarted(self, rules: Collection[str]) -> "Tally":
        """The tally before a query of these rules restarts: shard states are unknown, counts of other rules are summed."""
        by_rule = {rule: self.by_rule.get(rule, Counter()) for rule in rules}
        gone = [counts for rule, counts in self.by_rule.items() if rule not in by_rule]
        if gone:
            by_rule[GONE] = sum(gone, Counter())
        return replace(self, by_rule=by_rule, shards={})

    def total(self) -> Counter[str]:
        """Sum of the counts of all rules."""
        return sum(self.by_rule.values(), Counter())

    def silent(self) -> dict[str, set[str]]:
        """Silent gateways, which no result waits for any longer, by rule."""
        gateways: dict[str, set[str]] = {}
        for one in self.shards.values():
            gateways.setdefault(one["rule"], set()).update(one.get("silent", ()))
        return gateways

    def rows_kept(self) -> Counter[str]:
        """Rows kept in the state, by rule."""
        kept: Counter[str] = Counter()
        for one in self.shards.values():
            if "rows_kept" in one:
                kept[one["rule"]] += one["rows_kept"]
        return kept

    def streams_us(self) -> dict[tuple[str, str], int]:
        """Frontier by rule and stream, us since 1970 UTC: the minimum over the shards."""
        frontiers: dict[tuple[str, str], int] = {}
        for one in self.shards.values():
            for stream, us in one.get("streams_us", {}).items():
                name = one["rule"], stream
                frontiers[name] = min(us, frontiers.get(name, us))
        return frontiers


def total(counts: Iterable[Mapping[str, Any]]) -> Counter[str]:
    """Sum of the counts of shards or groups, without their states."""
    summed: Counter[str] = Counter()
    for one in counts:
        summed.update({name: x for name, x in one.items() if isinstance(x, int) and name not in _STANDING})
    return summed


def metrics(tallies: Sequence[Tally], now_us: int) -> Iterator[Metric]:
    """Yield all metrics of a job whose queries have these tallies; an unknown value has no sample."""
    name = "whenabouts_job_{}".format
    for count, about in (
        ("readings", "Readings processed, by rule."),
        ("repeats", "Readings that had been processed before, by rule."),
        ("late", "Readings that arrived below their stream's frontier, by rule."),
        ("side_output", "Readings written to the side output, by rule."),
    ):
        yield counter(name(count), about, _by_rule(tallies, {count}), ("rule",))
    yield counter(name("retracted"), "Results that were retracted, by rule.", _by_rule(tallies, RETRACTED), ("rule",))
    results: dict[Labels, float] = {
        (rule, tally.unit): counts[tally.unit] for tally in tallies for rule, counts in tally.by_rule.items()
    }
    yield counter(name("results"), "Results, by rule and kind.", results, ("rule", "kind"))
    irregular: dict[Labels, float] = {
        (rule, kind): counts[kind]
        for tally in tallies
        for rule, counts in tally.by_rule.items()
        for kind in sorted({*tally.irregular} - RETRACTED - {"late", "side_output"})
    }
    yield counter(name("irregular"), "Irregular readings and results, by rule and kind.", irregular,
                  ("rule", "kind"))  # fmt: skip
    kept: dict[Labels, float] = {(rule,): rows for tally in tallies for rule, rows in tally.rows_kept().items()}
    yield gauge(name("rows_kept"), "Rows in the state, by rule.", kept, ("rule",))
    silent: dict[Labels, float] = {(rule,): len(who) for tally in tallies for rule, who in tally.silent().items()}
    yield gauge(name("silent_gateways"), "Silent gateways, no longer waited for, by rule.", silent, ("rule",))
    yield gauge(name("lag_seconds"), "Current time minus the frontier of a stream.",
                _lags(tallies, now_us), ("rule", "stream"))  # fmt: skip
    batches: dict[Labels, float] = {(tally.output,): tally.batches for tally in tallies}
    yield counter(name("batches"), "Micro-batches done, by output folder.", batches, ("output",))
    damaged: dict[Labels, float] = {(tally.output,): tally.damaged_files for tally in tallies}
    yield counter(name("damaged_files"), "Damaged files of the landing that are left out, by output folder.", damaged,
                  ("output",))  # fmt: skip
    seconds: dict[Labels, float] = {(one.output,): one.batch_s for one in tallies if one.batch_s is not None}
    yield gauge(name("batch_seconds"), "Duration of the last micro-batch, by output folder.", seconds, ("output",))


def delivery_metrics(delivered: Mapping[str, Sequence[Progress]], now_us: int) -> Iterator[Metric]:
    """Yield the metrics of the deliveries of each output folder."""
    all_of = [(output, one) for output, several in delivered.items() for one in several]
    values: dict[tuple[str, str], Callable[[Progress], float]] = {
        ("delivered_batches", "Batches delivered"): lambda one: one.batches,
        ("delivered_results", "Results sent with delivered batches"): lambda one: one.results,
        ("delivery_failures", "Attempts to deliver a batch that failed"): lambda one: one.failures,
        ("delivery_waiting", "Published batches that are not delivered"): lambda one: one.waiting,
        ("delivery_lag_seconds", "Age of the oldest of them"): lambda one: one.lag_s(now_us / 1e6),
    }
    for (name, about), value in values.items():
        make = gauge if name in _STATES_OF_DELIVERY else counter
        samples: dict[Labels, float] = {(output, one.target): value(one) for output, one in all_of}
        yield make(f"whenabouts_job_{name}", f"{about}, by output folder and target.", samples, ("output", "target"))


def _by_rule(tallies: Sequence[Tally], names: Collection[str]) -> dict[Labels, float]:
    return {(rule,): sum(counts[name] for name in names) for tally in tallies for rule, counts in tally.by_rule.items()}


def _lags(tallies: Sequence[Tally], now_us: int) -> dict[Labels, float]:
    frontiers_us = [item for tally in tallies for item in tally.streams_us().items()]
    behind = sorted(frontiers_us, key=lambda item: item[1])[:MOST_STREAMS]
    return {names: (now_us - us) / 1e6 for names, us in behind}
