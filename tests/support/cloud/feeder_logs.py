"""Results from logs of bird feeders, by the slow definitions without code of the project, and by the project's engine."""

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
    """Seconds since 1970, as if UTC."""
    return int((datetime.strptime(text, form) - datetime(1970, 1, 1)).total_seconds())


def logs(folder: Path) -> list[Path]:
    """The logs of a folder, without notes, in the order in which a shell names them."""
    return sorted(folder.glob("*DATA*.TXT"))


def reads(folder: Path) -> list[Read]:
    """The rows of the logs, file after file; lines that are no rows, or of a clock never set, are left out."""
    parsed = []
    for path in logs(folder):
        logger, *rows = path.read_bytes().decode().rstrip("\r\n").replace("\r", "\n").split("\n")
        for row in rows:
            tag, _, stamp = row.partition(" ")
            second = seconds(stamp, "%m/%d/%y %H:%M:%S")
            if len(tag) == 10 and second > seconds("2001", "%Y"):
                parsed.append(Read(second, logger, tag))
    return parsed


def moves(given: Iterable[Read]) -> set[Move]:
    """Successive reads of a tag at different loggers, in the order given."""
    last: dict[str, Read] = {}
    emitted = set()
    for read in given:
        before = last.get(read.tag)
        if before and before.logger != read.logger:
            emitted.add((before, read))
        last[read.tag] = read
    return emitted


def visits(given: Iterable[Read], gap_s: int) -> list[Read]:
    """First reads of visits: reads of a tag at a logger with no other there in the gap before."""
    last: dict[tuple[str, str], int] = {}
    first = []
    for read in sorted(given):
        at = (read.tag, read.logger)
        if at not in last or read.second - last[at] > gap_s:
            first.append(read)
        last[at] = read.second
    return first


def moves_by_the_engine(given: list[Read], window: str) -> list[Move]:
    """Matches of the lesson's rule of moves by the project's engine, in any order of arrival, as pairs of reads."""
    tags, loggers = ({x: n for n, x in enumerate(sorted({r[i] for r in given}))} for i in (2, 1))
    pattern = Pattern.parse(f"SEQ(r a, r b) WITHIN {window} PER key WHERE a.gateway != b.gateway STRICT")
    t = np.array([r.second * 1_000_000 for r in given])
    columns = {"gateway": np.array([loggers[r.logger] for r in given], float)}
    keys = np.array([tags[r.tag] for r in given])
    rows = detect(pattern, ["r"], np.zeros(len(t), np.int64), keys, t, t_max=t + 999_999, attributes=columns)
    return [(given[a], given[b]) for a, b in rows]
