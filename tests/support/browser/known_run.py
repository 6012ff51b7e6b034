"""A small run whose truth is known: three readers, pairs, a match, late readings, health, true times.

Written by the product's own writers where there are some. All times are offsets from BEGIN_US, so a test can compute what a
view must show.
"""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa

from support.cloud.landing import land, reading
from whenabouts_cloud.cep.shard.results import RESULT as MATCH
from whenabouts_cloud.correlation.pairs import RESULT as PAIR
from whenabouts_cloud.health.records import birth, heartbeat, hour_of, ingest, line_of, status
from whenabouts_cloud.jobs.output.sink import TASK_FILES, ResultSink, batch_folder
from whenabouts_cloud.jobs.output.task_files import TaskFiles
from whenabouts_cloud.landing.layout import FRONTIER, Numbers, path_of
from whenabouts_cloud.landing.store import Store
from whenabouts_cloud.shard import LATE, StepOutput
from whenabouts_protocol import Birth, Heartbeat, Status

BEGIN_US = 1_795_000_000_000_000  # 2026-11-18T11:06:40Z
SECOND_US = 1_000_000
HOUR = hour_of(BEGIN_US)
SITE = "hall"
DOCK, DOOR, EXIT = ("gw-1", "dock/tags"), ("gw-2", "door/tags"), ("gw-2", "exit/tags")
LANES = [f"{SITE}/{gateway}/{stream}" for gateway, stream in (DOCK, DOOR, EXIT)]
KEYS = [f"urn:epc:{n:02d}" for n in range(20)]
HALF_US = {DOCK: 200_000, DOOR: 50_000, EXIT: 20_000}  # half of the width of a stamp
LATE_SEQ = 7  # of the door: this reading came too late for the rule
FRONTIER_US = BEGIN_US + 45 * SECOND_US

RULES = f"""\
STREAM dock FROM "dock/tags" AT SITE "{SITE}" DELAY 2 s
STREAM door FROM "door/tags" AT SITE "{SITE}" DELAY 2 s
STREAM exit FROM "exit/tags" AT SITE "{SITE}" DELAY 2 s

RULE handover
  CORRELATE dock AS a, door AS b
  WHERE |@a - @b| <= 2 s OVER 80 % AND a.key = b.key

RULE unpaid
  SEQ(dock a, !door c, exit e) WITHIN 1 h PER key
"""


def true_us(lane: tuple[str, str], number: int) -> int:
    """When the tag of this number truly passed a reader: one each 2 s, at the door 0.5 s later, at the exit 10 s later."""
    return BEGIN_US + 2 * SECOND_US * number + {DOCK: 0, DOOR: 500_000, EXIT: 10 * SECOND_US}[lane]


def readings() -> list[dict[str, Any]]:
    """All that landed: 20 tags at the dock, 15 at the door, 5 at the exit, in this order."""
    rows = []
    for lane, numbers in ((DOCK, range(20)), (DOOR, range(15)), (EXIT, range(15, 20))):
        for number in numbers:
            middle = true_us(lane, number) + 10_000  # clocks are wrong, within their bound
            rows.append(
                reading(
                    lane[0], number, lane[1], KEYS[number], middle - HALF_US[lane], middle + HALF_US[lane], site=SITE
                )
                | {"boot": 2 if lane == EXIT else 1, "landed_us": middle + SECOND_US, "attrs": '{"rssi": -60}'}
            )
    return rows


def pairs() -> list[dict[str, Any]]:
    """A pair for each tag at the door; the probability of pair n is 1 - n / 100."""
    return [_pair(number) for number in range(15)]


def matches() -> list[dict[str, Any]]:
    """A match for each tag at the exit."""
    return [
        {
            "result_id": f"match-{number}", "rule": "unpaid", "key": KEYS[number], "status": "match",
            "t_min": _row(DOCK, number)["t_min"], "t_max": _row(EXIT, number)["t_max"], "probability": 1.0,
            "events": [_place("a", DOCK, number), _place("e", EXIT, number)],
        }
        for number in range(15, 20)
    ]  # fmt: skip


def make(folder: Path) -> tuple[Path, Path, Path]:
    """Write the run; return landing, results and rule file."""
    landing, results, rules = folder / "landing", folder / "results", folder / "rules.wa"
    rows = readings()
    for begin in range(0, len(rows), 16):
        land(landing, rows[begin : begin + 16], hour=HOUR)
    _frontiers(landing)
    _health(landing)
    truth = [
        {
            "site": SITE,
            "gateway": lane[0],
            "boot": 2 if lane == EXIT else 1,
            "seq": number,
            "true_us": true_us(lane, number),
        }
        for lane, numbers in ((DOCK, range(20)), (DOOR, range(15)), (EXIT, range(15, 20)))
        for number in numbers
    ]
    (landing / "_truth.jsonl").write_text("".join(json.dumps(one) + "\n" for one in truth), encoding="utf-8")
    late = [row for row in rows if (row["gateway"], row["stream"]) == DOOR and row["seq"] == LATE_SEQ]
    publish(results / "pairs" / "handover", PAIR, 0, pairs()[:10], late=[("handover", "late b", row) for row in late])
    publish(results / "pairs" / "handover", PAIR, 1, pairs()[10:])
    publish(results / "matches", MATCH, 0, matches())
    rules.write_text(RULES, encoding="utf-8")
    return landing, results, rules


