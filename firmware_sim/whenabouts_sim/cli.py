"""`whenabouts-sim`: simulated sites."""

import contextlib
import json
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import click

try:
    from whenabouts_edge.trace.format import TraceError
    from whenabouts_sim.broker import BrokerError
    from whenabouts_sim.demo import Demo
    from whenabouts_sim.judgement import flawless, table
    from whenabouts_sim.sources import new_seed
    from whenabouts_sim.stack import PartError
except ModuleNotFoundError as error:  # every extra brings this command along, but not what it needs
    raise SystemExit(
        f"whenabouts-sim: package {error.name} is missing; install the extra: pip install 'whenabouts[sim]'"
    ) from None


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="whenabouts")
def main() -> None:
    """Simulated sites: tags, readers, wrong clocks, and what truly happened."""


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
    if keep is not None and keep.exists() and any(keep.iterdir()):
        raise click.UsageError(f"--keep: {keep} is not empty, expected a new folder")
    for number in (signal.SIGINT, signal.SIGTERM):  # SIGINT too: a shell starts background jobs with it ignored
        signal.signal(number, signal.default_int_handler)
    with _folder(keep) as folder:
        try:
            judged = Demo(folder, new_seed() if seed is None else seed, speed, trace, as_json).run()
        except KeyboardInterrupt:
            click.echo("\nstopped; every process has ended", err=True)
            sys.exit(130)
        except (PartError, BrokerError, TraceError, OSError, ValueError) as error:
            raise click.ClickException(str(error)) from None
    click.echo(json.dumps(judged.as_dict()) if as_json else table(judged))
    sys.exit(0 if flawless(judged) else 1)


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
