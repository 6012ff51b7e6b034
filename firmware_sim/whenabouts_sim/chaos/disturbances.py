"""Lets the faults of a schedule happen."""

import contextlib
import sqlite3
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from random import Random

from whenabouts_cloud.landing.layout import numbers_of
from whenabouts_sim.chaos.machine.loop import VirtualLoop
from whenabouts_sim.chaos.machine.process import Machine
from whenabouts_sim.chaos.network.broker_model import Broker
from whenabouts_sim.chaos.parts.gateway_part import Gateway
from whenabouts_sim.chaos.parts.ingest_part import Ingest
from whenabouts_sim.chaos.parts.job_part import Job
from whenabouts_sim.chaos.parts.landing_files import files_of
from whenabouts_sim.chaos.parts.part import Part
from whenabouts_sim.chaos.schedule.fault import (
    ALL_READERS,
    CONNECTION_KINDS,
    FORGOTTEN,
    JOBS,
    MACHINE_KINDS,
    MERGED,
    UPKEEP_KINDS,
    WATERMARKS,
    Fault,
)
from whenabouts_sim.chaos.upkeep import Upkeep

SLOWEST = 40  # times as slow as usual: the network
# The numbers of application and version are there: a file with others is somebody else's, and is not touched.
HEAD_BYTES = 100
SLOWEST_S = 2.0  # that a disk or a thread lets others wait


