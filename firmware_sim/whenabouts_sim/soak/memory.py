"""Memory of processes over a run: what each part has used, and whether it grows without end."""

import os
from collections.abc import Sequence
from pathlib import Path
from statistics import median

_PAGE_BYTES = os.sysconf("SC_PAGESIZE")
_SESSION, _RSS = 3, 21  # fields of /proc/PID/stat behind the name, from 0
LEAST_SAMPLES = 30  # fewer tell nothing about growth
ROOM_BYTES = 30_000_000  # by which medians of a part may differ


def rss_bytes(session: int) -> int:
    """Memory of all processes of a session, 0 if there are none; pages that they share are counted for each."""
    pages = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        if int(fields[_SESSION]) == session:
            pages += int(fields[_RSS])
    return pages * _PAGE_BYTES


def grows(samples: Sequence[int]) -> bool:
    """True if a part that was started again and again needs ever more: the median of its last third is far above before.

    What it needs grows with what its files hold, so that a tenth more is no sign.
    """
    if len(samples) < LEAST_SAMPLES:
        return False
    third = len(samples) // 3
    return median(samples[-third:]) > 1.1 * median(samples[third:-third]) + ROOM_BYTES
