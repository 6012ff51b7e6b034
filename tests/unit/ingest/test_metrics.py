"""Metrics of the ingest (`whenabouts_cloud.ingest.metrics`) and the file that holds them
(`whenabouts_cloud.metrics_file`)."""

import re

from whenabouts_cloud.health.recorder import HealthCounters
from whenabouts_cloud.ingest.ingest_counters import Counters, GatewayCounters
from whenabouts_cloud.ingest.metrics import MOST_GATEWAYS, metrics
from whenabouts_cloud.metrics_file import MetricsFile


def written(path, **changes):
    """The lines of samples in a file of these metrics."""
    said = {"dead_letters": {}, "frontiers_us": {}, "now_us": 0, "qos0_dropped": 0, "connected": True} | changes
    by_gateway = GatewayCounters()
    by_gateway.ahead.add(("hall", "g1"), 3)
    by_gateway.over_budget.add(("hall", "g2"), 4)
    MetricsFile(path).write(metrics(Counters(landed=7, invalid=2), by_gateway, **said))
    return [line for line in path.read_text().splitlines() if not line.startswith("#")]


def test_every_counter_of_the_ingest_is_a_metric(tmp_path):
    """Those by reason or by gateway with labels; nothing is left out."""
    lines = written(tmp_path / "m.prom", dead_letters={"undecodable": 3}, frontiers_us={("hall", "g1"): 2_000_000},
                    now_us=5_500_000, qos0_dropped=1, health=HealthCounters(health_thinned=9))  # fmt: skip
    samples = dict(line.rsplit(" ", 1) for line in lines)
    assert samples["whenabouts_ingest_landed_total"] == "7.0"
    assert samples['whenabouts_ingest_ahead_total{gateway="g1",site="hall"}'] == "3.0"
    assert samples['whenabouts_ingest_over_budget_total{gateway="g2",site="hall"}'] == "4.0"
    assert samples["whenabouts_ingest_qos0_dropped_total"] == "1.0"
    assert samples["whenabouts_ingest_health_thinned_total"] == "9.0"
    assert samples['whenabouts_ingest_dead_letters_total{reason="undecodable"}'] == "3.0"
    assert samples['whenabouts_ingest_lag_seconds{gateway="g1",site="hall"}'] == "3.5"
    shown = {re.sub(r"_total|\{.*", "", name).removeprefix("whenabouts_ingest_") for name in samples}
    assert set(HealthCounters.__dataclass_fields__) <= shown
    reported_otherwise = {"dead", "frontiers"}  # as dead_letters by reason, as lag by gateway
    assert set(Counters.__dataclass_fields__) - shown == reported_otherwise


def test_the_end_of_the_own_certificate_is_a_metric(tmp_path):
    """Without a certificate there is no sample."""
    [line] = [line for line in written(tmp_path / "m.prom", certificate_ends_s=1.79e9) if "certificate" in line]
    assert line == "whenabouts_ingest_certificate_ends_seconds 1.79e+09"
    assert not [line for line in written(tmp_path / "m.prom") if "certificate" in line]


def test_only_the_gateways_that_are_furthest_behind_have_a_sample(tmp_path):
    """A thousand gateways more make no larger file; their number is given."""
    frontiers = {("s", f"g{n}"): n for n in range(MOST_GATEWAYS + 5)}
    lines = written(tmp_path / "m.prom", frontiers_us=frontiers)
    lags = [line for line in lines if "lag_seconds" in line]
    assert len(lags) == MOST_GATEWAYS
    assert any('gateway="g0"' in line for line in lags)
    assert not any(f'gateway="g{MOST_GATEWAYS}"' in line for line in lags)
    assert f"whenabouts_ingest_gateways {MOST_GATEWAYS + 5}.0" in lines


def test_a_metrics_file_that_cannot_be_written_is_logged_once(tmp_path, caplog):
    """And again after it could be written in between."""
    file = MetricsFile(tmp_path / "no" / "m.prom")
    for _ in range(2):
        file.write([])
    assert [record.event for record in caplog.records] == ["metrics.unwritable"]
    (tmp_path / "no").mkdir()
    file.write([])
    (tmp_path / "no" / "m.prom").unlink()
    (tmp_path / "no").rmdir()
    file.write([])
    assert [record.event for record in caplog.records] == ["metrics.unwritable"] * 2
