"""Metrics of the ingest."""

from collections.abc import Iterator, Mapping

from prometheus_client.core import Metric

from whenabouts_cloud.health.recorder import HealthCounters
from whenabouts_cloud.ingest.ingest_counters import ByGateway, Counters, GatewayCounters
from whenabouts_cloud.metrics_file import counter, gauge

MOST_GATEWAYS = 1000  # that get their own sample: those furthest behind


def metrics(
    counters: Counters, by_gateway: GatewayCounters, dead_letters: Mapping[str, int],
    frontiers_us: Mapping[tuple[str, str], int], now_us: int, qos0_dropped: int, connected: bool,
    certificate_ends_s: float | None = None, health: HealthCounters | None = None,
) -> Iterator[Metric]:  # fmt: skip
    """Yield all metrics; `dead_letters` are counts by reason, `frontiers_us` times by (site, gateway)."""
    name = "whenabouts_ingest_{}".format
    yield gauge(name("connected"), "1 while connected to the broker, else 0.", connected)
    if certificate_ends_s is not None:
        yield gauge(name("certificate_ends_seconds"), "End of the own certificate, since 1970.", certificate_ends_s)
    for field, about in (
        ("messages", "Messages received."),
        ("landed", "Readings landed."),
        ("repeats", "Readings that had landed before."),
        ("conflicts", "Readings with another content under a known identity."),
        ("files", "Files written."),
        ("other_sites", "Messages of sites that this ingest does not land."),
        ("forgotten", "Numbers that gateways no longer keep and that never landed here."),
        ("clocks_ahead", "Gateways whose clock was ahead of this machine's."),
        ("refused", "Readings that gateways had no room for."),
        ("invalid", "Data of readers that no reading could hold."),
        ("dead_dropped", "Dead letters counted but not stored."),
    ):
        yield counter(name(field), about, getattr(counters, field))
    for field, about in (
        ("health_records", "Health records kept."),
        ("health_thinned", "Heartbeats too soon after one that was kept as a health record."),
        ("health_dropped", "Health records beyond a limit."),
        ("health_failed", "Attempts to write health records that failed; they are repeated."),
    ):
        yield counter(name(field), about, getattr(health or HealthCounters(), field))
    labels = ("site", "gateway")
    yield counter(
        name("ahead"), "Readings that begin in the future, written to _ahead.", _samples(by_gateway.ahead), labels
    )
    yield counter(name("over_budget"), "Messages refused because their gateway, or all, used more than they may.",
                  _samples(by_gateway.over_budget), labels)  # fmt: skip
    yield counter(name("qos0_dropped"), "Messages of QoS 0 dropped because the inbox was full.", qos0_dropped)
    by_reason: dict[tuple[str, ...], float] = {(reason,): count for reason, count in sorted(dead_letters.items())}
    yield counter(name("dead_letters"), "Dead letters, by reason.", by_reason, ("reason",))
    yield gauge(name("gateways"), "Gateways with a frontier.", len(frontiers_us))
    behind = sorted(frontiers_us.items(), key=lambda item: item[1])[:MOST_GATEWAYS]
    lags: dict[tuple[str, ...], float] = {origin: (now_us - frontier_us) / 1e6 for origin, frontier_us in behind}
    yield gauge(name("lag_seconds"), "Current time minus a gateway's frontier: before it all readings have landed.", lags,
                labels)  # fmt: skip


def _samples(counts: ByGateway) -> dict[tuple[str, ...], float]:
    return {origin: float(count) for origin, count in counts.counts.items()}
