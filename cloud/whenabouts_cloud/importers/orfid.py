"""Log files of Oregon RFID antenna readers (ORMR, ORSR; fish tags at 134 kHz) as readings with honest intervals.

A table row states that a tag was seen from ARR on for DUR, so the row is the interval [ARR, ARR + DUR]. The interval is
widened by the resolution of the text: one unit (a tenth, or a second without decimals) downwards, as numbers may be rounded
or cut, and one unit of each number upwards, as the departure is their sum. Then by the error of the clock, column TRF:

    G  GNSS          nothing; the unit is far coarser
    N  network       1 s, an assumption: a time server over a slow link
    U  unreferenced  60 s after a referenced row of the same file: the clock was right and now runs freely. In the public
                     logs of the ORFID package clocks were set back by 0.983 s after up to 5 h of this, and a marker tag with
                     a period of a minute puts one such row 3 to 5 s off: a minute is ten times that, but not proven.
                     Before any referenced row: a day, which covers time zones and clocks set by hand; the state is
                     `unbounded`.

A row that cannot be a reading is written to the side output with its line and the reason: damaged fields, and stamps before
2000 or after the import, which occur with reference G too. Lines that are not detections also go there: the reader's own
events and the text around the table. Phantom tags (TTY P, false reads) form the stream `phantom`, so that rules about `tags`
ignore them; with an antenna column the streams are `A1/tags` and so on.

The files name no time zone: stamps are taken as UTC. Identity: gateway is the reader's name, boot a hash of the first table
row, which does not change when the log grows, seq the line number. Pure; measured on one core, 17 us a row.
"""

import calendar
import re
from collections.abc import Iterable, Iterator
from hashlib import blake2b

from whenabouts_cloud.importers.side_output import BadRow, NoLogError, SideOutput
from whenabouts_protocol import Reading

REQUIRED = ("DTY", "ARR", "TRF", "DUR", "TTY", "TAG", "SCD")
TAG_TYPES = "ARWP"  # animal, read-only, writeable, phantom
CLOCK_BOUND_US = {"G": 0, "N": 1_000_000, "U": 60_000_000}
SCAN_UNIT_US = 100_000
NEVER_SET_BOUND_US = 86_400_000_000
EARLIEST_US = calendar.timegm((2000, 1, 1, 0, 0, 0)) * 1_000_000

_STAMP = re.compile(r"(\d{4})-(\d\d)-(\d\d) (\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?", re.ASCII)
_DURATION = re.compile(r"(\d{1,4}):(\d\d):(\d\d)(?:\.(\d{1,6}))?", re.ASCII)
_NUMBER = re.compile(r"-?\d{1,15}(\.\d{1,15})?", re.ASCII)


class NotOrfidError(NoLogError):
    """The file has no table of an Oregon RFID reader."""


def read_orfid(lines: Iterable[str], reader: str, now_us: int) -> Iterator[Reading | SideOutput]:
    """Yield a reading or a side output for every line but the table's head and empty ones, in order.

    `reader` becomes the gateway's name, `now_us` is the time of the import: nothing can have been seen later.

    Raises:
        NotOrfidError: there is no head line with the columns of REQUIRED.

    >>> rows = ["DTY ARR TRF DUR TTY TAG SCD", "S 2024-05-14_09:41:10.4 G 00:00:01.8 A 999_000000001112 AAA"]
    >>> [r] = read_orfid([x.replace(" ", chr(9)).replace("_09", " 09") for x in rows], "lower", 1_795_000_000_000_000)
    >>> r.t_max - r.t_min, r.key, r.stream, r.site
    (2100000, '999_000000001112', 'tags', 'AAA')
    """
    head: list[str] | None = None
    boot, referenced = 0, False
    for number, raw in enumerate(lines, 1):
        line = raw.rstrip("\r\n")
        cells = [cell.strip().strip('"').strip() for cell in line.split("\t")]
        if set(REQUIRED) <= set(cells):
            head = cells
        elif not line.strip():
            continue
        elif head is None or len(cells) == 1:
            yield SideOutput(number, "text", "no row of the table", line)
        elif cells[0] == "E":
            yield SideOutput(number, "event", cells[-1], line)
        else:
            boot = boot or _boot(line)
            try:
                reading = _reading(dict(zip(head, cells, strict=False)), len(cells) - len(head), referenced, now_us)
                yield Reading(gateway=reader, boot=boot, seq=number, **reading)  # type: ignore[arg-type]
            except BadRow as error:
                yield SideOutput(number, error.reason, str(error), line)
            except ValueError as error:
                yield SideOutput(number, "field", str(error), line)
            else:
                referenced = referenced or reading["clock_state"] == "bounded"
    if head is None:
        raise NotOrfidError(f"found no head line, expected one with the columns {', '.join(REQUIRED)}")


