"""Readings of states for rules about groups, and their results by the definition, in plain Python."""

import itertools
import json

import pyarrow as pa

from reference.latwin import blocks
from support.cloud.landing import EPOCH_US, table
from whenabouts_cloud.frontier.gateways import Watermark
from whenabouts_cloud.latwin.shard.report import reports_of
from whenabouts_cloud.rules import parse_rules
from whenabouts_protocol.group_state import attrs_of

MS = 1000
FOREVER_US = EPOCH_US + 10**9
ALL = {2: "s0 AND s1", 3: "s0 AND s1 AND s2", 4: "s0 AND s1 AND s2 AND s3"}


def rule(body, *, processes=3, delay="1 h", length="LENGTH 0 us .. 6 ms", group="office"):
    """A rule over the streams s0, s1 and so on."""
    streams = "".join(f'STREAM s{n} FROM "s{n}/state" DELAY {delay} {length}\n' for n in range(processes))
    return parse_rules(f"{streams} RULE r {body} IN GROUP {group}").latwin_rules[0]


def definitely(processes, more=""):
    """DEFINITELY all of the streams."""
    return rule(f"DEFINITELY {ALL[processes]} WINDOW 4", processes=processes, **({"group": more} if more else {}))


def state(process, seq, clock, t_min, t_max, value, *, group="office", view=7, is_heartbeat=False, attrs=None, boot=1):
    """A row of the landing: a state of gateway g0, g1 and so on, or a clock heartbeat."""
    values = {} if is_heartbeat else dict(attrs or {})
    return {
        "site": "hall", "gateway": f"g{process}", "boot": boot, "seq": seq, "stream": f"s{process}/state",
        "kind": "state", "key": None, "value": None if is_heartbeat else json.dumps(value), "unit": None,
        "attrs": json.dumps(attrs_of(group, view, process, values, is_heartbeat)), "t_min": t_min, "t_max": t_max,
        "clock_state": "bounded", "vclock": list(clock), "landed_us": t_max,
    }  # fmt: skip


def states_of(computation, **more):
    """A random computation (`reference.latwin`) as readings, on the ms grid, in its order of arrival with repeats."""
    seqs, rows = {}, {}
    for index, event in enumerate(computation.events):
        if index in computation.arrivals:
            seq = seqs[event.process] = seqs.get(event.process, -1) + 1
            stamp = EPOCH_US + event.lo * MS, EPOCH_US + event.hi * MS
            rows[index] = state(
                event.process, seq, event.clock, *stamp, event.holds, is_heartbeat=not event.begins, **more
            )
    return [rows[index] for index in computation.arrivals]


def reports(job, rows):
    """Rows of the landing as reports."""
    landed, wrong = reports_of(job, table(rows) if isinstance(rows, list) else rows)
    assert not wrong
    return landed


def watermarks_of(rows_to_come, processes, us=FOREVER_US):
    """The latest watermark of each gateway, in its first boot, while these rows have not landed."""
    for process in range(processes):
        left = [r["t_max"] for r in rows_to_come if r["gateway"] == f"g{process}"]
        yield Watermark(f"hall/g{process}", min(left, default=us), boot=1)


def choices(rows, processes, causal=False):
    """The definition of DEFINITELY: every choice of runs, one of each process, each begun before the end of each other.

    Tuples of numbers of their first states. All watermarks have passed, so a run without an end goes on; with `causal`,
    stamps prove nothing.
    """
    mine = [{} for _ in range(processes)]
    for row in rows:
        mine[int(row["gateway"][1:])][row["seq"]] = row
    runs, known, begins = [], [], []
    for process, by_seq in enumerate(mine):
        ordered = [by_seq[seq] for seq in sorted(by_seq)]
        states = {r["vclock"][process]: r for r in ordered if r["value"] is not None}
        runs.append(blocks(number for number, r in states.items() if r["value"] == "true"))
        begins.append(states)
        lowest = list(itertools.accumulate((r["t_min"] for r in ordered), max))
        known.append([(r["vclock"][process], r, lo) for r, lo in zip(ordered, lowest, strict=True)])

    def before(i, run_i, j, run_j):
        if max(begins[j]) == run_j[1] and not causal:
            return True
        begin = begins[i][run_i[0]]
        of_run = [x for x in known[j] if run_j[0] <= x[0] <= run_j[1]]
        after = [x for x in known[j] if x[0] == run_j[1] + 1][:1]
        return any(
            r["vclock"][i] >= max(run_i[0], 1) or (not causal and begin["t_max"] < lo) for _, r, lo in of_run + after
        )

    pairs = list(itertools.permutations(range(processes), 2))
    return {
        tuple(run[0] for run in choice)
        for choice in itertools.product(*runs)
        if all(before(i, choice[i], j, choice[j]) for i, j in pairs)
    }


def emitted(rows):
    """Tuples of state numbers of the result rows, without retracted ones. Each is emitted once, before it is retracted."""
    standing = {}
    for row in rows.to_pylist() if isinstance(rows, pa.Table) else rows:
        states = tuple(one["state"] for one in row["states"])
        if row["status"] == "emitted":
            assert row["result_id"] not in standing, f"emitted twice: {states}"
            standing[row["result_id"]] = states
        else:
            standing.pop(row["result_id"])
    return set(standing.values())
