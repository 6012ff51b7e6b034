"""A landing of a year at 2 000 readings a second, simulated at a tenth of that rate. Prints a table.

    python tests/bench/bench_year.py [--hours 2] [--folder DIR]

Some hours are written by the ingest's own writer, each flush durable: two files of readings and one of frontiers a second,
20 gateways, 200 readings a second with RSSI and antenna. They are merged by `compact`. Then the first of the merged hours is
linked under the names of 8 760 hours, which takes no space, so everything that depends on the number of hours and files is
measured on a landing as it is after a year: listing, planning, an idle trigger, a run of `compact`, a query, `retain`.

At the whole rate files before merging hold ten times as much, and an hour has four merged files instead of one.
"""

import argparse
import os
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow.compute as pc

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / name) for name in ("protocol", "cloud")]

from whenabouts_cloud.ingest.landing_writer import Landing  # noqa: E402
from whenabouts_cloud.landing.compaction import MARK, compact  # noqa: E402
from whenabouts_cloud.landing.history import History, everything, readings_of  # noqa: E402
from whenabouts_cloud.landing.layout import DATA, FRONTIER, HOUR, Numbers, path_of  # noqa: E402
from whenabouts_cloud.landing.retention import retain  # noqa: E402
from whenabouts_cloud.landing.scan import encoded, read_piece  # noqa: E402
from whenabouts_cloud.landing.schema import STAMPED  # noqa: E402
from whenabouts_cloud.landing.store import Store  # noqa: E402
from whenabouts_protocol import Reading  # noqa: E402

RATE, FLUSH_S, GATEWAYS, TAGS = 200, 0.5, 20, 5000
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
YEAR = 8760
FILES_AN_HOUR = int(3600 / FLUSH_S) + 3600
GRACE_NS = 0


@contextmanager
def timed(what: str, per: str = "", count: int = 1) -> Iterator[None]:
    """Print the seconds of what is done inside, and those of each of `count`."""
    began = time.monotonic()
    yield
    took = time.monotonic() - began
    each = f", {took / count * 1e3:.2f} ms {per}" if per else ""
    print(f"{what:62}{took:9.2f} s{each}", flush=True)


def size_of(folder: Path) -> tuple[int, int]:
    """Number and bytes of the files below."""
    sizes = [path.stat().st_size for path in folder.rglob("part-*")]
    return len(sizes), sum(sizes)


def write_hours(landing: Path, hours: int) -> int:
    """Write these hours and the begin of the next, as an ingest does; returns the number of readings."""
    rng, writer, seq, written = np.random.default_rng(1), Landing(landing), [0] * GATEWAYS, 0
    keys = [f"E2801160600002{n:010X}" for n in range(TAGS)]
    for flush in range(int(hours * 3600 / FLUSH_S) + 1):
        now_us = int((BEGIN + timedelta(seconds=flush * FLUSH_S)).timestamp() * 1e6)
        rows, ranges = [], []
        for gateway in rng.choice(GATEWAYS, 5, replace=False).tolist():  # each sends a batch from time to time
            count = int(RATE * FLUSH_S) // 5
            t = now_us - np.sort(rng.integers(0, 2_000_000, count))[::-1]
            for n, t_min in enumerate(t.tolist()):
                key, rssi, antenna = keys[rng.integers(TAGS)], rng.integers(-700, -300) / 10, int(rng.integers(1, 5))
                one = Reading(
                    site="plant", gateway=f"dock-{gateway}", boot=1, seq=seq[gateway] + n, stream="dock/tags", kind="tag",
                    key=key, value=float(rssi), unit="dB[mW]", attrs={"antenna": antenna}, t_min=t_min, t_max=t_min + 12_000,
                )  # fmt: skip
                rows.append(one)
            ranges.append((f"plant/dock-{gateway}", 1, seq[gateway], seq[gateway] + count - 1))
            seq[gateway] += count
        writer.write(rows, ranges, now_us)
        written += len(rows)
        if flush % 2:
            said = {"site": "plant", "frontier_us": now_us, "streams": ["dock/tags"], "landed_us": now_us}
            writer.write_frontiers([{**said, "gateway": f"dock-{n}"} for n in range(GATEWAYS)])
    writer.close()
    return written


