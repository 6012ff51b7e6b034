"""The folder of a run of a command, and what a person is told when the run cannot go on."""

import contextlib
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import click

from whenabouts_edge.trace.format import TraceError
from whenabouts_sim.stack.broker import BrokerError
from whenabouts_sim.stack.stack import PartError

T = TypeVar("T")


def in_folder(keep: Path | None, run: Callable[[Path], T]) -> T:
    """Run in a folder; report errors and Ctrl-C as messages."""
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
