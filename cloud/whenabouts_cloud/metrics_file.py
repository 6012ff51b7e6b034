"""A file of metrics in Prometheus' text format, for the node exporter's textfile collector.

Base units; names have the program's prefix; counters end with _total and restart from zero with each start of the
program.
"""

from collections.abc import Iterable
from pathlib import Path

from prometheus_client import CollectorRegistry, write_to_textfile
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from whenabouts_protocol.logs import Log

log = Log(__name__)

Labels = tuple[str, ...]


class MetricsFile:
    """Replaced as a whole, so that readers see the old or the new file. A failed write is logged once, not raised."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._failed = False

    def write(self, families: Iterable[Metric]) -> None:
        """Write these metrics; blocks for as long as the disk does."""
        registry = CollectorRegistry(auto_describe=False)
        registry.register(_Fixed(list(families)))
        try:
            write_to_textfile(str(self._path), registry)
        except OSError as error:
            if not self._failed:
                text = "check that its folder exists, is writable and has space"
                log.error("metrics.unwritable", text, file=self._path, error=error)
            self._failed = True
        else:
            self._failed = False


def counter(name: str, about: str, values: dict[Labels, float] | float, labels: Labels = ()) -> Metric:
    """A number that only grows: one value, or one for each tuple of label values."""
    return _filled(CounterMetricFamily(name, about, labels=labels), values)


def gauge(name: str, about: str, values: dict[Labels, float] | float, labels: Labels = ()) -> Metric:
    """A current value: one value, or one for each tuple of label values."""
    return _filled(GaugeMetricFamily(name, about, labels=labels), values)


def _filled(family: CounterMetricFamily | GaugeMetricFamily, values: dict[Labels, float] | float) -> Metric:
    for labels, value in (values if isinstance(values, dict) else {(): values}).items():
        family.add_metric(list(labels), value)
    return family


class _Fixed(Collector):
    def __init__(self, families: list[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families
