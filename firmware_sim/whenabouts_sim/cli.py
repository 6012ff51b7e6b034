"""`whenabouts-sim`: simulated sites."""

import contextlib
import json
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import click

try:
    from whenabouts_edge.trace.format import TraceError
    from whenabouts_sim.boards.command import board
    from whenabouts_sim.broker import BrokerError
    from whenabouts_sim.demo import Demo
    from whenabouts_sim.judgement import flawless, table, together_lines
    from whenabouts_sim.office_run import OfficeRun
    from whenabouts_sim.sources import new_seed
    from whenabouts_sim.stack import PartError
except ModuleNotFoundError as error:  # every extra brings this command along, but not what it needs
    raise SystemExit(
        f"whenabouts-sim: package {error.name} is missing; install the extra: pip install 'whenabouts[sim]'"
    ) from None

T = TypeVar("T")


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="whenabouts")
def main() -> None:
    """Simulated sites: tags, readers, wrong clocks, and what truly happened."""


main.add_command(board)


@main.command()
@click.option(
    "--seed", type=click.IntRange(min=0), help="Decides world, clocks and faults; chosen and printed if not given."
)
@click.option(
    "--speed", default=1.0, show_default=True, type=click.FloatRange(0.1, 20), help="Speed of simulated time."
)
@click.option(
    "--trace", type=click.Path(path_type=Path), help="Replay this serial capture (or folder of captures) instead."
)
@click.option(
    "--keep",
    type=click.Path(path_type=Path, file_okay=False),
    help="Keep landing, results and logs in this new folder.",
)
@click.option("--json", "as_json", is_flag=True, help="Print only the judgement, as one JSON object.")
def demo(seed: int | None, speed: float, trace: Path | None, keep: Path | None, as_json: bool) -> None:
    """Run two sites through agents, broker, ingest and Spark, and judge the result against the truth.

    \b
    Example:  whenabouts-sim demo --seed 7
              whenabouts-sim demo --trace capture.jsonl --speed 2
    """
    number = new_seed() if seed is None else seed
    judged = _in_folder(keep, lambda folder: Demo(folder, number, speed, trace, as_json).run())
    click.echo(json.dumps(judged.as_dict()) if as_json else table(judged))
    sys.exit(0 if flawless(judged) else 1)


@main.command()
@click.option(
    "--seed", type=click.IntRange(min=0), help="Decides who is where and clocks; chosen and printed if not given."
)
@click.option("--virtual", is_flag=True, help="Without processes and MQTT: many hours in seconds.")
@click.option(
    "--speed", default=1.0, show_default=True, type=click.FloatRange(0.1, 20), help="Speed of simulated time."
)
@click.option(
    "--keep",
    type=click.Path(path_type=Path, file_okay=False),
    help="Keep landing, results and logs in this new folder.",
)
@click.option(
    "--phones", default=1, show_default=True, type=click.IntRange(1, 14), help="With --virtual: how many phones."
)
@click.option(
    "--hours", default=100, show_default=True, type=click.IntRange(1, 10_000), help="With --virtual: for how long."
)
@click.option(
    "--clock-error",
    default=5.0,
    show_default=True,
    type=click.FloatRange(0, 3600),
    help="With --virtual: how wrong clocks may be, in seconds.",
)
@click.option("--json", "as_json", is_flag=True, help="Print only the judgement, as one JSON object.")
@click.pass_context
def office(
    context: click.Context, seed: int | None, virtual: bool, speed: float, keep: Path | None, phones: int, hours: int,
    clock_error: float, as_json: bool,
) -> None:  # fmt: skip
    """Watch phones, a speaker's tag and a projector: when were all in the meeting room at once?

    Three agents in a group, broker, ingest and the Spark job of a DEFINITELY rule; with --virtual the same workload as
    published in 2011, judged in this process.

    \b
    Example:  whenabouts-sim office --seed 7
              whenabouts-sim office --virtual --phones 7 --clock-error 0.1
    """
    _check_options(context, virtual)
    number = new_seed() if seed is None else seed
    if virtual:
        from whenabouts_sim.office import office_table, run_office

        summary = run_office(number, phones + 2, hours, clock_error)
        click.echo(json.dumps(summary.as_dict()) if as_json else f"seed {number}: {office_table(summary)}")
        sys.exit(0 if summary.sound else 1)
    judged = _in_folder(keep, lambda folder: OfficeRun(folder, number, speed, as_json).run())
    click.echo(json.dumps(judged.as_dict()) if as_json else "\n".join(together_lines("the phone is muted", judged)))
    sys.exit(0 if judged.sound else 1)


def _check_options(context: click.Context, virtual: bool) -> None:
    """Refuse what the chosen way to run does not look at."""
    others = ("speed", "keep") if virtual else ("phones", "hours", "clock_error")
    for name in others:
        if context.get_parameter_source(name) is not click.core.ParameterSource.DEFAULT:
            option = f"--{name.replace('_', '-')}"
            raise click.UsageError(f"{option}: belongs to a run {'without' if virtual else 'with'} --virtual")


def _in_folder(keep: Path | None, run: Callable[[Path], T]) -> T:
    """Run in a folder; what ends it is told to a person."""
    if keep is not None and keep.exists() and any(keep.iterdir()):
        raise click.UsageError(f"--keep: {keep} is not empty, expected a new folder")
    for number in (signal.SIGINT, signal.SIGTERM):  # SIGINT too: a shell starts background jobs with it ignored
        signal.signal(number, signal.default_int_handler)
    with _folder(keep) as folder:
        try:
            return run(folder)
        except KeyboardInterrupt:
            click.echo("\nstopped; every process has ended", err=True)
            sys.exit(130)
        except (PartError, BrokerError, TraceError, OSError, ValueError) as error:
            raise click.ClickException(str(error)) from None


@contextlib.contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        yield keep.resolve()
        return
    folder = Path(tempfile.mkdtemp(prefix="whenabouts-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
