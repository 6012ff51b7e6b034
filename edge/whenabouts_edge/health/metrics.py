"""The agent's status as metrics in Prometheus' text format, for the node exporter's folder of text files.

Base units; names have the project's prefix; counters end with _total and start at 0 with each start of the agent, like
the counts in its status. An unknown value has no sample: a bound of 0 would be false. Prometheus, exposition formats,
version 0.0.4.
"""

from collections.abc import Iterable, Mapping
from typing import Any

_ESCAPES = {"\\": r"\\", '"': r"\"", "\n": r"\n"}
_NOT_COUNTERS = {"failed", "opened", "opened_ns", "restarts", "readings", "clock_error_us", "clock_bound_us"}

Sample = tuple[Mapping[str, str], float | int | bool | None]


def exposition(status: Mapping[str, Any]) -> str:
    """All metrics of one status; the agent writes them every second."""
    spool, broker, clock, readers = (status[part] for part in ("spool", "broker", "clock", "readers"))
    families = [
        _one("running", "gauge", "1 while the agent runs; 0 after an orderly end.", status["running"]),
        _one("readings_total", "counter", "Readings stored since the agent began.", status["readings"]),
        _one("refused_readings_total", "counter", "Readings refused because the spool was full.", status["refused"]),
        _one("invalid_readings_total", "counter", "Invalid input of readers that no reading can hold.", status["invalid"]),
        _one("spool_readings", "gauge", "Readings that have not landed yet.", spool["readings"]),
        _one("spool_bytes", "gauge", "Size of those readings.", spool["bytes"]),
        _one("spool_limit_bytes", "gauge", "Size above which readings are refused.", spool["limit_bytes"]),
        _one("broker_connected", "gauge", "1 if there is a connection.", broker["connected"]),
        _one("broker_connections_total", "counter", "Connections made.", broker["connections"]),
        _one("broker_resends_total", "counter", "Times that unconfirmed readings were sent again.", broker["resends"]),
        _one("broker_acks_refused_total", "counter", "Invalid acknowledgements.", broker["acks_refused"]),
        _one("broker_refused_publications_total", "counter", "Messages that the broker did not permit.", broker["refused"]),
        _one("broker_oversized_messages_total", "counter", "Messages beyond the limit, not read.", broker["oversized"]),
        _one("broker_troubles", "gauge", "Troubles of the connection that status shows.", len(broker["troubles"])),
        _one("broker_certificate_end_seconds", "gauge", "End of the gateway's certificate, Unix time.",
             broker["certificate_end_s"]),
        _one("clock_bounded", "gauge", "1 if the bound of the clock is known.", clock["state"] == "bounded"),
        _one("clock_bound_seconds", "gauge", "Bound of the clock's error.", _seconds(clock["bound_us"])),
        _one("clock_steps_total", "counter", "Steps of the clock beyond its bound.", clock["epoch"]),
        _one("clock_undated_readings", "gauge", "Readings that wait until the time is known.", clock["undated"]),
        _one("clock_undated_stored_total", "counter", "Readings stored with stamps of unknown time, after too long a wait.",
             clock["never_dated"]),
        _of_readers("reader_reading", "gauge", "1 if the port is open and being read.", readers,
                    lambda reader: reader["state"] == "reading"),
        _of_readers("reader_readings_total", "counter", "Readings of this reader.", readers, lambda r: r["readings"]),
        _of_readers("reader_opened_total", "counter", "Times that its port was opened.", readers, lambda r: r["opened"]),
        _of_readers("reader_restarts_total", "counter", "Number of restarts.", readers, lambda r: r["restarts"]),
        _of_readers("reader_present_tags", "gauge", "Tags that are present.", status["presence"], lambda p: p["present"]),
        _of_readers("reader_entered_tags_total", "counter", "Visits that began.", status["presence"],
                    lambda p: p["entered"]),
        _of_readers("reader_untracked_reads_total", "counter", "Reads of tags beyond those that presence remembers.",
                    status["presence"], lambda p: p["untracked"]),
        _of_readers("reader_clock_error_seconds", "gauge", "How far the reader's own clock is ahead of UTC.", readers,
                    lambda reader: _seconds(reader.get("clock_error_us"))),
        _of_readers("reader_clock_bound_seconds", "gauge", "Bound of that error's error.", readers,
                    lambda reader: _seconds(reader.get("clock_bound_us"))),
        _family("reader_events_total", "counter", "Frames, and damaged frames by fault.", [
            ({"reader": name, "event": event}, count)
            for name, reader in sorted(readers.items())
            for event, count in sorted(reader.items()) if isinstance(count, int) and event not in _NOT_COUNTERS
        ]),
    ]  # fmt: skip
    return "".join(families)


def _one(name: str, kind: str, about: str, value: float | int | bool | None) -> str:
    return _family(name, kind, about, [({}, value)])


def _of_readers(name: str, kind: str, about: str, readers: Mapping[str, Any], value: Any) -> str:
    return _family(name, kind, about, [({"reader": reader}, value(of)) for reader, of in sorted(readers.items())])


def _family(name: str, kind: str, about: str, samples: Iterable[Sample]) -> str:
    full = f"whenabouts_edge_{name}"
    lines = [f"# HELP {full} {about}", f"# TYPE {full} {kind}"]
    lines += [f"{full}{_labels(labels)} {_number(value)}" for labels, value in samples if value is not None]
    return "\n".join(lines) + "\n" if len(lines) > 2 else ""


def _labels(labels: Mapping[str, str]) -> str:
    shown = ",".join(f'{key}="{"".join(_ESCAPES.get(c, c) for c in value)}"' for key, value in labels.items())
    return f"{{{shown}}}" if shown else ""


def _seconds(us: int | None) -> float | None:
    return None if us is None else us / 1e6


def _number(value: float | int | bool) -> str:
    return str(int(value)) if isinstance(value, int) else repr(value)
