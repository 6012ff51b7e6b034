"""Log files of RFID loggers at bird feeders (EM4100 tags at 125 kHz; OAKDATA.TXT and the like) as readings.

    OAKDATA                           the logger's name, once at the head
    3B0069E3FB 02/05/24 10:48:49      tag, month/day/year, time of day
    LOGGING PAUSED: 02/05/24 16:55:00 in its notes: it does not listen until LOGGING STARTED

Lines end with CR, LF or both. A row becomes a tag reading of the stream `<logger>/tags`. Its stamp is the second that the
logger's clock showed, [t, t + 0.999999 s]: the clock chip counts whole seconds. The error of that clock is not recorded, so
the state is `free-running`. The files name no time zone: stamps are taken as UTC.

A note becomes a state reading of `<logger>/listening`, true or false: outside a listening period an unread tag has not
necessarily left. Notes without a name at their head belong to the logger that the file is named after.

A row that cannot be a reading is written to the side output with its line and the reason: damaged fields, stamps after the
import, and stamps of the year 2000, where a clock restarts after losing its battery. Identity: gateway is the logger, boot a
hash of the first row, which does not change when the log grows, seq the line number. Pure; measured on one core, 6 us a row.
"""

import calendar
import re
from collections.abc import Iterator
from hashlib import blake2b

from whenabouts_cloud.importers.side_output import BadRow, NoLogError, SideOutput
from whenabouts_protocol import Reading

RESOLUTION_US = 1_000_000
CENTURY = 2000  # of years with two digits; also the year of a clock that lost its battery

_ENDS = re.compile(r"\r\n|\r|\n")
_LOGGER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_TAG = re.compile(r"[0-9A-Fa-f]{10}")
_STAMP = re.compile(r"(\d\d)/(\d\d)/(\d\d) (\d\d):(\d\d):(\d\d)", re.ASCII)
_NOTE = re.compile(r"LOGGING (STARTED|PAUSED):\s*(.*)")
_FILE = re.compile(r"([A-Za-z0-9]+)(?:DATA|NOTE)")


class NotFeederError(NoLogError):
    """The file does not begin with the name of a logger."""


def read_feeder(text: str, file_name: str, site: str, now_us: int) -> Iterator[Reading | SideOutput]:
    """Yield a reading or a side output for every line but the head and empty ones, in order.

    `file_name` names the logger of notes without a head, `now_us` is the time of the import: nothing can have been seen
    later.

    Raises:
        NotFeederError: the first line is neither a logger's name nor a note.

    >>> [r] = read_feeder("OAKDATA\\r3B0069E3FB 02/05/24 10:48:49\\r", "OAKDATA", "garden", 1_795_000_000_000_000)
    >>> r.gateway, r.stream, r.key, r.t_max - r.t_min
    ('OAKDATA', 'OAKDATA/tags', '3B0069E3FB', 999999)
    """
    logger, boot = "", 0
    for number, raw in enumerate(_ENDS.split(text), 1):
        line = raw.strip()
        if not line:
            continue
        if not logger:
            logger = _logger(line, file_name)
            if line == logger:
                continue
        boot = boot or int.from_bytes(blake2b(line.encode("utf-8", "surrogateescape"), digest_size=6).digest())
        try:
            fields = _fields(line, logger, now_us)
            yield Reading(site=site, gateway=logger, boot=boot, seq=number, clock_state="free-running", **fields)  # type: ignore[arg-type]
        except BadRow as error:
            yield SideOutput(number, error.reason, str(error), raw)
    if not logger:
        raise NotFeederError("found nothing but empty lines, expected the name of a logger at the head")


def _logger(line: str, file_name: str) -> str:
    """Name of the logger, from the first line of its log."""
    if line.startswith("LOGGING "):
        named = _FILE.search(file_name)
        return f"{named[1]}DATA" if named else file_name
    if not _LOGGER.fullmatch(line):
        raise NotFeederError(f"found {line!r:.60} at the head, expected the name of a logger, such as OAKDATA")
    return line


def _fields(line: str, logger: str, now_us: int) -> dict[str, object]:
    """Fields of the reading in a line, without its identity."""
    note = _NOTE.fullmatch(line)
    if note:
        what: dict[str, object] = {"stream": f"{logger}/listening", "kind": "state", "value": note[1] == "STARTED"}
        begin_us = _second(note[2], now_us)
    else:
        tag, _, stamp = line.partition(" ")
        if not _TAG.fullmatch(tag):
            raise BadRow("tag", f"found tag {tag!r:.40}, expected ten hexadecimal digits")
        what = {"stream": f"{logger}/tags", "kind": "tag", "key": tag.upper()}
        begin_us = _second(stamp, now_us)
    return {**what, "t_min": begin_us, "t_max": begin_us + RESOLUTION_US - 1}


def _second(text: str, now_us: int) -> int:
    """Begin of the printed second in microseconds since 1970, taken as UTC."""
    match = _STAMP.fullmatch(text)
    month, day, year, hour, minute, second = map(int, match.groups()) if match else (0,) * 6
    year += CENTURY
    if not (1 <= month <= 12 and 1 <= day <= calendar.monthrange(year, month)[1]):
        match = None
    if match is None or hour > 23 or minute > 59 or second > 59:
        raise BadRow("stamp", f"found stamp {text!r:.40}, expected such as 02/05/24 10:48:49")
    begin_us = calendar.timegm((year, month, day, hour, minute, second)) * 1_000_000
    if year == CENTURY or begin_us > now_us:
        raise BadRow(
            "time", f"found {text}, expected none {'of a clock never set' if year == CENTURY else 'after this import'}"
        )
    return begin_us
