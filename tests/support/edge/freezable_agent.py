"""The agent with two faults on request: the spool stands still while a file exists, the loop for a while on SIGUSR1."""

import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from support.waiting import until
from whenabouts_edge import cli
from whenabouts_edge.readers.pending import PendingReading
from whenabouts_edge.store.gaps import Gap
from whenabouts_edge.store.spool import Message, Spool

LOOP_STANDS_S = 4.0
STANDS_S_MAX = 600.0
SPOOL_STANDS, LOOP_STANDS = "the spool stands still", "the loop stands still"  # printed when it does


def freezable(frozen: Path) -> None:
    """Make every transaction wait while the file exists, as on a disk that has stopped answering."""
    began, appended = Spool.can_commit, Spool.append

    def wait() -> None:
        if frozen.exists():
            print(SPOOL_STANDS, file=sys.stderr)
        until(lambda: not frozen.exists(), "the end of the standstill", STANDS_S_MAX)

    def can_commit(self: Spool) -> bool:
        wait()
        return began(self)

    def append(self: Spool, readings: Sequence[PendingReading], gaps: Sequence[Gap]) -> Message:
        wait()
        return appended(self, readings, gaps)

    Spool.can_commit, Spool.append = can_commit, append


def stand_still(*_: object) -> None:
    """Block the thread of the event loop."""
    print(LOOP_STANDS, file=sys.stderr)
    time.sleep(LOOP_STANDS_S)


if __name__ == "__main__":
    freezable(Path(os.environ["FREEZE_SPOOL_FILE"]))
    signal.signal(signal.SIGUSR1, stand_still)
    cli.END_S = float(os.environ.get("END_S", cli.END_S))
    cli.main()
