"""Run as a program: works with a spool on a watched disk and prints, one JSON object a line, the calls of the disk and the
results of the spool. Arguments: spool file, seed, how ("whole", "careless": without FULL syncs, "refusing": the disk refuses
one stretch of calls a round)."""

import json
import random
import sqlite3
import sys
from pathlib import Path

from support.edge.pending import pending, several
from whenabouts_edge.readers.pending import PendingReading
from whenabouts_edge.store.spool import Spool, SpoolError, SpoolFull
from whenabouts_sim.chaos.machine.sqlite_files import SQLITE_FULL, SQLITE_OK, WatchedFiles

IO_ERRORS = (SQLITE_FULL, 10 | 3 << 8, 10 | 4 << 8)  # full; SQLITE_IOERR_WRITE, SQLITE_IOERR_FSYNC


def say(**what: object) -> None:
    print(json.dumps(what), flush=True)


def observed(key: str, n: int) -> PendingReading:
    one = pending(key, 0, 9, clock_state="unbounded", window=(n, n + 5))
    one.attrs = {"n": n}
    return one


def session(spool: Spool, chance: random.Random) -> None:
    """Appends and deletions; results are printed after each, deletions also before they begin."""
    waiting: list[PendingReading] = []
    for n in range(12):
        if chance.random() < 0.5:
            some = [observed(f"late {spool.boot}-{n}-{i}", n) for i in range(chance.randint(1, 3))]
            spool.waiting.numbered(some)
            waiting += some
            if chance.random() < 0.8:  # else they are stored before their rows are written
                try:
                    spool.waiting.write(waiting)
                except sqlite3.OperationalError:
                    say(unkept=[one.key for one in some])
                else:
                    say(kept=[one.key for one in waiting])
        if waiting and chance.random() < 0.5:
            try:
                message = spool.append(waiting[:2])
            except SpoolFull:
                say(refused=[one.key for one in waiting[:2]])
            else:
                say(stored=[message.boot, message.first_seq, message.last_seq], payload=message.payload.hex())
                del waiting[:2]
        keys = [f"{spool.boot}-{n}-{i}" for i in range(chance.randint(1, 4))]
        size = chance.choice([0, 10, 700, 3000])
        try:
            message = spool.append(several(keys, size))
        except SpoolFull:
            say(refused=keys)
            continue
        say(stored=[message.boot, message.first_seq, message.last_seq], payload=message.payload.hex())
        if chance.random() < 0.3:
            upto = chance.randint(0, message.last_seq)
            say(landing=[spool.boot, upto])
            try:
                say(landed=spool.landed(spool.boot, upto))
            except SpoolError:
                say(landed=None)


def main() -> None:
    """Three sessions, each a boot; the journal is moved into the database every few commits, not every thousand pages."""
    path, seed, how = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    chance = random.Random(seed)
    disk = WatchedFiles(
        lambda path: True,
        lambda operation, path, at, data: (
            say(disk=operation, file=Path(path).name, at=at, data=data.hex()) if how != "refusing" else None
        ),
    )
    if how == "refusing":
        refuse(disk, path, chance)
        return
    for _ in range(3):
        spool = Spool(path, 1 << 30)
        if how == "careless":
            spool._db.execute("PRAGMA synchronous=NORMAL")
        spool._db.execute(f"PRAGMA wal_autocheckpoint={chance.choice([8, 30, 1000])}")
        say(boot=spool.boot)
        session(spool, chance)
        spool.close()


def refuse(disk: WatchedFiles, path: Path, chance: random.Random) -> None:
    """Rounds, each on its own spool; in round n one or some calls from the n-th on fail, then the disk works again."""
    for n in range(60):
        calls, stretch, code = 0, chance.choice([1, 1, 3, 10]), chance.choice(IO_ERRORS)

        def answer(_operation: str, _path: str, n: int = n, stretch: int = stretch, code: int = code) -> int:
            nonlocal calls
            calls += 1
            return code if n < calls <= n + stretch else SQLITE_OK

        spool = Spool(path.with_name(f"{n}.sqlite"), 1 << 30)
        say(round=n, boot=spool.boot)
        disk.refuse = answer
        session(spool, chance)
        disk.refuse = lambda _operation, _path: SQLITE_OK
        spool.append(several(["well"]))
        say(next=spool.state.next_seq, readings=spool.state.readings)
        spool.close()


if __name__ == "__main__":
    main()
