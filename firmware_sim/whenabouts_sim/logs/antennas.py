"""Logs of three antenna readers at a river, as Oregon RFID's readers write them, and what truly happened.

    sea --- lower (AAA) --- upper (BBB) --- ... --- weir (CCC) --- lake

Fish swim between the lower and the upper antenna, both ways, and mill about each for a while; some reach the weir. A marker
tag tests an antenna: that of the upper one sends every 3.002 s, that of the lower one every minute.

A reader scans ten times a second. A row begins with the first scan that hears a tag and ends with the last; it is written
when the tag has left, so rows stand in the order of departures. A number heard in only one scan is marked as false
(a phantom, TTY P): noise with a number that no tag has, but also a marker or a fish that was heard once. Stamps are cut to
tenths. For 40 s the lower reader has no reference, and its clock is some seconds off (TRF U). The weir gets its time over a
network (N), and its log is a raw report: text, events, a row with a year in the future, a row that was cut short.

Pure: the same seed gives the same logs. Times are microseconds since 1970, UTC.
"""

from __future__ import annotations

import calendar
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random
from typing import NamedTuple

SECOND_US = 1_000_000
SCAN_US = 100_000
EPOCH_US = calendar.timegm((2024, 5, 14, 9, 30, 0)) * SECOND_US
DURATION_US = 22 * 60 * SECOND_US
END_US = EPOCH_US + DURATION_US

FISH = 9
AT_WEIR = 3  # of the fish
NOISE = 12
UNREFERENCED_US = 40 * SECOND_US
NETWORK_ERROR_US = 400_000

HEAD = ("DTY", "ARR", "TRF", "DUR", "TTY", "TAG", "SCD", "NCD", "EFA")
REPORT_HEAD = (*HEAD, "TCH", "ANT")


class Antenna(NamedTuple):
    """A reader with its antenna: the name of its log, its site code, the phase of its scans in a tenth of a second."""

    reader: str
    site: str
    phase_us: int


LOWER = Antenna("lower", "AAA", 37_000)
UPPER = Antenna("upper", "BBB", 64_000)
WEIR = Antenna("weir", "CCC", 21_000)


class Marker(NamedTuple):
    """A tag that sends by its own clock."""

    antenna: Antenna
    tag: str
    period_us: int


MARKERS = (
    Marker(LOWER, "0000_000000000417", 60 * SECOND_US),
    Marker(UPPER, "0000_000000000268", 3_002_000),
)


@dataclass(frozen=True, order=True)
class Stay:
    """A tag in the field of an antenna, or noise there; the order is that of departures.

    `what` is fish, marker or noise. `moment_us` is its true time: for a fish the moment at which it was nearest to the
    antenna, for a marker the begin of its sending.
    """

    end_us: int
    begin_us: int
    moment_us: int
    antenna: Antenna
    tag: str
    what: str


@dataclass(frozen=True)
class AntennaLogs:
    """`truth`: for each row of a log its line, counted from 1, and its stay. `files`: name and content of each."""

    truth: tuple[tuple[int, Stay], ...]
    files: dict[str, bytes]

    def counts(self) -> dict[str, int]:
        """Numbers of rows made by fish, markers and noise."""
        return dict(sorted(Counter(stay.what for _, stay in self.truth).items()))


def antenna_logs(seed: int) -> AntennaLogs:
    """The three logs and truth.csv."""
    random = Random(f"antennas/{seed}")
    stays = sorted([*_fish(random), *_markers(random), *_noise(random)])
    lost_us = _lost(random, stays)
    lower, upper, weir = ([stay for stay in stays if stay.antenna == at] for at in (LOWER, UPPER, WEIR))
    logs = {
        LOWER: _table(random, lower, lost_us),
        UPPER: _table(random, upper, None),
        WEIR: _report(random, weir),
    }
    truth = tuple((line, stay) for lines in logs.values() for line, (_, stay) in enumerate(lines, 1) if stay)
    files = {f"{at.reader}.txt": "".join(f"{text}\n" for text, _ in lines).encode() for at, lines in logs.items()}
    return AntennaLogs(truth, {**files, "truth.csv": _truth_csv(truth)})


def _fish(random: Random) -> list[Stay]:
    """Journeys between the two antennas: 140 to 210 s from one to the other, or back to the same one after a rest."""
    stays: list[Stay] = []
    for number in range(FISH):
        tag = f"999_{1000 + 17 * number + random.randrange(17):012d}"
        at = random.choice((LOWER, UPPER))
        now_us = EPOCH_US + _seconds(random, 20, 400)
        while now_us < END_US - 60 * SECOND_US:
            now_us = _mill_about(random, at, tag, now_us, stays)
            if random.random() < 0.25:
                now_us += _seconds(random, 120, 400)
            else:
                at = UPPER if at == LOWER else LOWER
                now_us += _seconds(random, 140, 210)
        if number < AT_WEIR:
            _mill_about(random, WEIR, tag, END_US + _seconds(random, 300, 900), stays)
    return stays


def _mill_about(random: Random, at: Antenna, tag: str, now_us: int, stays: list[Stay]) -> int:
    """Add one to four stays of a fish at an antenna, some of them brief; return the end of the last one."""
    for _ in range(random.randint(1, 4)):
        begin_us = now_us
        brief = random.random() < 0.15
        end_us = begin_us + (random.randint(SCAN_US, SCAN_US + 40_000) if brief else _seconds(random, 0.3, 2.6))
        stays.append(Stay(end_us, begin_us, random.randint(begin_us, end_us), at, tag, "fish"))
        now_us = end_us + _seconds(random, 1.2, 5)
    return end_us


