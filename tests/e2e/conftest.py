"""Fixtures of tests of whole systems: a broker with an ingest, a badge reader on a port, a time server."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.board.site import TimeServer
from support.edge.agent import Bench
from whenabouts_sim.readers.pty_link import PtyLink
from whenabouts_sim.readers.rdm6300 import Rdm6300
from whenabouts_sim.world.world import GATE


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with Bench(tmp_path) as stack:
        yield stack


@pytest.fixture
def gate(bench: Bench) -> Iterator[PtyLink]:
    """A badge reader on a port."""
    with PtyLink(Rdm6300(GATE.name, 1), bench.sim_clock, bench.folder / "ports" / "gate") as link:
        yield link


@pytest.fixture
def ntp(bench: Bench) -> Iterator[TimeServer]:
    with TimeServer(bench.sim_clock) as server:
        yield server