def link_year(landing: Path, year: Path) -> None:
    """Link the merged files of the first hour under the names that a year of hours has; the last hour has one small file."""
    one = {kind: next((landing / kind / f"{HOUR}2026-01-01T00").glob("part-*")) for kind in (DATA, FRONTIER)}
    for n in range(YEAR):
        hour = f"{BEGIN + timedelta(hours=n):%Y-%m-%dT%H}"
        for kind, source in one.items():
            begin = n * FILES_AN_HOUR + 1
            target = year / path_of(kind, hour, Numbers(begin, begin + FILES_AN_HOUR - 1))
            target.parent.mkdir(parents=True, exist_ok=True)
            os.link(source, target)
    last = YEAR * FILES_AN_HOUR + 1
    target = year / path_of(FRONTIER, f"{BEGIN + timedelta(hours=YEAR):%Y-%m-%dT%H}", Numbers(last, last))
    target.parent.mkdir(parents=True)
    os.link(one[FRONTIER], target)


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure_hours(landing: Path, hours: int) -> None:
    """Writing and merging, and the bytes of a reading before and after."""
    with timed(f"write {hours} hours, each file synced", "a file", hours * FILES_AN_HOUR):
        readings = write_hours(landing, hours)
    files, before = size_of(landing)
    with timed(f"compact: {files} files", "an hour", hours):
        done = compact(Store.at(landing), time.time_ns(), GRACE_NS)
    print(f"peak memory of the process so far: {peak_mb():.0f} MB")
    with timed("compact deletes the originals", "an hour", hours):
        compact(Store.at(landing), time.time_ns() + 1, GRACE_NS)
    files, after = size_of(landing)
    each = f"{before / readings:.1f} bytes each before, {after / readings:.1f} after"
    print(f"{readings:,} readings: {each}, in {done.into} merged files")
    a_year = RATE * 3600 * YEAR
    print(f"a year at a tenth: {a_year / 1e9:.1f} billion readings, {a_year * after / readings / 1e9:.0f} GB merged")


def measure_year(year: Path) -> None:
    """What depends on the number of hours and files."""
    store = Store.at(year)
    files, size = size_of(year)
    print(f"\na landing of a year: {YEAR} hours, {files:,} files, {size / 1e9:.0f} GB")
    history = History(store)
    with timed("a query's first trigger lists the whole history"):
        end = history.latest({})
    history.forget(end)
    with timed("an idle trigger, the mean of 1000", "each", 1000):
        for _ in range(1000):
            history.latest(end)
    restarted = History(store)
    with timed("the first trigger after a restart"):
        restarted.latest(end)
    with timed("a batch plans the whole year"):
        pieces = readings_of(everything(store))
    print(f"{len(pieces):,} files to read")
    day = [one for one in pieces if one.hour.startswith("2026-07-01")]
    with timed("a minute of one day: rows by t_min, from files of its hours"):
        low = int(datetime(2026, 1, 1, 0, 30, tzinfo=UTC).timestamp() * 1e6)
        where = (pc.field("t_min") >= low) & (pc.field("t_min") < low + 60_000_000)
        rows = sum(
            read_piece(store, one._replace(after=0, upto=1 << 40), encoded(STAMPED), where).num_rows for one in day
        )
    print(f"{rows:,} readings of {len(day)} hours")
    for what, note in (("without its note", False), ("with its note", True)):
        if not note:
            (year / MARK).unlink(missing_ok=True)
        with timed(f"compact finds nothing to do, {what}"):
            compact(store, time.time_ns() + 1, GRACE_NS)
    with timed("retain --days 30"):
        gone = retain(store, BEGIN + timedelta(hours=YEAR), 30)
    print(f"{len(gone):,} folders deleted, {size_of(year)[0]:,} files left")


def main() -> None:
    """Write, merge, link, measure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--hours", type=int, default=2, help="hours that are really written, 2 by default")
    parser.add_argument("--folder", type=Path, help="where the landings are made, by default a temporary folder")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder, prefix="bench-year-") as name:
        measure_hours(Path(name) / "landing", options.hours)
        (Path(name) / "year").mkdir()
        with timed("link a year of hours"):
            link_year(Path(name) / "landing", Path(name) / "year")
        measure_year(Path(name) / "year")


if __name__ == "__main__":
    main()