class Disturbances:
    """parts: by the names that faults use. note: is told what happens. at: calls a function at a time of the schedule.
    is_old: true of a file that did not appear just now.
    """

    def __init__(
        self, parts: Mapping[str, Part], broker: Broker, loop: VirtualLoop, chance: Random, note: Callable[[str], None],
        at: Callable[[int, Callable[[], object]], None], is_old: Callable[[Path], bool],
    ) -> None:  # fmt: skip
        self._parts, self._broker, self._loop, self._chance = parts, broker, loop, chance
        self._note, self._at, self._is_old = note, at, is_old
        self.rotten: dict[Path, bytes] = {}  # files of the landing as they were before a bit changed
        self.upkeep = Upkeep(loop, self.rotten)
        self.rotten_results: dict[Path, bytes] = {}
        # What was in files of the landing that a power cut took though jobs may have read them: their folder was not synced.
        self.vanished: dict[Path, bytes] = {}

    def begin(self, fault: Fault) -> None:
        """Let a fault begin, and end after its time."""
        self._note(str(fault))
        part = self._parts.get(fault.target)
        if fault.kind in MACHINE_KINDS:
            if part is not None:
                self._of_machine(fault, part)
        elif fault.kind == "unplugged":
            if isinstance(part, Gateway):
                lines = list(part.lines.values())
                for line in lines if fault.count == ALL_READERS else [lines[fault.count % len(lines)]]:
                    line.unplug()
                    self._at(fault.end_us, line.plug)
        elif fault.kind == "sites_move":
            self._move_sites(fault)
        elif fault.kind == "landing_rot":
            self._rot_landing(fault)
            self._rot_results(Random(fault.at_us))
        elif fault.kind in UPKEEP_KINDS:
            if isinstance(part, Ingest) and not part.machine.off:
                self._keep_up(fault, part)
        elif fault.kind == FORGOTTEN:
            pass  # the file of gateways has been written without it
        elif fault.kind in CONNECTION_KINDS:
            self._of_connection(fault, part.session if isinstance(part, Ingest) else fault.target)
        else:
            self._of_broker(fault)

    def _of_connection(self, fault: Fault, client: str) -> None:
        broker = self._broker
        if fault.kind == "stall":
            broker.stall(client)
            self._at(fault.end_us, lambda: broker.release(client))
            return
        if fault.kind == "refuses":
            broker.refuses[client] = fault.part
            self._at(fault.end_us, lambda: broker.refuses.pop(client, None))
            return
        broker.cut(client)
        if fault.kind == "unreachable":
            broker.unreachable.add(client)
            self._at(fault.end_us, lambda: broker.unreachable.discard(client))

    def _of_broker(self, fault: Fault) -> None:
        broker = self._broker
        if fault.kind == "slow":
            broker.slow = 1 + SLOWEST * fault.part
            self._at(fault.end_us, lambda: setattr(broker, "slow", 1.0))
        elif fault.kind == "broker_sends_twice":
            broker.twice = fault.part
            self._at(fault.end_us, lambda: setattr(broker, "twice", 0.0))
        else:
            broker.restart("forgets" in fault.kind, fault.kind.endswith("all"))

    def _of_machine(self, fault: Fault, part: Part) -> None:
        disk = part.machine.disk
        if fault.kind == "disk_full":
            disk.full = True
            self._at(fault.end_us, lambda: setattr(disk, "full", False))
            self._at(fault.end_us, part.start)
            return
        if fault.kind.startswith("slow"):
            self._slow(fault, part.machine)
            return
        if fault.kind == "bit_rot":
            self._rot(part, fault)
            return
        if fault.kind == "fails_at_write":
            if part.process is not None:
                part.process.on_write, part.process.writes_left = disk.fail, fault.count
            self._start_later(part, fault)
            return
        if fault.kind == "clock_back":
            part.machine.back_ns = fault.count * 1_000_000
            self._at(fault.end_us, lambda: setattr(part.machine, "back_ns", 0))
            return
        if fault.kind == "sync_fails":
            disk.folders_left = fault.count
            self._start_later(part, fault)
            return
        if fault.kind in ("end", "repair"):
            if isinstance(part, Ingest):
                part.is_checked = fault.kind == "repair"
            part.stop()
            self._start_later(part, fault)
            return
        if fault.kind == "upgrade":
            part.is_next = True
            self._kill(part, fault)
            return
        happens = partial(self._cut_power if fault.kind.startswith("power") else self._kill, part, fault)
        if fault.kind.endswith("write"):
            if part.process is not None:
                part.process.on_write, part.process.writes_left = happens, fault.count
        elif fault.kind.endswith("commit"):
            if isinstance(part, Job):
                part.at_commit = partial(self._lose_commit, happens, fault)
        elif fault.kind == "kill_at_sync":
            if part.process is not None:
                part.process.on_sync, part.process.syncs_left = happens, fault.count
        else:
            happens()

    def _slow(self, fault: Fault, machine: Machine) -> None:
        most_s = SLOWEST_S * fault.part
        if fault.kind == "slow_disk":
            machine.disk_s = most_s
            self._at(fault.end_us, lambda: setattr(machine, "disk_s", machine.usual_disk_s))
        else:
            machine.threads_s = most_s
            self._at(fault.end_us, lambda: setattr(machine, "threads_s", machine.usual_threads_s))

    def _move_sites(self, fault: Fault) -> None:
        ingests = [one for one in self._parts.values() if isinstance(one, Ingest)]
        sites = [one.sites for one in ingests]
        for one, others in zip(ingests, sites[1:] + sites[:1], strict=True):
            one.end()
            one.sites = others
            self._start_later(one, fault)

    def _rot(self, part: Part, fault: Fault) -> None:
        self._kill(part, fault)
        if part.process is not None:
            part.process.bury()
        spool = part.machine.disk.root / "state" / "spool.sqlite"
        journal = spool.with_name(f"{spool.name}-wal")
        if journal.exists() and Random(fault.at_us).random() < 0.5:
            part.machine.disk.rot(journal, self._chance)
        elif spool.exists():
            # An earlier change may have hit it; SQLite's message may then quote what is no text.
            damaged = sqlite3.DatabaseError, UnicodeDecodeError
            with contextlib.suppress(*damaged), contextlib.closing(sqlite3.connect(spool)) as database:
                database.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # as at an orderly end: all is in the one file
            part.machine.disk.rot(spool, self._chance, HEAD_BYTES)

    def _keep_up(self, fault: Fault, ingest: Ingest) -> None:
        job = self._parts[JOBS]
        if fault.kind == "compact":
            self.upkeep.merge(fault, ingest)
        elif isinstance(job, Job):
            count = self.upkeep.retain(fault, ingest, job)
            self._note(
                "hours stay: their files have not been read" if count is None else f"{count} old files are deleted"
            )

    def _rot_landing(self, fault: Fault) -> None:
        ingests = [one for one in self._parts.values() if isinstance(one, Ingest)]
        files = [(one, path) for one in ingests for path in files_of(one.folder)]
        if not files:
            return
        files.sort(key=lambda one: one[1].stat().st_mtime_ns)
        merged = [one for one in files if _is_merged(one[1])]
        watermarks = [one for one in files if one[1].suffix == ".json"][-2:]
        wanted = {MERGED: merged, WATERMARKS: watermarks}.get(fault.count, [])
        is_any = not fault.count and self._chance.random() < 0.5
        # Jobs have not read the newest yet.
        ingest, path = self._chance.choice(files if is_any else wanted or files[-3:])
        self.rotten.setdefault(path, path.read_bytes())
        ingest.machine.disk.rot(path, self._chance)
        ingest.is_damaged = True
        self._note(f"a bit of {path} has changed")

    def _rot_results(self, chance: Random) -> None:
        disk = self._parts[JOBS].machine.disk
        files = [*disk.root.glob("results/*/batch=*/*.parquet"), *disk.root.glob("results/*/_late/batch=*/*.parquet")]
        if not files:
            return
        path = chance.choice(sorted(files))
        self.rotten_results.setdefault(path, path.read_bytes())
        disk.rot(path, chance)
        self._note(f"a bit of {path} has changed")

    def _lose_commit(self, happens: Callable[[], None], fault: Fault) -> None:
        happens()
        if fault.count:
            self._at(0, partial(self._rot_landing, fault))

    def _kill(self, part: Part, fault: Fault) -> None:
        part.end()
        self._note(f"{part.name} is killed")
        self._start_later(part, fault)

    def _cut_power(self, part: Part, fault: Fault) -> None:
        machine = part.machine
        parts = [one for one in self._parts.values() if one.machine is machine]
        for one in parts:
            one.end()
        self._note(f"the power of {machine.name} is cut")
        machine.off = True

        def back() -> None:
            for one in parts:
                if one.process is not None:
                    one.process.bury()
            landed = [path for one in parts if isinstance(one, Ingest) for path in files_of(one.folder)]
            old = {path: self.rotten.get(path) or path.read_bytes() for path in landed if self._is_old(path)}
            machine.disk.cut_power(self._chance)
            self.vanished.update((path, before) for path, before in old.items() if not path.exists())
            for path in landed:
                if not path.exists():
                    self.rotten.pop(path, None)  # another file may get its name
            machine.off, machine.on_ns, machine.runs = False, self._loop.now_ns, machine.runs + 1

        # Not now: the write that the cut interrupts is still on the stack.
        self._loop.call_soon(back, context=self._broker.context)
        for one in parts:
            self._start_later(one, fault)

    def _start_later(self, part: Part, fault: Fault) -> None:
        self._loop.call_later(max(0.001, fault.length_us / 1e6), part.start, context=self._broker.context)


def _is_merged(path: Path) -> bool:
    numbers = numbers_of(path.name)
    return numbers is not None and numbers.first < numbers.last
