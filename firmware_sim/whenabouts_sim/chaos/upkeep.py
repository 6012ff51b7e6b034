"""What an operator runs on a landing now and then: small files are merged, old hours are deleted.

Both are processes of their own on the machine of the ingests, and may be killed before a write.
"""

import contextlib
import os
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

from whenabouts_cloud.landing.compaction import compact
from whenabouts_cloud.landing.layout import HOUR, PART, numbers_of
from whenabouts_cloud.landing.retention import UnknownNeedError, retain
from whenabouts_cloud.landing.store import Store
from whenabouts_sim.chaos.checks.landing.merging import Place, undamaged
from whenabouts_sim.chaos.machine.loop import VirtualLoop
from whenabouts_sim.chaos.machine.process import Process
from whenabouts_sim.chaos.machine.running import Killed
from whenabouts_sim.chaos.parts.ingest_part import Ingest
from whenabouts_sim.chaos.parts.job_part import Job
from whenabouts_sim.chaos.parts.landing_files import FileId, files_of
from whenabouts_sim.chaos.schedule.fault import WHOLE, Fault

GRACE_NS = 2_000_000_000  # in which readers finish with files that were merged


class Upkeep:
    """rotten: files of the landing as they were before a bit of them changed. merged_away: what could be read before files
    were merged, and not afterwards. deleted: what was in files of the hours that were deleted, and when they were written.
    """

    def __init__(self, loop: VirtualLoop, rotten: Mapping[Path, bytes]) -> None:
        self._loop, self._rotten = loop, rotten
        self.merged_away: list[Place] = []
        self.deleted: dict[Path, tuple[bytes, int]] = {}

    def merge(self, fault: Fault, ingest: Ingest) -> None:
        """Merge the files of closed hours of an ingest."""
        process = self._process(fault, ingest)
        before = undamaged(ingest.folder, self._rotten)
        with contextlib.suppress(OSError, Killed):
            process.context.run(lambda: compact(Store.at(ingest.folder), time.time_ns(), GRACE_NS))
        _end(process)
        self.merged_away += sorted(before - undamaged(ingest.folder, self._rotten))

    def retain(self, fault: Fault, ingest: Ingest, job: Job) -> int | None:
        """Delete the hours of an ingest that have ended, if the job has read them. Returns how many files are gone; None if
        the job has not.
        """
        now = datetime.fromtimestamp(time.time_ns() / 1e9, UTC)
        old = [path for path in files_of(ingest.folder) if path.parent.name < f"{HOUR}{now:%Y-%m-%dT%H}"]
        numbers = max((one.last for path in old if (one := numbers_of(path.name))), default=0)
        part = ingest.folder.name if ingest.folder.name.startswith(PART) else ""
        if not job.has_read(FileId(0, numbers, part)):
            return None
        before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in old}
        process = self._process(fault, ingest)
        with contextlib.suppress(OSError, Killed, UnknownNeedError):
            process.context.run(lambda: retain(Store.at(ingest.folder), now + timedelta(hours=1), 0))
        _end(process)
        deleted = {path: one for path, one in before.items() if not path.exists()}
        self.deleted |= deleted
        return len(deleted)

    def bring_back(self) -> None:
        """Put all that was deleted back, as from a copy: what became of it is judged, too."""
        for path, (data, written_ns) in self.deleted.items():
            if not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
                os.utime(path, ns=(written_ns, written_ns))

    def _process(self, fault: Fault, ingest: Ingest) -> Process:
        process = Process("upkeep", ingest.machine, self._loop)
        process.writes_left = None if fault.count == WHOLE else fault.count
        return process


def _end(process: Process) -> None:
    process.kill()
    process.bury()
