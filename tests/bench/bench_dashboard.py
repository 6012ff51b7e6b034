"""The dashboard over a day of 10^8 readings, and while 10 000 readings a second land. Prints a table; asserts nothing.

    python tests/bench/bench_dashboard.py [--readings 1e8] [--minutes 10] [--folder .bench/dashboard]

day    A landing of 40 readers over 24 hours. Seconds from the start of the command, and from the opening of the page, until
       the timeline is drawn; the same columns counted by DuckDB over the same files; seconds until all is counted.
live   A process lands 10 000 readings a second, four files a second, while Chromium shows them live and a mouse drags and
       wheels. Frames a second and tasks of the page above 50 ms, by the trace that the browser keeps of the last minute.
idle   CPU of the server while nothing lands, without a page and with one.

Memory is the resident set of the server at its peak. Chromium has no GPU here: it draws with the processor that server and
writer use too.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / name) for name in ("protocol", "cloud", "tests")]

from support.browser.look import CHROMIUM, FLAGS  # noqa: E402
from support.browser.served import Served, served  # noqa: E402
from whenabouts_cloud.landing.layout import DATA, Numbers, path_of  # noqa: E402
from whenabouts_cloud.landing.schema import SCHEMA  # noqa: E402

READERS, TAGS = 40, 20_000
FILE_ROWS, GROUP_ROWS = 1_000_000, 131_072
BEGIN = datetime(2026, 11, 20, tzinfo=UTC)
RATE, FILES_S = 10_000, 4
MOST_TASK_MS = 50
DRAWN = "section[data-view=timeline] canvas[data-state=ready]"
MICRO = 1_000_000


def rows(rng: np.random.Generator, t_min: Any, first_seq: int) -> pa.Table:
    """Readings of all readers at these times: widths from 12 ms to 2 s, landed two seconds later."""
    count = len(t_min)
    reader, tag = np.arange(count) % READERS, rng.integers(0, TAGS, count)
    names = {name: pa.nulls(count, SCHEMA.field(name).type) for name in SCHEMA.names}
    gateways = pa.array([f"gw-{n // 2:02d}" for n in range(READERS)])
    streams = pa.array([f"line-{n:02d}/tags" for n in range(READERS)])
    keys = pa.array([f"E2801160600002{n:010X}" for n in range(TAGS)])
    t_max = t_min + 12_000 + (rng.random(count) ** 4 * 2 * MICRO).astype(np.int64)
    names |= {
        "site": pa.repeat(pa.scalar("plant"), count), "gateway": gateways.take(pa.array(reader)),
        "boot": pa.repeat(pa.scalar(1, pa.int64()), count), "seq": pa.array(first_seq + np.arange(count)),
        "stream": streams.take(pa.array(reader)), "kind": pa.repeat(pa.scalar("tag"), count),
        "key": keys.take(pa.array(tag)), "t_min": pa.array(t_min), "t_max": pa.array(t_max),
        "clock_state": pa.repeat(pa.scalar("bounded"), count), "landed_us": pa.array(t_max + 2 * MICRO),
    }  # fmt: skip
    return pa.table([names[name] for name in SCHEMA.names], schema=SCHEMA)


def write(landing: Path, hour: str, numbers: Numbers, table: pa.Table) -> None:
    """A file of readings, which appears whole."""
    target = landing / path_of(DATA, hour, numbers)
    target.parent.mkdir(parents=True, exist_ok=True)
    made = target.with_name(f".{target.name}")
    pq.write_table(table, made, compression="zstd", write_page_checksum=True, row_group_size=GROUP_ROWS)
    os.rename(made, target)


def day(folder: Path, readings: int) -> Path:
    """The landing of a day, made once and used again by later runs."""
    landing, per_hour = folder / f"day-{readings:.0e}", readings // 24
    began, made = time.monotonic(), 0
    for hour in range(24):
        begin_us = int((BEGIN + timedelta(hours=hour)).timestamp()) * MICRO
        times = np.linspace(begin_us, begin_us + 3600 * MICRO, per_hour, endpoint=False).astype(np.int64)
        for first in range(0, per_hour, FILE_ROWS):
            number = hour * 10_000 + first // FILE_ROWS + 1
            name = f"{BEGIN + timedelta(hours=hour):%Y-%m-%dT%H}"
            if (landing / path_of(DATA, name, Numbers(number, number))).exists():
                continue
            part = times[first : first + FILE_ROWS]
            write(
                landing,
                name,
                Numbers(number, number),
                rows(np.random.default_rng(number), part, hour * per_hour + first),
            )
            made += len(part)
    size = sum(file.stat().st_size for file in landing.rglob("*.parquet"))
    print(
        f"day of {24 * per_hour:.1e} readings: {size / 1e6:.0f} MB; made {made:.1e} in {time.monotonic() - began:.0f} s"
    )
    return landing


def feed(landing: Path, seconds: float) -> None:
    """Land RATE readings a second in FILES_S files a second; run in a process of its own."""
    rng, count, began, seq, number = np.random.default_rng(1), RATE // FILES_S, time.time(), 0, 0
    while (now := time.time()) < began + seconds:
        t_min = int(now * MICRO) - np.sort(rng.integers(0, MICRO // FILES_S, count))[::-1]
        number += 1
        write(landing, f"{datetime.now(UTC):%Y-%m-%dT%H}", Numbers(number, number), rows(rng, t_min, seq))
        seq += count
        time.sleep(max(0.0, began + number / FILES_S - time.time()))
    print(json.dumps({"readings": seq, "seconds": time.time() - began}))


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield browser
        browser.close()


def cpu_s(server: psutil.Process) -> float:
    times = server.cpu_times()
    return times.user + times.system


def peak_mb(server: psutil.Process) -> float:
    line = next(x for x in Path(f"/proc/{server.pid}/status").read_text().splitlines() if x.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def told(what: str, found: float, unit: str, limit: str = "") -> None:
    print(f"{what:64}{found:10.2f} {unit:6}{limit}", flush=True)


def measure_day(landing: Path, folder: Path, browser: Browser) -> None:
    """Opening, counting, zooming."""
    print("\nday")
    began = time.monotonic()
    with served(landing, folder) as dashboard:
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        opened = time.monotonic()
        page.goto(f"{dashboard.url}#timeline")
        page.wait_for_selector(DRAWN, timeout=60_000)
        told("page opened to timeline drawn, server just started", time.monotonic() - opened, "s", "at most 2")
        told("command started to timeline drawn", time.monotonic() - began, "s")
        while not dashboard.get("/api/overview").json["exact"]:
            time.sleep(0.2)
        told("command started to all readings counted", time.monotonic() - began, "s")
        page.reload()
        reloaded = time.monotonic()
        page.wait_for_selector(DRAWN, timeout=60_000)
        told("page opened again to timeline drawn", time.monotonic() - reloaded, "s")
        query = "/api/timeline?" + "&".join(
            f"{name}={value}" for name, value in (("from", us(0)), ("to", us(24)), ("px", 1000), ("limit", READERS))
        )
        ours = min(seconds_of(lambda: dashboard.get(query)) for _ in range(3))
        theirs = seconds_of(lambda: counted_by_duckdb(landing))
        told("counts of 1000 columns for 40 readers, from the dashboard", ours, "s")
        told("  the same by DuckDB over the same files", theirs, "s", f"{theirs / ours:.0f} times as long")
        told("memory of the server at its peak", peak_mb(process_of(dashboard)), "MB", "at most 300")
        page.close()


def us(hour: float) -> int:
    return int((BEGIN + timedelta(hours=hour)).timestamp() * MICRO)


def seconds_of(call: Any) -> float:
    began = time.monotonic()
    call()
    return time.monotonic() - began


def counted_by_duckdb(landing: Path) -> int:
    """Readings a column and reader, from the files."""
    import duckdb

    column = (us(24) - us(0)) // 1000
    text = f"""SELECT site, gateway, stream, (t_min // 2 + t_max // 2 - {us(0)}) // {column} AS p, count(*)
        FROM read_parquet('{landing}/hour=*/*.parquet') GROUP BY ALL"""
    return len(duckdb.sql(text).fetchall())


def process_of(dashboard: Served) -> psutil.Process:
    assert dashboard.process is not None
    return psutil.Process(dashboard.process.pid)


def measure_live(folder: Path, browser: Browser, minutes: float) -> None:
    """Frames and long tasks while readings land and the mouse moves."""
    print(f"\nlive: {RATE} readings a second for {minutes:g} minutes")
    landing = folder / f"live-{int(time.time())}"
    landing.mkdir(parents=True)
    feeder = subprocess.Popen(
        [sys.executable, __file__, "--feed", str(landing), "--minutes", str(minutes)], stdout=subprocess.PIPE, text=True
    )
    with served(landing, folder) as dashboard:
        server = process_of(dashboard)
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.goto(f"{dashboard.url}#timeline?live=1&span={60 * MICRO}")
        page.wait_for_selector(DRAWN, timeout=60_000)
        began, spent = time.monotonic(), cpu_s(server)
        last_s = min(60.0, minutes * 60 / 2)
        pan(page, minutes * 60 - last_s - 5)
        frames, tasks = traced(browser, page, last_s)
        told("CPU of the server while readings land", 100 * (cpu_s(server) - spent) / (time.monotonic() - began), "%")
        told("frames a second while panning", frames, "", "at least 50, or no long task")
        told(
            f"tasks of the page above {MOST_TASK_MS} ms in {last_s:g} s", sum(x > MOST_TASK_MS for x in tasks), "", "0"
        )
        told("  longest task", max(tasks, default=0.0), "ms")
        written = json.loads(feeder.communicate()[0])
        told("readings landed a second", written["readings"] / written["seconds"], "")
        while (seen := dashboard.get("/api/overview").json)["readings"] < written["readings"] or not seen["exact"]:
            time.sleep(0.1)
        told("memory of the server at its peak", peak_mb(server), "MB", "at most 300")
        page.close()
        time.sleep(3)
        measure_idle(dashboard, browser)


def pan(page: Page, seconds: float) -> None:
    """Drag there and back, and wheel, until the time is over."""
    box = page.locator("section[data-view=timeline] canvas").bounding_box()
    assert box is not None
    x, y, step = box["x"] + box["width"] * 0.6, box["y"] + box["height"] / 2, 0
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        page.mouse.move(x, y)
        page.mouse.down()
        for way in (*range(0, 300, 6), *range(300, 0, -6)):
            page.mouse.move(x - way, y)
        page.mouse.up()
        page.mouse.wheel(0, -240 if step % 2 else 240)
        step += 1


def traced(browser: Browser, page: Page, seconds: float) -> tuple[float, list[float]]:
    """Frames a second, and milliseconds of each task of the page's main thread, while panning."""
    browser.start_tracing(
        page=page, categories=["toplevel", "devtools.timeline", "disabled-by-default-devtools.timeline", "cc"]
    )
    count = "() => { window.frames_ = 0; const next = () => { window.frames_ += 1; requestAnimationFrame(next); }; next(); }"
    page.evaluate(count)
    began = time.monotonic()
    pan(page, seconds)
    took = time.monotonic() - began
    frames = page.evaluate("() => window.frames_") / took
    events = json.loads(browser.stop_tracing())["traceEvents"]
    mains = {
        (x["pid"], x["tid"]) for x in events if x["name"] == "thread_name" and x["args"]["name"] == "CrRendererMain"
    }
    tasks = [
        x["dur"] / 1000
        for x in events
        if x.get("ph") == "X"
        and (x["pid"], x["tid"]) in mains
        and x["name"] in ("RunTask", "ThreadControllerImpl::RunTask")
    ]
    return frames, tasks


def measure_idle(dashboard: Served, browser: Browser, seconds: float = 20.0) -> None:
    """CPU of the server when nothing lands."""
    print("\nidle")
    server = process_of(dashboard)
    spent = cpu_s(server)
    time.sleep(seconds)
    told("CPU of the idle server, no page", 100 * (cpu_s(server) - spent) / seconds, "%", "below 10")
    page = browser.new_page()
    page.goto(f"{dashboard.url}#timeline")
    page.wait_for_selector(DRAWN, timeout=60_000)
    time.sleep(2)
    spent = cpu_s(server)
    time.sleep(seconds)
    told("CPU of the idle server, a page open", 100 * (cpu_s(server) - spent) / seconds, "%", "below 10")
    page.close()


def main() -> None:
    """Parse the options, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--readings", type=float, default=1e8)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--folder", type=Path, default=ROOT / ".bench" / "dashboard")
    parser.add_argument("--only", choices=("day", "live"))
    parser.add_argument("--feed", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.feed:
        feed(options.feed, options.minutes * 60)
        return
    options.folder.mkdir(parents=True, exist_ok=True)
    landing = day(options.folder, int(options.readings)) if options.only != "live" else None
    with chromium() as browser:
        if landing is not None:
            measure_day(landing, options.folder, browser)
        if options.only != "day":
            measure_live(options.folder, browser, options.minutes)


if __name__ == "__main__":
    main()
