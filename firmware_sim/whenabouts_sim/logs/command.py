"""`whenabouts-sim logs`: logs of simulated antennas and feeders in the formats that `whenabouts-cloud import` reads."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from whenabouts_sim.logs.antennas import antenna_logs
from whenabouts_sim.logs.feeders import feeder_logs
from whenabouts_sim.stack.sources import new_seed

Command = TypeVar("Command", bound=Callable[..., Any])


@click.group()
def logs() -> None:
    """Write log files of simulated readers, and what truly happened, which no real log contains."""


def _options(command: Command) -> Command:
    """Add the options of every command that writes logs."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print what was written as one JSON object."),
        click.option("--out", required=True, type=click.Path(path_type=Path, file_okay=False),
                     help="New folder of the logs."),
        click.option("--seed", type=click.IntRange(min=0),
                     help="Decides who comes when; chosen and printed if not given."),
    ):  # fmt: skip
        command = option(command)
    return command


@logs.command()
@_options
def antennas(seed: int | None, out: Path, as_json: bool) -> None:
    """Fish at three antennas of a river, as readers of Oregon RFID log them.

    Writes lower.txt, upper.txt, weir.txt, and truth.csv, which gives for each row of a log its origin (a fish, a marker
    tag, noise) and its true time.

    \b
    Example:  whenabouts-sim logs antennas --seed 7 --out river
              whenabouts-cloud import orfid river/*.txt --landing landing
    """
    number = new_seed() if seed is None else seed
    made = antenna_logs(number)
    _write(out, number, made.files, {"rows": made.counts()}, as_json)


@logs.command()
@_options
def feeders(seed: int | None, out: Path, as_json: bool) -> None:
    """Birds at four feeders, as EM4100 loggers write them.

    Writes the logs, the notes of one logger, truth.csv with every visit that truly happened, and clocks.csv with how far
    the clock of each logger is ahead.

    \b
    Example:  whenabouts-sim logs feeders --seed 7 --out feeders
              whenabouts-cloud import feeder feeders/*.TXT --landing landing
    """
    number = new_seed() if seed is None else seed
    made = feeder_logs(number)
    _write(out, number, made.files, {"visits": made.counts()}, as_json)


def _write(
    out: Path, seed: int, files: Mapping[str, bytes], truth: Mapping[str, Mapping[str, int]], as_json: bool
) -> None:
    """Write the files into a new folder and print their sizes.

    Raises:
        click.ClickException: the folder is not empty, or cannot be written.
    """
    try:
        if out.exists() and any(out.iterdir()):
            raise click.ClickException(f"--out: {out} is not empty, expected a new folder")
        out.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (out / name).write_bytes(content)
    except OSError as error:
        raise click.ClickException(f"--out: {error}") from None
    lines = {name: content.count(b"\n") or content.count(b"\r") for name, content in files.items()}
    if as_json:
        click.echo(json.dumps({"seed": seed, "out": str(out), "lines": lines, "truth": truth}))
        return
    click.echo(f"seed {seed}, in {out}; lines:")
    for name, count in lines.items():
        click.echo(f"{count:>6}  {name}")
    for things, counts in truth.items():
        click.echo(f"{things} in truth: {', '.join(f'{count} {what}' for what, count in counts.items())}")
