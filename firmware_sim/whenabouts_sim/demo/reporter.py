"""Progress of a run for people: lines with the seconds since its start, and on a terminal a bar below them during waits."""

import contextlib
import sys
import time
from collections.abc import Iterator

import click
from rich.console import Console
from rich.progress import Progress, ProgressColumn, Task, TextColumn, TimeElapsedColumn
from rich.progress_bar import ProgressBar

WIDTH = 20  # of a bar, in characters


class Reporter:
    """Lines go to stdout, or nowhere when quiet."""

    def __init__(self, quiet: bool) -> None:
        self._began_s, self._quiet = time.monotonic(), quiet
        self._console = Console() if sys.stdout.isatty() and not quiet else None

    def say(self, what: str, text: str) -> None:
        """Print one line; any thread may call this."""
        line = f"{time.monotonic() - self._began_s:5.1f} s  {what:<9} {text}"
        if self._console is not None:
            self._console.print(line, markup=False, highlight=False, soft_wrap=True)
        elif not self._quiet:
            click.echo(line)

    @contextlib.contextmanager
    def waiting(self, text: str, seconds: float | None = None) -> Iterator[None]:
        """Show a bar during a wait: it fills within `seconds`, or moves to and fro if they are not known."""
        if self._console is None:
            yield
            return
        columns = (TextColumn("{task.description}"), _Bar(), TimeElapsedColumn())
        with Progress(*columns, console=self._console, transient=True) as progress:
            progress.add_task(text, total=seconds)
            yield


class _Bar(ProgressColumn):
    """A bar that fills with time."""

    def render(self, task: Task) -> ProgressBar:
        return ProgressBar(
            task.total, task.elapsed or 0.0, width=WIDTH, pulse=task.total is None, animation_time=task.get_time()
        )
