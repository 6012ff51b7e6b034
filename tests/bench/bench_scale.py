"""Jobs over landings of growing size: seconds, CPU seconds, memory of all processes together, readings a second.

    python tests/bench/bench_scale.py [--sizes 1e6 1e7 1e8] [--engines events pairs] [--folder .bench/scale] [--seed 1]

Each job is `whenabouts-cloud run --once` in a process of its own, as a user starts it: two cores, four shards, results
written and printed (to nowhere). Landings are made once, piece by piece, and used again by later runs: eight gateways, ten
streams, 1024 keys, each key read about once a millisecond, so that a larger landing is a longer time and not a denser one.

events  SEQ(A, B, !C, D, E, F, G) of the paper's Table 1 within 16 ms, a match to about every 140th reading
pairs   A and B of a key within half a millisecond at 80 %, a pair to about every hundredth reading

Memory is the sum of what the processes (command, driver JVM, Python workers) have to themselves and their part of what
they share (Pss), looked at twice a second: shorter peaks are missed. Disk is what Spark keeps beside the landing at most.
CPU seconds miss at most the last half second of each process. Linear means: a reading takes as long in a larger landing.
"""

import argparse
import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
from bench_jobs import BEGIN_US, HOUR, TYPES, UNIT_US, rows, said, write

from whenabouts_cloud.landing.layout import DATA, FRONTIER, Numbers, path_of

ROOT = Path(__file__).resolve().parents[2]
PIECE = 250_000  # readings in a file
KEYS, GATEWAYS = 1024, 8
STREAMS = "".join(f'STREAM {x} FROM "line/{x.lower()}" DELAY 1 min LENGTH 0 us .. 0 us\n' for x in TYPES[:7])
RULES = {
    "events": f"RULE table1 SEQ(A, B, !C, D, E, F, G) WITHIN {16 * UNIT_US} us PER key\n",
    "pairs": f"RULE near CORRELATE A AS a, B AS b WHERE |@a - @b| <= {UNIT_US // 2} us OVER 80 % AND a.key = b.key\n",
}
BESIDE_BYTES = 40  # a reading, of what Spark keeps and of results: more than was measured
SAMPLE_S = 0.5
MOST_GB, MOST_RATIO = 4.0, 1.2


def piece(number: int, seed: int) -> pa.Table:
    """The readings of a file: those of the number-th stretch of time, in its order."""
    rng = np.random.default_rng([seed, number])
    stretch_us = PIECE * UNIT_US // KEYS
    t = BEGIN_US + number * stretch_us + np.sort(rng.integers(0, stretch_us, PIECE))
    row = np.arange(number * PIECE, (number + 1) * PIECE)
    types, key = rng.integers(0, len(TYPES), PIECE), rng.integers(0, KEYS, PIECE)
    gateways, streams = pa.array(gateway_names()), pa.array(stream_names())
    tags = pa.array([f"E2801160600002{n:010X}" for n in range(KEYS)])
    return rows(
        {
            "site": pa.repeat("plant", PIECE), "gateway": gateways.take(pa.array(row % GATEWAYS)), "seq": row // GATEWAYS,
            "stream": streams.take(pa.array(types)), "key": tags.take(pa.array(key)), "t_min": t, "t_max": t,
        }
    )  # fmt: skip


def gateway_names() -> list[str]:
    return [f"gw-{n}" for n in range(GATEWAYS)]


def stream_names() -> list[str]:
    return [f"line/{x.lower()}" for x in TYPES]


