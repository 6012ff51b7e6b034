"""What logs of bird feeders say, by the slow definitions and by no code of the project; and what its engine says."""

from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import numpy as np

from whenabouts_cloud.cep import Pattern, detect

HOUR_S = 3600
DAY_S = 24 * HOUR_S


class Read(NamedTuple):
    """A row; the field order makes sorting go by time."""

    second: int
    logger: str
    tag: str


Move = tuple[Read, Read]


def seconds(text: str, form: str) -> int:
    """Since 1970, as if UTC."""
    return int((datetime.strptime(text, form) - datetime(1970, 1, 1)).total_seconds())


def logs(folder: Path) -> list[Path]:
    """The logs of a folder, without notes, in the order in which a shell names them."""
    return sorted(folder.glob("*DATA*.TXT"))


def reads(folder: Path) -> list[Read]:
    """The rows of the logs, file after file; what is no row, or of a clock never set, is left out."""
    found = []
    for path in logs(folder):
        logger, *rows = path.read_bytes().decode().rstrip("\r\n").replace("\r", "\n").split("\n")
        for row in rows:
            tag, _, stamp = row.partition(" ")
            second = seconds(stamp, "%m/%d/%y %H:%M:%S")
            if len(tag) == 10 and second > seconds("2001", "%Y"):
                found.append(Read(second, logger, tag))
    return found


def moves(found: Iterable[Read]) -> set[Move]:
    """Two reads of a tag in a row at different loggers, in the order given."""
    last: dict[str, Read] = {}
    emitted = set()
    for read in found:
        before = last.get(read.tag)
        if before and before.logger != read.logger:
            emitted.add((before, read))
        last[read.tag] = read
    return emitted


def visits(found: Iterable[Read], gap_s: int) -> list[Read]:
    """Reads of a tag at a logger with none there in the gap before."""
    last: dict[tuple[str, str], int] = {}
    first = []
    for read in sorted(found):
        at = (read.tag, read.logger)
        if at not in last or read.second - last[at] > gap_s:
            first.append(read)
        last[at] = read.second
    return first


def moves_by_the_engine(found: list[Read], window: str) -> list[Move]:
    """Matches of the lesson's rule of moves by the project's engine, in any order of arrival, as pairs of reads."""
    tags, loggers = ({x: n for n, x in enumerate(sorted({r[i] for r in found}))} for i in (2, 1))
    pattern = Pattern.parse(f"SEQ(r a, r b) WITHIN {window} PER key WHERE a.gateway != b.gateway STRICT")
    t = np.array([r.second * 1_000_000 for r in found])
    columns = {"gateway": np.array([loggers[r.logger] for r in found], float)}
    keys = np.array([tags[r.tag] for r in found])
    rows = detect(pattern, ["r"], np.zeros(len(t), np.int64), keys, t, t_max=t + 999_999, attributes=columns)
    return [(found[a], found[b]) for a, b in rows]
