"""Writers that are killed: run as `python -m support.cloud.ingest_writer LANDING ROUNDS SEED`.

Each round forks a process that lands batches in a loop and sends after each flush the highest acknowledged number, in eight
bytes over a pipe; after some flushes it is killed at a random moment. The last line on stdout is the highest number that was
ever acknowledged. Forking spares each round the second that the imports take.
"""

import itertools
import os
import random
import signal
import struct
import sys
import time
from pathlib import Path

from support.cloud.ingest import at, batch
from whenabouts_cloud.ingest import landing_writer as landing_module
from whenabouts_cloud.ingest.bridge import Bridge
from whenabouts_cloud.ingest.landing_writer import Landing

GATEWAY = "g1"


def write_for_ever(folder: Path, pipe: int) -> None:
    """Go on after the readings that have landed, with three overlapping batches per flush."""
    landing_module.SNAPSHOT_EVERY = 3
    bridge = Bridge(Landing(folder))
    bridge.take(at(GATEWAY), batch(GATEWAY, 0, 0, 5), None)  # begins with a repeat, except the first time
    reached = max((reach for ack in bridge.flush().acks for reach in ack.landed.values()), default=-1)
    for first in itertools.count(max(reached + 1, 0), 15):
        for offset in (0, 5, 9):
            bridge.take(at(GATEWAY), batch(GATEWAY, 0, first + offset, 6), None)
        bridge.take("no/topic", b"?" * 100, None)
        for ack in bridge.flush().acks:
            os.write(pipe, struct.pack(">q", ack.landed[0]))


def main() -> None:
    """Run the rounds."""
    folder, rounds, chance = Path(sys.argv[1]), int(sys.argv[2]), random.Random(int(sys.argv[3]))
    acknowledged = -1
    landing_module.to_table([], 0)  # pyarrow loads pandas with its first array: here, and not in every round
    for _ in range(rounds):
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            try:
                write_for_ever(folder, writer)
            finally:
                os._exit(1)  # only reached by an error, which the parent sees in the exit status
        os.close(writer)
        for _ in range(chance.randint(0, 6)):
            acknowledged = max([acknowledged, *struct.unpack(">q", os.read(reader, 8).rjust(8, b"\xff"))])
        time.sleep(chance.uniform(0, 0.012))  # any moment inside the next flush
        os.kill(child, signal.SIGKILL)
        if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != -signal.SIGKILL:
            sys.exit("the writer ended by itself")
        for piece in iter(lambda: os.read(reader, 8), b""):  # noqa: B023  # read before the next round
            acknowledged = max(acknowledged, *struct.unpack(">q", piece))
        os.close(reader)
    print(acknowledged)


if __name__ == "__main__":
    main()