def landing_of(folder: Path, readings: int, seed: int) -> Path:
    """Make the landing, or what is missing of it; return its folder."""
    landing = folder / f"landing-{readings}-seed-{seed}"
    pieces = -(-readings // PIECE)
    landing.mkdir(parents=True, exist_ok=True)
    numbers = [Numbers(n, n) for n in range(1, 2 * pieces + 1)]
    missing = [n for n in range(pieces) if not (landing / path_of(DATA, HOUR, numbers[2 * n])).exists()]
    began = time.monotonic()
    for number in missing:
        write(landing, DATA, numbers[2 * number].first, piece(number, seed))
        if number == missing[0]:
            of_one = (landing / path_of(DATA, HOUR, numbers[2 * number])).stat().st_size
            check_room(folder, of_one * len(missing), readings)
    check_room(folder, 0, readings)
    for number in range(pieces):
        if not (landing / path_of(FRONTIER, HOUR, numbers[2 * number + 1])).exists():
            until = BEGIN_US + (number + 1) * PIECE * UNIT_US // KEYS
            write(landing, FRONTIER, numbers[2 * number + 1].first, said(gateway_names(), until, stream_names()))
    size = sum(file.stat().st_size for file in landing.rglob("*.parquet"))
    how = (
        f"{len(missing)} of {pieces} files made in {time.monotonic() - began:.0f} s"
        if missing
        else "made by an earlier run"
    )
    print(f"landing of {pieces * PIECE:.0e} readings: {size / 1e6:.0f} MB, {how}", flush=True)
    return landing


def check_room(folder: Path, unwritten: int, readings: int) -> None:
    """End here if the disk has no room for the rest of a landing, and for what a job keeps beside it."""
    free, needed = shutil.disk_usage(folder).free, unwritten + readings * BESIDE_BYTES
    if needed > free:
        sys.exit(
            f"{folder}: found {free / 1e9:.1f} GB free, expected {needed / 1e9:.1f} GB for {readings:.0e} readings and what "
            "Spark keeps beside them; give another folder (--folder) or smaller landings (--sizes)"
        )


@dataclass
class Watched:
    """What the processes below one have taken so far."""

    peak: dict[str, int] = field(default_factory=dict)  # bytes by kind of process, when all together were most
    disk: int = 0
    cpu_s: dict[tuple[int, float], float] = field(default_factory=dict)

    def look(self, root: psutil.Process, scratch: Path) -> None:
        """Note memory, CPU time and disk of this moment."""
        now: dict[str, int] = {}
        for process in (root, *root.children(recursive=True)):
            try:
                times = process.cpu_times()
                self.cpu_s[process.pid, process.create_time()] = times.user + times.system
                kind = "JVM" if process.name() == "java" else "command" if process == root else "workers"
                now[kind] = now.get(kind, 0) + proportional_bytes(process.pid)
            except (psutil.NoSuchProcess, psutil.ZombieProcess, OSError):
                continue  # has ended
        if sum(now.values()) > sum(self.peak.values()):
            self.peak = now
        self.disk = max(self.disk, sum(sizes(scratch)))


def proportional_bytes(pid: int) -> int:
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    return 0


def sizes(folder: Path) -> Iterator[int]:
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                yield os.stat(os.path.join(place, name)).st_size
            except OSError:
                continue  # Spark has removed it


@dataclass
class Measured:
    """One job."""

    engine: str
    readings: int
    results: int
    wall_s: float
    watched: Watched

    @property
    def cpu_s(self) -> float:
        return sum(self.watched.cpu_s.values())

    @property
    def gb(self) -> float:
        return sum(self.watched.peak.values()) / 1e9

    def row(self) -> str:
        parts = " ".join(f"{name} {size / 1e9:.2f}" for name, size in sorted(self.watched.peak.items()))
        return (
            f"{self.engine:8}{self.readings:9.0e}{self.results / self.readings:9.4f}{self.wall_s:9.1f}{self.cpu_s:9.1f}"
            f"{self.readings / self.wall_s / 1e6:9.2f}{self.gb:8.2f}  {parts}; disk {self.watched.disk / 1e9:.1f}"
        )


def run_job(engine: str, landing: Path, folder: Path, readings: int) -> Measured:
    """Run the job of a rule over a landing, watched; what it leaves is removed."""
    with tempfile.TemporaryDirectory(prefix="run-", dir=folder) as own:
        return watched_job(engine, landing, Path(own), readings)


def watched_job(engine: str, landing: Path, folder: Path, readings: int) -> Measured:
    """Run the job in a child process that writes below the folder."""
    scratch, out = folder / "spark", folder / "out"
    scratch.mkdir()
    rule = folder / f"{engine}.wa"
    rule.write_text(STREAMS + RULES[engine])
    command = [sys.executable, "-m", "whenabouts_cloud.cli", "run", "--once", "--landing", landing, "--rule", rule]
    command += ["--out", out, "--log-format", "json"]
    environment = {**os.environ, "SPARK_LOCAL_DIRS": str(scratch)}
    watched, began = Watched(), time.monotonic()
    with subprocess.Popen(
        [str(one) for one in command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment
    ) as child:
        said_there: list[str] = []
        reader = threading.Thread(target=lambda: said_there.extend(child.stderr or ()))
        reader.start()
        root = psutil.Process(child.pid)
        try:
            while child.poll() is None:
                watched.look(root, scratch)
                time.sleep(SAMPLE_S)
        except BaseException:
            child.terminate()
            raise
        wall_s = time.monotonic() - began
        reader.join()
    if child.returncode:
        sys.exit(f"{engine}, {readings:.0e} readings: ended with {child.returncode}\n" + "".join(said_there[-20:]))
    summary: dict[str, Any] = next(
        one
        for line in reversed(said_there)
        if line.startswith("{") and (one := json.loads(line))["event"] == "job.summary"
    )
    return Measured(engine, readings, summary["results"], wall_s, watched)


def verdicts(measured: list[Measured]) -> None:
    """Hold the measurements against the targets."""
    print(f"\n{'target':60}{'':9}{'measured':>9}")
    for small, large in itertools.pairwise(measured):
        if small.engine == large.engine:
            name = f"{small.engine}: {small.readings:.0e} to {large.readings:.0e}"
            for unit, ratio in (("wall", large.wall_s / small.wall_s), ("CPU", large.cpu_s / small.cpu_s)):
                verdict(f"{name}, {unit} seconds a reading", ratio * small.readings / large.readings, MOST_RATIO)
            verdict(f"{name}, memory", large.gb / small.gb, large.readings / small.readings)
            share = large.results / large.readings / (small.results / small.readings)
            print(f"{f'{name}, results a reading':60}{'':9}{share:9.3f}")
    for one in measured:
        verdict(f"{one.engine}: {one.readings:.0e}, GB of all processes", one.gb, MOST_GB)


def verdict(name: str, value: float, most: float) -> None:
    print(f"{name:60}<= {most:<6g}{value:9.3f}  {'met' if value <= most else 'NOT MET'}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sizes", type=float, nargs="+", default=[1e6, 1e7, 1e8], help="readings of each landing")
    parser.add_argument("--engines", nargs="+", choices=list(RULES), default=list(RULES))
    parser.add_argument("--folder", type=Path, default=ROOT / ".bench" / "scale", help="where landings are kept")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    folder = given.folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["PYTHONPATH"] = os.pathsep.join(
        [str(ROOT / "protocol"), str(ROOT / "cloud"), os.environ.get("PYTHONPATH", "")]
    )
    landings = {int(-(-size // PIECE) * PIECE): Path() for size in sorted(given.sizes)}
    for readings in landings:
        landings[readings] = landing_of(folder, readings, given.seed)
    print(f"\n{'':8}{'readings':>9}{'results':>9}{'wall s':>9}{'CPU s':>9}{'M/s':>9}{'GB':>8}  of these, at the peak")
    measured = []
    for engine in given.engines:
        for readings, landing in landings.items():
            measured.append(run_job(engine, landing, folder, readings))
            print(measured[-1].row(), flush=True)
    verdicts(measured)


if __name__ == "__main__":
    main()
