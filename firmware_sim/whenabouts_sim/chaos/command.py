"""`whenabouts-sim chaos`: schedules of the whole system, each decided by one seed."""

import json
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import count, islice
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from whenabouts_sim.chaos.schedule.schedule import Schedule
    from whenabouts_sim.chaos.sums import Result

MOST_AT_ONCE = 8  # schedules that a process is given


@click.command()
@click.option("--seed", type=click.IntRange(min=0), help="The first seed; chosen and printed if not given.")
@click.option("--schedules", type=click.IntRange(min=1), help="How many, with the seeds from --seed on.  [default: 1]")
@click.option("--minutes", type=click.FloatRange(min=0), help="As many as fit into this time, instead of --schedules.")
@click.option("--faults", help="Only these faults of the seed, by their numbers, as 0,3; none: without any.")
@click.option("--readings", type=click.IntRange(min=0), help="Only so many readings of the seed.")
@click.option("--processes", default=1, show_default=True, type=click.IntRange(1, 64), help="Run so many at a time.")
@click.option(
    "--keep",
    type=click.Path(path_type=Path, file_okay=False),
    help="Keep the disks of the last schedule in this new folder.",
)
@click.option("--verbose", is_flag=True, help="Show the time line of schedules that do not fail, too.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def chaos(
    seed: int | None, schedules: int | None, minutes: float | None, faults: str | None, readings: int | None,
    processes: int, keep: Path | None, verbose: bool, as_json: bool,
) -> None:  # fmt: skip
    """Run agents, broker, ingest and jobs in one process, on virtual time, while everything fails that can.

    A seed decides the world, its clocks, and the faults: kills and power cuts at any write, full disks, broken
    connections, a broker that forgets. What must hold is checked at the end of each schedule. The first failure is
    shortened, told, and ends the run with status 1.

    \b
    Example:  whenabouts-sim chaos --seed 1 --schedules 300
              whenabouts-sim chaos --seed 4711 --faults 0,2 --readings 40
    """
    _with_fixed_hashes()
    from whenabouts_sim.chaos.schedule.schedule import draw
    from whenabouts_sim.stack.sources import new_seed

    if keep is not None and keep.exists():
        raise click.UsageError(f"--keep: found that {keep} exists, expected a new folder")
    first = new_seed() if seed is None else seed
    most = schedules if schedules is not None else (None if minutes is not None else 1)
    if faults is not None or readings is not None or keep is not None or verbose:
        if most != 1:
            raise click.UsageError("--faults, --readings, --keep and --verbose are for one schedule")
        whole = draw(first)
        _one(whole.only(_numbers(faults, whole.numbers), readings), keep, verbose, as_json)
        return
    _many(first, most, minutes, processes, as_json)


def _with_fixed_hashes() -> None:
    """Start again with fixed hashes of texts: the order of sets depends on them."""
    if os.environ.get("PYTHONHASHSEED") != "0":
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], {**os.environ, "PYTHONHASHSEED": "0"})


def _numbers(faults: str | None, all_numbers: tuple[int, ...]) -> tuple[int, ...]:
    if faults is None:
        return all_numbers
    try:
        chosen = () if faults == "none" else tuple(int(one) for one in faults.split(","))
    except ValueError:
        chosen = (-1,)
    if set(chosen) - set(all_numbers):
        raise click.UsageError(
            f"--faults: found {faults!r}, expected none, or numbers of its {len(all_numbers)} faults from 0 on, as 0,3"
        )
    return chosen


def _one(schedule: "Schedule", keep: Path | None, verbose: bool, as_json: bool) -> None:
    from whenabouts_sim.chaos.report import lines
    from whenabouts_sim.chaos.schedule_run import run

    outcome = run(schedule, keep)
    if as_json:
        click.echo(json.dumps(outcome.as_dict()))
    elif outcome.broken or verbose:
        click.echo("\n".join(lines(outcome)))
    else:
        click.echo(f"seed {schedule.seed}: all laws hold; {outcome.landed} readings landed, {outcome.told} results")
    sys.exit(1 if outcome.broken else 0)


def _many(first: int, most: int | None, minutes: float | None, processes: int, as_json: bool) -> None:
    from whenabouts_sim.chaos.sums import Figures

    began_s, figures, shown_s = time.monotonic(), Figures(), time.monotonic()
    until_s = None if minutes is None else began_s + 60 * minutes
    for result in _results(islice(count(first), most), processes):
        figures = figures.after(result)
        now_s = time.monotonic()
        if now_s - shown_s >= 2 and not as_json:
            shown_s = now_s
            click.echo(f"{figures.schedules} schedules, {figures.schedules / (now_s - began_s):.1f} a second", err=True)
        if result.broken or (until_s is not None and now_s >= until_s):
            break
    seconds = time.monotonic() - began_s
    if as_json:
        click.echo(json.dumps({"seed": first, "seconds": round(seconds, 1), **figures.as_dict()}))
    else:
        click.echo(f"seeds from {first}: {figures.text(seconds)}")
    if figures.failed is None:
        return
    if not as_json:
        _tell(figures.failed)
    sys.exit(1)


def _tell(seed: int) -> None:
    """Shorten a failed schedule, and tell what happens in it."""
    from whenabouts_sim.chaos.report import lines
    from whenabouts_sim.chaos.schedule.schedule import draw
    from whenabouts_sim.chaos.schedule.shrink import shrunk
    from whenabouts_sim.chaos.schedule_run import run

    click.echo(f"seed {seed} fails; looks for a shorter schedule that does", err=True)
    laws = {one.law for one in run(draw(seed)).broken}
    short = shrunk(draw(seed), lambda one: bool(laws & {two.law for two in run(one).broken}))
    click.echo("\n".join(lines(run(short))))


def _results(seeds: Iterator[int], processes: int) -> "Iterator[Result]":
    from whenabouts_sim.chaos.sums import result_of

    if processes == 1:
        yield from map(result_of, seeds)
        return
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        waiting = [pool.submit(result_of, seed) for seed in islice(seeds, processes * MOST_AT_ONCE)]
        try:
            while waiting:
                result = waiting.pop(0).result()
                waiting += [pool.submit(result_of, seed) for seed in islice(seeds, 1)]
                yield result
        finally:
            pool.shutdown(cancel_futures=True)
