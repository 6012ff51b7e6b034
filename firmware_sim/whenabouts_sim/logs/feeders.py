"""Logs of four RFID loggers at bird feeders, as such loggers write them, and what truly happened.

    OAK --- 15 m --- ELM          (300 m)          ASH --- 15 m --- YEW

Birds come by daylight on three days. They fly between the feeders of a pair many times a day, and hardly ever from one pair
to the other. A visit is a stay at a feeder; the logger writes the bird's tag every few seconds while it sits on the perch,
with the second that its own clock shows. The error of that clock is not known.

Logs are collected on two evenings, logger after logger. ELM did not listen for a while, as its notes record. ASH got a new
battery on the third morning: until its clock was set it counted from the year 2000. YEW's battery was empty on the third
day, and its second log has only a head. One row of OAK was damaged on the way.

Pure: the same seed gives the same logs. Times are microseconds since 1970, UTC.
"""

from __future__ import annotations

import calendar
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random

SECOND_US = 1_000_000
MINUTE_US = 60 * SECOND_US
HOUR_US = 60 * MINUTE_US
DAY_US = 24 * HOUR_US
FIRST_DAY_US = calendar.timegm((2024, 2, 5, 0, 0, 0)) * SECOND_US
DAYS = 3
LIGHT_US = (7 * HOUR_US + 30 * MINUTE_US, 17 * HOUR_US)  # of a day, from and to
NEVER_SET_US = calendar.timegm((2000, 1, 1, 0, 0, 0)) * SECOND_US

BIRDS = 6
NEIGHBOUR = {"OAK": "ELM", "ELM": "OAK", "ASH": "YEW", "YEW": "ASH"}
FEEDERS = tuple(NEIGHBOUR)
AHEAD_US = {"OAK": 1 * SECOND_US, "ELM": 19 * SECOND_US, "ASH": -1 * SECOND_US, "YEW": 2 * SECOND_US}  # of the clocks
COLLECTED_US = tuple(FIRST_DAY_US + day * DAY_US + 19 * HOUR_US for day in (1, 2))
PAUSED_US = (FIRST_DAY_US + DAY_US + 11 * HOUR_US, FIRST_DAY_US + DAY_US + 13 * HOUR_US)  # ELM
BATTERY_US = FIRST_DAY_US + 2 * DAY_US + 7 * HOUR_US  # ASH gets a new one
SET_US = BATTERY_US + 75 * MINUTE_US  # and its clock is set


@dataclass(frozen=True, order=True)
class Visit:
    """A bird at a feeder, from when it came to when it left, and the moments at which it was on the perch to be read."""

    came_us: int
    left_us: int
    bird: str
    feeder: str
    reads_us: tuple[int, ...]


@dataclass(frozen=True)
class FeederLogs:
    """`visits`: all true visits, including those that no logger heard. `files`: name and content of each."""

    visits: tuple[Visit, ...]
    files: dict[str, bytes]

    def counts(self) -> dict[str, int]:
        """Number of visits at each feeder."""
        return {feeder: sum(visit.feeder == feeder for visit in self.visits) for feeder in FEEDERS}


