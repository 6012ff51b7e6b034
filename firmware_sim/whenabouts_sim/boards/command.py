"""`whenabouts-sim board`: a simulated board to flash and to watch, with a reader on its UART if wanted."""

import contextlib
import json
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import click

from whenabouts_sim.boards.node_board import HEAP_KB, NodeBoard
from whenabouts_sim.boards.node_vm import NodeMissing
from whenabouts_sim.readers.cards import Id12La, Pn532
from whenabouts_sim.readers.core import ReaderCore
from whenabouts_sim.readers.line import LineSensor
from whenabouts_sim.readers.m6e import M6eNano
from whenabouts_sim.readers.pty_link import PtyLink
from whenabouts_sim.readers.rdm6300 import Rdm6300
from whenabouts_sim.readers.uhf import UhfReader18, Yrm100
from whenabouts_sim.world.clocks import SimClock
from whenabouts_sim.world.world import Sighting

READERS: dict[str, Callable[[str, int], ReaderCore]] = {
    "rdm6300": Rdm6300, "id12la": Id12La, "pn532": Pn532, "m6e": M6eNano, "uhfreader18": UhfReader18, "yrm100": Yrm100,
    "line": LineSensor,
}  # fmt: skip
KEYS = {"rdm6300": "2A00{:06X}", "id12la": "2A00{:06X}", "pn532": "04{:06X}", "line": "probe"}  # else an EPC of 96 bits
EPC = "E20000172211{:012X}"
TAG_US = 1_000_000  # between two tags
AHEAD_TAGS = 60
LOOK_S = 0.5


@click.command()
@click.option(
    "--flash",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder that is the board's flash; a temporary one if not given.",
)
@click.option(
    "--heap-kb", default=HEAP_KB, show_default=True, type=click.IntRange(32, 100_000), help="Memory for Python, in kB."
)
@click.option(
    "--reader",
    type=click.Choice(list(READERS)),
    help="A simulated reader on UART 0 that sees a tag a second; `line` is a sensor that measures as often.",
)
@click.option("--json", "as_json", is_flag=True, help="Print port, flash and reader as one JSON object.")
def board(flash: Path | None, heap_kb: int, reader: str | None, as_json: bool) -> None:
    """Start a board: the real MicroPython, its console on a terminal whose path is printed. Runs until Ctrl-C.

    \b
    Example:  whenabouts-sim board --flash flash --reader rdm6300
              mpremote connect /dev/pts/7
    """
    for number in (signal.SIGINT, signal.SIGTERM):  # SIGINT too: a shell starts background jobs with it ignored
        signal.signal(number, signal.default_int_handler)
    try:
        with tempfile.TemporaryDirectory(prefix="whenabouts-board-") as folder, _tags(reader, Path(folder)) as tags:
            place = flash or Path(folder) / "flash"
            with NodeBoard(place, {} if tags is None else {0: tags.path}, heap_kb) as made:
                _report(made, reader, as_json)
                _watch(made, tags)
    except KeyboardInterrupt:
        click.echo("stopped", err=True)
    except (NodeMissing, OSError) as error:
        raise click.ClickException(str(error)) from None


def _report(made: NodeBoard, reader: str | None, as_json: bool) -> None:
    facts = {"port": made.port, "flash": str(made.flash), "reader": reader}
    if as_json:
        click.echo(json.dumps(facts))
        return
    click.echo(f"board  {made.port}\nflash  {made.flash}")
    if reader is not None:
        click.echo(f"UART 0 {reader}, a {'line' if reader == 'line' else 'tag'} a second")
    click.echo(f"try: mpremote connect {made.port}; Ctrl-C here cuts its power", err=True)


def _watch(made: NodeBoard, tags: "_Tags | None") -> None:
    """Let tags pass until the process of the board ends, which is an error."""
    while not made.wait(LOOK_S):
        if tags is not None:
            tags.pass_by()
    raise click.ClickException(f"board: its process ended by itself; {made.complaint.strip() or 'it printed nothing'}")


class _Tags:
    """A reader behind a terminal, and tags that pass it one after the other."""

    def __init__(self, kind: str, path: Path) -> None:
        self.path = path
        self._kind = kind
        self._clock = SimClock(time.time_ns() // 1000, time.monotonic_ns())
        self._passed = 0
        self._last_us = self._clock.true_us(time.monotonic_ns())
        self.link = PtyLink(READERS[kind](kind, 0), self._clock, path)

    def pass_by(self) -> None:
        """Give the reader more tags if few are left."""
        if self._last_us - self._clock.true_us(time.monotonic_ns()) > AHEAD_TAGS * TAG_US // 2:
            return
        sightings = []
        for _ in range(AHEAD_TAGS):
            self._last_us += TAG_US
            self._passed += 1
            key = KEYS.get(self._kind, EPC).format(self._passed)
            sightings.append(Sighting(self._last_us, self._kind, self._passed, key))
        self.link.go(sightings)
        self.link.emitted.clear()  # nobody judges this run


@contextlib.contextmanager
def _tags(kind: str | None, folder: Path) -> Iterator[_Tags | None]:
    if kind is None:
        yield None
        return
    tags = _Tags(kind, folder / "reader")
    with tags.link:
        yield tags
