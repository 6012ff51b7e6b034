"""Progress of long work on stderr: on a terminal a bar with rate and remaining time, otherwise a line every EVERY_S."""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import click

EVERY_S = 10.0  # between two lines where there is no terminal

Advance = Callable[[int], None]
"""Called with the amount done since the previous call."""


@contextlib.contextmanager
def progress(
    label: str, total: int, unit: str, clock: Callable[[], float] = time.monotonic, stream: Any = None
) -> Iterator[Advance]:
    """Report the progress of work of `total` units, such as readings; `stream` is stderr if not given."""
    out = sys.stderr if stream is None else stream
    if not out.isatty():
        with progress_lines(label, total, unit, lambda text: click.echo(text, file=out), clock) as advance:
            yield advance
        return
    pace = _Pace(label, total, unit, clock)
    bar: Any
    with click.progressbar(
        length=total, label=label, file=out, show_pos=True, show_eta=True, item_show_func=lambda _: pace.rate()
    ) as bar:

        def forward(count: int) -> None:
            pace.add(count)
            bar.update(count)

        yield forward


@contextlib.contextmanager
def progress_lines(
    label: str, total: int, unit: str, say: Callable[[str], None], clock: Callable[[], float] = time.monotonic
) -> Iterator[Advance]:
    """Report progress as `progress` does, without a terminal: as lines, each given to `say`."""
    pace = _Pace(label, total, unit, clock)

    def report(count: int) -> None:
        pace.add(count)
        if pace.due():
            say(pace.line())

    yield report


class _Pace:
    """Amount done, rate, and remaining time at that rate."""

    def __init__(self, label: str, total: int, unit: str, clock: Callable[[], float]) -> None:
        self._label, self._total, self._unit, self._clock = label, total, unit, clock
        self._begun_s = self._reported_s = clock()
        self._done = 0

    def add(self, count: int) -> None:
        self._done += count

    def due(self) -> bool:
        """True if the last line is EVERY_S old. Finished work needs no line, as its result follows."""
        now_s = self._clock()
        if self._done >= self._total or now_s - self._reported_s < EVERY_S:
            return False
        self._reported_s = now_s
        return True

    def rate(self) -> str:
        rate = self._done / max(self._clock() - self._begun_s, 1e-3)
        return (
            f"{rate:,.0f} {self._unit}/s"
            if rate >= 1
            else f"{1 / rate:,.0f} s each"
            if rate
            else f"no {self._unit} yet"
        )

    def line(self) -> str:
        spent_s = self._clock() - self._begun_s
        text = f"{self._label}: {self._done:,} of {self._total:,} {self._unit}, {self.rate()}"
        left_s = spent_s * (self._total - self._done) / self._done if self._done else None
        return text if left_s is None else f"{text}, {left_s:.0f} s left"