def _boot(line: str) -> int:
    return int.from_bytes(blake2b(line.encode("utf-8", "surrogateescape"), digest_size=6).digest())


def _reading(row: dict[str, str], surplus: int, referenced: bool, now_us: int) -> dict[str, object]:
    """Fields of a reading, without gateway, boot and seq."""
    if surplus:
        raise BadRow("columns", f"found {abs(surplus)} {'more' if surplus > 0 else 'fewer'} cells than the head has")
    for name, allowed in (("DTY", "SI"), ("TTY", TAG_TYPES), ("TRF", "".join(CLOCK_BOUND_US))):
        if len(row[name]) != 1 or row[name] not in allowed:
            raise BadRow(name, f"found {name} {row[name]!r:.40}, expected one of {', '.join(allowed)}")
    if not row["TAG"]:
        raise BadRow("TAG", "found no tag")
    arrival_us, arrival_unit_us = _arrival(row["ARR"])
    duration_us, duration_unit_us = _duration(row["DUR"])
    if not EARLIEST_US <= arrival_us <= now_us:
        expected = "expected none before 2000" if arrival_us < EARLIEST_US else "expected none after this import"
        raise BadRow("time", f"found arrival {row['ARR']} with reference {row['TRF']}, {expected}")
    bound_us, state = CLOCK_BOUND_US[row["TRF"]], "bounded"
    if row["TRF"] == "U":
        bound_us, state = (bound_us, "free-running") if referenced else (NEVER_SET_BOUND_US, "unbounded")
    stream = "phantom" if row["TTY"] == "P" else "tags"
    return {
        "site": row["SCD"],
        "stream": f"{row['ANT']}/{stream}" if row.get("ANT") else stream,
        "kind": "tag",
        "key": row["TAG"],
        "t_min": arrival_us - arrival_unit_us - bound_us,
        "t_max": arrival_us + duration_us + arrival_unit_us + duration_unit_us + bound_us,
        "clock_state": state,
        "attrs": {name: _scalar(row[name]) for name in row if name not in ("ARR", "DUR", "TAG", "SCD") and row[name]},
    }


def _arrival(text: str) -> tuple[int, int]:
    """Microseconds since 1970, taken as UTC, and the unit of the last digit."""
    match = _STAMP.fullmatch(text)
    try:
        if match is None:
            raise ValueError
        year, month, day, hour, minute, second = map(int, match.groups()[:6])
        if not (1 <= month <= 12 and 1 <= day <= calendar.monthrange(year, month)[1] and hour < 24):
            raise ValueError
        if minute > 59 or second > 59:
            raise ValueError
        seconds = calendar.timegm((year, month, day, hour, minute, second))
    except ValueError:
        raise BadRow("ARR", f"found arrival {text!r:.40}, expected such as 2024-05-14 09:41:10.100") from None
    fraction_us, unit_us = _fraction(match[7])
    return seconds * 1_000_000 + fraction_us, unit_us


def _duration(text: str) -> tuple[int, int]:
    match = _DURATION.fullmatch(text)
    if match is None or int(match[2]) > 59 or int(match[3]) > 59:
        raise BadRow("DUR", f"found duration {text!r:.40}, expected such as 00:00:01.800")
    fraction_us, unit_us = _fraction(match[4])
    return ((int(match[1]) * 60 + int(match[2])) * 60 + int(match[3])) * 1_000_000 + fraction_us, unit_us


def _fraction(digits: str | None) -> tuple[int, int]:
    """Microseconds of the decimals, and the unit of counting.

    Scans are counted in tenths with any decimals (.400, .4 and, once in a public log, .399), in seconds without.
    """
    digits = digits or ""
    return int(digits.ljust(6, "0")), SCAN_UNIT_US if digits else 1_000_000


def _scalar(text: str) -> int | float | str:
    if not _NUMBER.fullmatch(text):
        return text
    return float(text) if "." in text else int(text)