def publish(
    out: Path, schema: pa.Schema, number: int, rows: list[dict[str, Any]], late: list[tuple[str, str, dict[str, Any]]] = ()
) -> None:  # fmt: skip
    """Publish a batch as a job does, with its side output: (rule, reason, reading)."""
    sink = ResultSink(schema, out)
    files = TaskFiles(Store.at(out.resolve() / TASK_FILES))
    side = [{"rule": rule, "reason": reason, **{n: row[n] for n in LATE.names[2:]}} for rule, reason, row in late]
    step = StepOutput(pa.Table.from_pylist(rows, schema), {}, pa.Table.from_pylist(side, LATE))
    for name, file, count in json.loads(files.write(step))["files"]:
        assert sink._published.appear({file: count}, batch_folder(number, name), str(number))


def _row(lane: tuple[str, str], number: int) -> dict[str, Any]:
    return next(x for x in readings() if (x["gateway"], x["stream"]) == lane and x["seq"] == number)


def _pair(number: int) -> dict[str, Any]:
    sides = {"a": _row(DOCK, number), "b": _row(DOOR, number)}
    names = ("site", "gateway", "boot", "seq", "stream", "t_min", "t_max")
    flat = {f"{side}_{name}": row[name] for side, row in sides.items() for name in names}
    return {
        "result_id": f"pair-{number}",
        "rule": "handover",
        "key": KEYS[number],
        "probability": 1 - number / 100,
        **flat,
    }


def _place(name: str, lane: tuple[str, str], number: int) -> dict[str, Any]:
    row = _row(lane, number)
    return {"name": name} | {x: row[x] for x in ("stream", "site", "gateway", "boot", "seq", "t_min", "t_max")}


def _frontiers(landing: Path) -> None:
    file = landing / path_of(FRONTIER, HOUR, Numbers(100, 100))
    file.parent.mkdir(parents=True)
    lines = [
        {"site": SITE, "gateway": gateway, "frontier_us": FRONTIER_US, "streams": streams, "landed_us": FRONTIER_US}
        for gateway, streams in (("gw-1", ["dock/tags"]), ("gw-2", ["door/tags", "exit/tags"]))
    ]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def _health(landing: Path) -> None:
    """Births, statuses, a heartbeat every ten seconds whose bound grows, and the ingest's counters."""
    folder = landing / "_health" / f"hour={HOUR}"
    folder.mkdir(parents=True)
    records: list[dict[str, Any]] = []
    for gateway, names in (("gw-1", ["dock/tags"]), ("gw-2", ["door/tags", "exit/tags"])):
        # name, kind, unit, delay_us, length_us_max, then the parts of a stamp: latency, adapter, wire, polling
        streams = [(name, "tag", None, 2 * SECOND_US, SECOND_US, 30_000, 1_000, 12_000, 2_000) for name in names]
        records.append(birth(Birth(SITE, gateway, 1, streams, build="1.0"), BEGIN_US))
        records.append(status(Status(SITE, gateway, 1, "online"), BEGIN_US))
        records += [_heartbeat(gateway, n) for n in range(6)]
    records.append(status(Status(SITE, "gw-2", 1, "stopped"), BEGIN_US + 59 * SECOND_US))
    records += [ingest("", BEGIN_US + n * SECOND_US, {"landed": n}, {"undecodable": 2}, True) for n in (0, 40)]
    (folder / "part-0-0000.jsonl").write_bytes(b"".join(map(line_of, records)))


def bound_us(number: int) -> int:
    """Bound of a clock in the heartbeat of this number."""
    return 5_000 + 1_000 * number


def _heartbeat(gateway: str, number: int) -> dict[str, Any]:
    at_us = BEGIN_US + 10 * SECOND_US * number
    beat = Heartbeat(
        SITE, gateway, 1, min(at_us, FRONTIER_US), published={}, clock_state="bounded", bound_us=bound_us(number),
        spool_readings=number, spool_bytes=100 * number, refused=0, invalid=3, clock_source="chrony",
        certificate_ends_s=(BEGIN_US // SECOND_US) + 10 * 86400,
    )  # fmt: skip
    return heartbeat(beat, at_us)
