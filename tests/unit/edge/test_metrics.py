"""The status as Prometheus reads it: every line by the format's grammar, every value by the status it came from."""

import json
import re

from whenabouts_edge.health.metrics import exposition
from whenabouts_edge.health.status import StatusFiles
from whenabouts_edge.readers.thread import ReaderState

STATUS = {
    "running": True,
    "readings": 70,
    "refused": 3,
    "invalid": 2,
    "spool": {"readings": 5, "bytes": 500, "limit_bytes": 1 << 20},
    "broker": {"connected": False, "connections": 2, "resends": 1, "acks_refused": 0, "refused": 4, "oversized": 6,
               "troubles": ["no"], "certificate_end_s": 1_800_000_000},
    "clock": {"state": "bounded", "bound_us": 1_500, "epoch": 0, "undated": 4, "never_dated": 5},
    "presence": {"dock": {"present": 2, "entered": 9, "left": 7, "absent": 0, "untracked": 3, "hurried": 0, "late": 0}},
    "readers": {
        "dock": ReaderState("reading", opened=1, readings=60, counters={
            "ok": 61, "clock_error_us": -2_500_000, "clock_bound_us": 80_000, "clock_steps": 3,
        }).status(),
        'odd"\\\n': ReaderState("lost", "gone", "odd \"words\"", opened=2, restarts=1, readings=10).status(),
    },
}  # fmt: skip
SAMPLE = re.compile(r'([a-z_]+)(?:\{((?:[a-z]+="(?:[^"\\\n]|\\["\\n])*",?)*)\})? (-?[0-9.e+-]+)')


def samples(text: str) -> dict[tuple[str, str], float]:
    """(name, labels) -> value; fails on a line that is neither a sample nor a comment, and on a sample given twice."""
    values = {}
    for line in text.splitlines():
        if not line.startswith(("# HELP ", "# TYPE ")):
            at = SAMPLE.fullmatch(line)
            assert at, line
            key = at[1].removeprefix("whenabouts_edge_"), at[2] or ""
            assert key not in values
            values[key] = float(at[3])
    return values


def test_values_are_those_of_the_status_in_base_units():
    """Microseconds become seconds, truth becomes 1, counts of a reader carry its name."""
    values = samples(exposition(STATUS))
    assert values["running", ""] == 1
    assert values["clock_bound_seconds", ""] == 0.0015
    assert values["readings_total", ""] == 70
    assert (values["clock_undated_readings", ""], values["clock_undated_stored_total", ""]) == (4, 5)
    assert (values["refused_readings_total", ""], values["invalid_readings_total", ""]) == (3, 2)
    assert values["broker_connected", ""] == 0
    counted = ("broker_refused_publications_total", "broker_oversized_messages_total", "broker_troubles")
    assert [values[name, ""] for name in counted] == [4, 6, 1]
    assert values["broker_certificate_end_seconds", ""] == 1_800_000_000
    assert values["reader_reading", 'reader="dock"'] == 1
    assert values["reader_events_total", 'reader="dock",event="ok"'] == 61
    assert values["reader_clock_error_seconds", 'reader="dock"'] == -2.5
    assert values["reader_clock_bound_seconds", 'reader="dock"'] == 0.08
    assert values["reader_events_total", 'reader="dock",event="clock_steps"'] == 3
    assert values["reader_present_tags", 'reader="dock"'] == 2
    assert values["reader_untracked_reads_total", 'reader="dock"'] == 3
    assert values["reader_restarts_total", r'reader="odd\"\\\n"'] == 1


def test_what_is_not_known_has_no_sample():
    """An unknown bound is absent, with its head; so are events of readers that have none."""
    text = exposition({**STATUS, "clock": {**STATUS["clock"], "state": "unbounded", "bound_us": None}, "readers": {},
                       "presence": {}})  # fmt: skip
    assert "clock_bound_seconds" not in text
    assert samples(text)["clock_bounded", ""] == 0
    assert "reader_" not in text


def test_every_family_has_its_head_once_before_its_samples():
    """Counters, and only they, end with _total."""
    text = exposition(STATUS)
    kinds = dict(re.findall(r"^# TYPE (\w+) (\w+)$", text, re.M))
    heads = re.findall(r"^# HELP (\w+) ", text, re.M)
    assert heads == list(kinds)
    assert {name for name, _ in samples(text)} == {name.removeprefix("whenabouts_edge_") for name in kinds}
    assert all((kind == "counter") == name.endswith("_total") for name, kind in kinds.items())
    assert text.endswith("\n")


def test_files_are_replaced_whole_and_a_fault_is_reported_once(tmp_path, caplog):
    """The metrics can be read by another user; a folder that is missing stops neither the status nor the agent."""
    metrics = tmp_path / "node" / "whenabouts.prom"
    report = StatusFiles(str(tmp_path), str(metrics))
    report.write(STATUS)
    report.write(STATUS)
    assert [(one.event, one.fields["file"]) for one in caplog.records] == [("status.unwritable", metrics)]
    assert json.loads((tmp_path / "status.json").read_text())["readings"] == 70
    metrics.parent.mkdir()
    report.write(STATUS)
    assert metrics.read_text() == exposition(STATUS)
    assert metrics.stat().st_mode & 0o777 == 0o644
    assert [p.name for p in metrics.parent.iterdir()] == ["whenabouts.prom"]


def test_without_a_metrics_file_only_the_status_is_written(tmp_path):
    """No metrics are written unless configured."""
    StatusFiles(str(tmp_path), None).write(STATUS)
    assert [p.name for p in tmp_path.iterdir()] == ["status.json"]
