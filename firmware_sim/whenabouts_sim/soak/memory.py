"""Memory of processes over a run: what each part has used, and whether it grows without end."""

import os
from collections import defaultdict
from collections.abc import Iterable, Sequence
from math import ceil, log2
from pathlib import Path
from statistics import median
from typing import NamedTuple

_PAGE_BYTES = os.sysconf("SC_PAGESIZE")
_SESSION, _RSS = 3, 21  # fields of /proc/PID/stat behind the name, from 0
LEAST_SAMPLES = 30  # fewer tell nothing about growth
ROOM_BYTES = 30_000_000  # by which medians of a part may differ
YOUNG_S = 10.0  # ages up to this are compared with each other, and those up to twice, four times, ... of it


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
    third before, at the same age, or if there it was never as old, at the age that comes next. A young process needs less,
    and how old processes get is chance. What grows in each life alike is not told.

    What it needs grows with what its files hold, so that a tenth more is no sign.
    """
    if len(samples) < LEAST_SAMPLES:
        return False
    third = len(samples) // 3
    before = _by_age(samples[third:-third])
    more = []
    for age, sizes in _by_age(samples[-third:]).items():
        ages = [one for one in before if one <= age]
        if ages:
            more += [size - 1.1 * median(before[max(ages)]) for size in sizes]
    return bool(more) and median(more) > ROOM_BYTES


def _by_age(samples: Iterable[Sample]) -> dict[int, list[int]]:
    found = defaultdict[int, list[int]](list)
    for one in samples:
        found[max(0, ceil(log2(max(one.age_s, 1.0) / YOUNG_S)))].append(one.size_bytes)
    return found
