"""Flink's MATCH_RECOGNIZE over a file of events, as a separate process. Prints one line of JSON.

    .venv-flink/bin/python tests/bench/peers/flink_match.py EVENTS.csv --window-ms 40000 --slack-ms 10000 --filler next

EVENTS.csv has rows of id, key, type letter and time in ms, in the order of arrival; the type letters are those of the
pattern SEQ(A, B, !C, D, E, F, G). MATCH_RECOGNIZE has neither "every combination" nor negation: what may lie between
two neighbours is a separate variable, and there is one match for a start row at most. `next` takes the next event
of each type (SELECT NEXT with us); `any` lets the filler be anything, and gives each start row that has a match one
of them. C is excluded from the second.

Streaming mode, one slot, watermark behind the latest time by the slack and 1 ms, since Flink drops what is at the
watermark; WITHIN excludes its end, hence 1 ms more there. CPU is that of this process and of the Java process, read
before they end.
"""

import argparse
import json
import os
import time
from pathlib import Path

from pyflink.table import EnvironmentSettings, TableEnvironment

EVENTS = """
CREATE TABLE events (
  id BIGINT, k BIGINT, kind STRING, ms BIGINT,
  ts AS TO_TIMESTAMP_LTZ(ms, 3), WATERMARK FOR ts AS ts - INTERVAL '{slack}' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'file://{path}', 'format' = 'csv')
"""
MATCHES = """
SELECT a, b, d, e, f, g FROM events MATCH_RECOGNIZE (
  PARTITION BY k ORDER BY ts
  MEASURES A.id AS a, B.id AS b, D.id AS d, E.id AS e, F.id AS f, G.id AS g
  ONE ROW PER MATCH AFTER MATCH SKIP TO NEXT ROW
  PATTERN (A X1*? B X2*? D X3*? E X4*? F X5*? G) WITHIN INTERVAL '{window}' SECOND
  DEFINE A AS A.kind = 'A', B AS B.kind = 'B', D AS D.kind = 'D', E AS E.kind = 'E', F AS F.kind = 'F', G AS G.kind = 'G',
    {fillers}
)
"""
FILLERS = {
    "next": "X1 AS X1.kind <> 'B', X2 AS X2.kind NOT IN ('C', 'D'), X3 AS X3.kind <> 'E', X4 AS X4.kind <> 'F', "
    "X5 AS X5.kind <> 'G'",
    "any": "X2 AS X2.kind <> 'C'",
}


def seconds(ms: int) -> str:
    return f"{ms // 1000}.{ms % 1000:03d}"


def cpu_s() -> float:
    """CPU seconds of this process and all below it, ended ones included."""
    parent, ticks = {}, {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue  # it ended meanwhile; its parent's times include it
        number = int(path.parent.name)
        parent[number], ticks[number] = int(fields[1]), sum(map(int, fields[11:15]))
    family = {os.getpid()}
    while more := {number for number, above in parent.items() if above in family} - family:
        family |= more
    return sum(ticks[number] for number in family) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("events", type=Path)
    parser.add_argument("--window-ms", type=int, required=True)
    parser.add_argument("--slack-ms", type=int, required=True)
    parser.add_argument("--filler", choices=FILLERS, default="next")
    given = parser.parse_args()
    began = time.monotonic()
    table = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    table.get_config().set("parallelism.default", "1")
    table.execute_sql(EVENTS.format(path=given.events.resolve(), slack=seconds(given.slack_ms + 1)))
    query = MATCHES.format(window=seconds(given.window_ms + 1), fillers=FILLERS[given.filler])
    with table.execute_sql(query).collect() as rows:
        matches = [list(row) for row in rows]
    print(json.dumps({"cpu_s": cpu_s(), "wall_s": time.monotonic() - began, "matches": matches}))


if __name__ == "__main__":
    main()
