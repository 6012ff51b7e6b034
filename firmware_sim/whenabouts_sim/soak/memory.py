"""Memory of processes over a run: what each part has used, and whether it grows without end."""

import os
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

_PAGE_BYTES = os.sysconf("SC_PAGESIZE")
_SESSION, _RSS = 3, 21  # fields of /proc/PID/stat behind the name, from 0
LEAST_SAMPLES = 30  # fewer tell nothing about growth
ROOM_BYTES = 30_000_000  # by which medians of a part may differ
SPAN_S, OLD_S = 10.0, 120.0  # ages of such a span are compared, and all beyond


class Sample(NamedTuple):
    """What a part used when it had run for so long."""

    age_s: float
    size_bytes: int


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


def grows(samples: Sequence[Sample]) -> bool:
    """True if a part that was started again and again needs ever more: in its last third the median is far above that of the
    third before, at the same age. A young process needs less, and how old processes get is chance.

    What it needs grows with what its files hold, so that a tenth more is no sign.
    """
    if len(samples) < LEAST_SAMPLES:
        return False
    third = len(samples) // 3
    before, last = _by_age(samples[third:-third]), _by_age(samples[-third:])
    more = [size - 1.1 * median(before[age]) for age in before.keys() & last.keys() for size in last[age]]
    return bool(more) and median(more) > ROOM_BYTES


def _by_age(samples: Iterable[Sample]) -> dict[float, list[int]]:
    found = defaultdict[float, list[int]](list)
    for one in samples:
        found[min(one.age_s, OLD_S) // SPAN_S].append(one.size_bytes)
    return found