def _markers(random: Random) -> list[Stay]:
    """Every sending of the markers; each lasts two or three scans, sometimes one."""
    stays = []
    for marker in MARKERS:
        first_us = EPOCH_US + random.randrange(marker.period_us)
        for begin_us in range(first_us, END_US, marker.period_us):
            end_us = begin_us + random.randint(160_000, 260_000)
            stays.append(Stay(end_us, begin_us, begin_us, marker.antenna, marker.tag, "marker"))
    return stays


def _noise(random: Random) -> list[Stay]:
    """Numbers that no tag sent, each heard in one scan of the upper antenna."""
    stays = []
    for _ in range(NOISE):
        scan_us = EPOCH_US + UPPER.phase_us + SCAN_US * random.randrange(DURATION_US // SCAN_US)
        stays.append(Stay(scan_us, scan_us, scan_us, UPPER, f"0000_{random.randrange(10**11, 10**12)}", "noise"))
    return stays


def _lost(random: Random, stays: Iterable[Stay]) -> tuple[int, int, int]:
    """(from, to, error in us): a time around a sending of the lower marker in which its reader has no reference."""
    heartbeats = [stay.begin_us for stay in stays if stay.antenna == LOWER and stay.what == "marker"]
    heartbeat_us = random.choice(heartbeats[len(heartbeats) // 2 :])
    return heartbeat_us - UNREFERENCED_US // 2, heartbeat_us + UNREFERENCED_US // 2, _seconds(random, 3, 5)


Line = tuple[str, Stay | None]  # text of a line in a log, and the stay that made it


def _table(random: Random, stays: Sequence[Stay], lost: tuple[int, int, int] | None) -> list[Line]:
    """A log that consists of one table."""
    lines: list[Line] = [("\t".join(HEAD), None)]
    for stay in stays:
        off_us = lost[2] if lost and lost[0] <= stay.begin_us < lost[1] else 0
        lines.append(("\t".join(_cells(random, stay, "U" if off_us else "G", off_us)), stay))
    return lines


def _report(random: Random, stays: Sequence[Stay]) -> list[Line]:
    """A raw report: what a person typed, the reader's greeting, events among the rows, and two rows that are damaged."""
    rows = [[*_cells(random, stay, "N", NETWORK_ERROR_US), "HDX", "A1"] for stay in stays]
    ahead = len(rows) // 3
    rows[ahead][1], rows[ahead][2] = "2081" + rows[ahead][1][4:], "G"
    cut = 2 * len(rows) // 3
    rows[cut] = rows[cut][:6]
    begin, end = (_stamp(at_us) for at_us in (stays[0].begin_us - 90 * SECOND_US, stays[-1].end_us + 60 * SECOND_US))
    events: list[Line] = [
        ("\t".join(("E", begin, "N", "End of upload #11")), None),
        ("\t".join(("E", begin, "N", "Supply 12.7 V")), None),
    ]
    return [
        ("WEIR> upload", None),
        ("Reader: Weir   Site: CCC", None),
        (f"------ Upload #12, {len(rows) + 3} records ------", None),
        ("\t".join(REPORT_HEAD), None),
        *events,
        *(("\t".join(cells), stay) for cells, stay in zip(rows, stays, strict=True)),
        ("\t".join(("E", end, "N", "Supply 12.6 V")), None),
        ("------ Upload done ------", None),
    ]


def _cells(random: Random, stay: Stay, reference: str, off_us: int) -> list[str]:
    """A row of the table: the scans that heard a stay, by a clock that is `off_us` ahead."""
    phase_us = stay.antenna.phase_us
    first = -(-(stay.begin_us - phase_us) // SCAN_US)
    last = (stay.end_us - phase_us) // SCAN_US
    heard = last - first + 1
    kind = "P" if heard == 1 else {"fish": "A", "marker": "W"}[stay.what]
    arrived = _stamp(first * SCAN_US + phase_us + off_us)
    tenths = last - first
    stayed = f"{tenths // 36_000:02d}:{tenths // 600 % 60:02d}:{tenths // 10 % 60:02d}.{tenths % 10}00"
    current = random.choice(("0.7", "0.8"))
    return ["S", arrived, reference, stayed, kind, stay.tag, stay.antenna.site, str(heard), current]


def _stamp(at_us: int) -> str:
    """Time as a reader prints it, cut to a tenth of a second."""
    seconds, rest_us = divmod(at_us, SECOND_US)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}.{rest_us // SCAN_US}00"


def _truth_csv(truth: Iterable[tuple[int, Stay]]) -> bytes:
    rows = ["reader,line,tag,what,moment"]
    for line, stay in truth:
        seconds, rest_us = divmod(stay.moment_us, SECOND_US)
        moment = f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest_us:06d}"
        rows.append(f"{stay.antenna.reader},{line},{stay.tag},{stay.what},{moment}")
    return "".join(f"{row}\n" for row in rows).encode()


def _seconds(random: Random, low: float, high: float) -> int:
    """A random time between these seconds, in microseconds."""
    return random.randint(round(low * SECOND_US), round(high * SECOND_US))