def feeder_logs(seed: int) -> FeederLogs:
    """The logs of four loggers, the notes of one, truth.csv and clocks.csv."""
    random = Random(f"feeders/{seed}")
    visits = tuple(sorted(visit for number in range(BIRDS) for visit in _bird(random, FEEDERS[number % len(FEEDERS)])))
    files: dict[str, bytes] = {}
    since_us = FIRST_DAY_US
    for collected_us in COLLECTED_US:
        for feeder in FEEDERS:
            rows = _rows(feeder, visits, since_us, collected_us)
            if feeder == "OAK" and since_us > FIRST_DAY_US:
                rows[len(rows) // 2] = rows[len(rows) // 2][3:]
            files[_name(f"{feeder}DATA", collected_us)] = _text([f"{feeder}DATA", *rows])
        since_us = collected_us
    notes = [f"LOGGING {what}: {_stamp(at_us)}" for what, at_us in zip(("PAUSED", "STARTED"), PAUSED_US, strict=True)]
    files[_name("ELMNOTE", COLLECTED_US[-1])] = _text(notes)
    return FeederLogs(visits, {**files, "truth.csv": _truth_csv(visits), "clocks.csv": _clocks_csv()})


def _bird(random: Random, home: str) -> list[Visit]:
    """Three days of a bird: visits in bouts, most of them at its own pair of feeders."""
    tag = f"3B00{random.randrange(1 << 24):06X}"
    visits = []
    for day in range(DAYS):
        begin_us, end_us = (FIRST_DAY_US + day * DAY_US + at_us for at_us in LIGHT_US)
        now_us = begin_us + random.randint(0, 40 * MINUTE_US)
        feeder = home
        while now_us < end_us:
            visit = _visit(random, tag, feeder, now_us)
            visits.append(visit)
            feeder, away_us = _next(random, feeder, home)
            now_us = visit.left_us + away_us
    return visits


def _next(random: Random, feeder: str, home: str) -> tuple[str, int]:
    """The next feeder of a bird, and the time until it arrives there."""
    rest_us = random.randint(20 * MINUTE_US, 110 * MINUTE_US)
    chance = random.random()
    if chance < 0.45:  # a short flight to the neighbour
        return NEIGHBOUR[feeder], random.randint(7 * SECOND_US, 45 * SECOND_US)
    if chance < 0.75:
        return NEIGHBOUR[feeder], rest_us
    if chance < 0.97:
        return feeder, random.choice((rest_us, random.randint(20 * SECOND_US, 90 * SECOND_US)))
    return next(other for other in FEEDERS if other not in (feeder, NEIGHBOUR[feeder])), rest_us


def _visit(random: Random, bird: str, feeder: str, came_us: int) -> Visit:
    """A stay of 3 to 60 s with a read every few seconds; sometimes the bird sits where it is not read."""
    left_us = came_us + random.randint(3 * SECOND_US, 60 * SECOND_US)
    reads_us = [came_us + random.randint(0, 1_500_000)]
    while True:
        beside = random.random() < 0.08
        gap_us = random.randint(*((25 * SECOND_US, 45 * SECOND_US) if beside else (2 * SECOND_US, 12 * SECOND_US)))
        if reads_us[-1] + gap_us > left_us:
            return Visit(came_us, left_us, bird, feeder, tuple(reads_us))
        reads_us.append(reads_us[-1] + gap_us)


def _rows(feeder: str, visits: Iterable[Visit], since_us: int, until_us: int) -> list[str]:
    """Rows that a logger wrote between two collections."""
    reads = sorted((at_us, visit.bird) for visit in visits if visit.feeder == feeder for at_us in visit.reads_us)
    return [
        f"{bird} {_stamp(_shown_us(feeder, at_us))}"
        for at_us, bird in reads
        if since_us <= at_us < until_us and _listens(feeder, at_us)
    ]


def _listens(feeder: str, at_us: int) -> bool:
    paused = feeder == "ELM" and PAUSED_US[0] <= at_us < PAUSED_US[1]
    empty = feeder == "YEW" and at_us >= COLLECTED_US[0]
    return not (paused or empty)


def _shown_us(feeder: str, at_us: int) -> int:
    """Time on the logger's clock."""
    if feeder == "ASH" and BATTERY_US <= at_us < SET_US:
        return NEVER_SET_US + at_us - BATTERY_US
    return at_us + AHEAD_US[feeder]


def _stamp(at_us: int) -> str:
    """Time as a logger writes it, cut to the second."""
    return f"{datetime.fromtimestamp(at_us // SECOND_US, UTC):%m/%d/%y %H:%M:%S}"


def _name(log: str, collected_us: int) -> str:
    return f"{log}_{datetime.fromtimestamp(collected_us // SECOND_US, UTC):%Y_%m_%d}.TXT"


def _text(lines: Sequence[str]) -> bytes:
    """Text whose lines end with only CR."""
    return "".join(f"{line}\r" for line in lines).encode()


def _truth_csv(visits: Iterable[Visit]) -> bytes:
    rows = ["bird,feeder,came,left"]
    for visit in visits:
        came, left = (
            f"{datetime.fromtimestamp(at_us // SECOND_US, UTC):%Y-%m-%dT%H:%M:%S}.{at_us % SECOND_US // 1000:03d}"
            for at_us in (visit.came_us, visit.left_us)
        )
        rows.append(f"{visit.bird},{visit.feeder},{came},{left}")
    return "".join(f"{row}\n" for row in rows).encode()


def _clocks_csv() -> bytes:
    rows = ["feeder,ahead_s", *(f"{feeder},{ahead_us // SECOND_US}" for feeder, ahead_us in AHEAD_US.items())]
    return "".join(f"{row}\n" for row in rows).encode()
