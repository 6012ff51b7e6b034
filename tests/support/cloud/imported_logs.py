"""Checks of whole log files, of any origin, as the importers read them."""

from collections import Counter
from itertools import pairwise
from pathlib import Path

from support.cloud.feeder_logs import logs
from whenabouts_cloud.importers.feeder import read_feeder
from whenabouts_cloud.importers.orfid import CLOCK_BOUND_US, read_orfid
from whenabouts_cloud.importers.side_output import SideOutput
from whenabouts_protocol import Reading

NOW_US = 1_795_000_000_000_000
UNREFERENCED_US = CLOCK_BOUND_US["U"]


def check_every_row(file: Path, rows: int, unsure: int) -> None:
    """Each of the `rows` rows of an antenna's log is a reading, `unsure` of them by a clock without reference.

    Identities are distinct; the log's order of departures is kept.
    """
    readings = list(read_orfid(file.read_text().split("\n"), file.stem, NOW_US))
    assert len(readings) == rows
    assert all(isinstance(x, Reading) for x in readings)
    assert len({x.identity for x in readings}) == rows
    assert Counter(x.clock_state for x in readings) == Counter({"bounded": rows - unsure, "free-running": unsure})
    ends = [x.t_max for x in readings if x.clock_state == "bounded"]
    assert ends == sorted(ends)


def marker_stamp_errors_s(file: Path, marker: str) -> list[float]:
    """Seconds by which the one row without reference is stamped too late, for a marker that sends every minute.

    Its true time follows from the row before, and from the row after; both must lie in the stamp that the importer gives.
    """
    readings = [x for x in read_orfid(file.read_text().split("\n"), file.stem, NOW_US) if x.key == marker]
    [at] = [n for n, x in enumerate(readings) if x.clock_state != "bounded"]
    row, stamped = readings[at], readings[at].t_min + UNREFERENCED_US
    off = []
    for other in (readings[at - 1], readings[at + 1]):
        minutes = round((stamped - other.t_min) / 60_000_000)
        sent_us = other.t_min + minutes * 60_000_000
        assert row.t_min < sent_us < row.t_max
        off.append(round((stamped - sent_us) / 1e5) / 10)
    return off


def check_feeder_logs(folder: Path) -> tuple[int, Counter[str]]:
    """Every line but the head is a reading or in the side output; gives the number of readings and the other lines' reasons.

    Lines are counted without the importer. Identities are distinct, order is kept.
    """
    identities = set()
    total, side_output = 0, Counter()
    for path in logs(folder):
        text = path.read_bytes().decode()
        lines = text.replace("\r", "\n").split("\n")
        entries = list(read_feeder(text, path.stem, "garden", NOW_US))
        assert len(entries) == sum(bool(line) for line in lines) - 1, path.name
        readings = [x for x in entries if isinstance(x, Reading)]
        assert all(x.key == lines[x.seq - 1][:10] for x in readings)
        assert {x.gateway for x in entries if isinstance(x, Reading)} <= {lines[0]}
        assert all(a.t_min <= b.t_min for a, b in pairwise(readings))
        identities |= {x.identity for x in readings}
        total += len(readings)
        side_output.update(x.reason for x in entries if isinstance(x, SideOutput))
    assert len(identities) == total
    return total, side_output
