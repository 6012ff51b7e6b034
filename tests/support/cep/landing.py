"""Readings for rules about events in an order, and their matches by the definition, in plain Python."""

import json
import math
import random

import pyarrow as pa

from reference.cep import Case, Event, final
from support.cloud.landing import EPOCH_US, reading, table
from whenabouts_cloud.cep.shard.events import events_of, sources_of
from whenabouts_cloud.cep.shard.views import STATE, runs_of
from whenabouts_cloud.landing.schema import STAMPED
from whenabouts_cloud.pattern.expressions import split_column
from whenabouts_cloud.rules import parse_rules

MS = 1000
GATEWAYS = ["g0", "g1", "g2", "g3"]
STREAMS = ("shelf/1", "shelf/2", "till/tags", "exit/tags")

RULES = {
    "inner": "SEQ(shelf a, !till c, exit e) WITHIN 300 ms PER key",
    "trailing": "SEQ(shelf a, exit e, !till c) WITHIN 200 ms PER key",
    "leading, strict": "SEQ(!till c, shelf a, exit e) WITHIN < 250 ms PER key",
    "arrival": "SEQ(shelf a, !till c, exit e) WITHIN 300 ms PER key ON ARRIVAL",
    "repeated": "SEQ(till c, (shelf | exit){1,3} b) WITHIN 120 ms PER key",
    "across": "SEQ(till c, exit e) WITHIN 40 ms ACROSS KEYS",
    "conditions": 'SEQ(shelf a, !till c, exit e) WITHIN 700 ms PER key WHERE a.rssi <= e.rssi AND c.antenna != "left" '
    "AND a.antenna = e.antenna AND NOT a.value = 3 AND e.t_min - a.t_max > 4 ms",
    "skip": "SEQ(shelf a, exit e) WITHIN 150 ms PER key SKIP PAST LAST",
}
CAUSAL = "SEQ(shelf a, !till c, exit e) WITHIN 300 ms PER key CAUSAL"


def rule(name, *, delay="1 h", length="20 ms", offset=""):
    """One of RULES over shelves, till and exit."""
    return parse_rules(f"""
        STREAM shelf FROM "shelf/#" DELAY {delay} LENGTH 0 us .. {length}
        STREAM till FROM "till/tags" DELAY {delay} LENGTH 0 us .. {length} {offset}
        STREAM exit FROM "exit/tags" DELAY {delay} LENGTH 0 us .. {length}
        RULE r {RULES.get(name, name)}
    """).cep_rules[0]


def random_readings(seed, count, span_ms=1200):
    """Readings of four gateways on the ms grid, points most of them; about a tenth belongs to no rule."""
    rng = random.Random(seed)
    rows, next_seq = [], [0] * len(GATEWAYS)
    for _ in range(count):
        gateway = rng.randrange(len(GATEWAYS))
        t = EPOCH_US + rng.randrange(span_ms) * MS
        length = rng.choice([0, 0, 0, 1, 7, 20]) * MS
        stream = rng.choice([*STREAMS, *STREAMS, "dock/tags"])
        key = rng.choice(["hot", "hot", "k1", "k2", "k3", None])
        row = reading(
            f"g{gateway}", next_seq[gateway], stream, key, t, t + length, kind=rng.choice(["tag"] * 12 + ["gap"])
        )
        attrs = {"rssi": rng.choice([-60, -50.5, -40]), "antenna": rng.choice(["left", "right", 3])}
        row["attrs"] = rng.choice([None, *[json.dumps(attrs)] * 5])
        row["value"] = rng.choice([None, "3", "3.0", '"3"', "true"])
        rows.append(row)
        next_seq[gateway] += 1
    return rows


def causal_readings(seed, steps):
    """Readings in true order of gateways that send each other their facts, and the set of facts known at each reading.

    g0 to g2 are a group, whose clocks are dense; halfway g0 restarts and all are in a new view, in another order. g3 is
    in no group. The state reading that announces a view is the first of its gateway in the view.
    """
    rng = random.Random(seed)
    rows, facts, members = [], [], GATEWAYS[:3]
    boots, next_seq, view = dict.fromkeys(GATEWAYS, 1), dict.fromkeys(GATEWAYS, 0), 71
    known, counts = {}, {}

    def stamped(gateway, stream, key, kind, attrs=None):
        t = EPOCH_US + step * 5 * MS
        early, late = rng.choice([0, 3, 11]) * MS, 0 if attrs else rng.choice([0, 0, 2, 9]) * MS
        row = reading(gateway, next_seq[gateway], stream, key, t - early, t + late, boot=boots[gateway], kind=kind)
        row["attrs"] = None if attrs is None else json.dumps(attrs)
        row["vclock"] = list(counts[gateway]) if gateway in members else [0]
        next_seq[gateway] += 1
        rows.append(row)
        facts.append((view, frozenset(known[gateway])) if gateway in members else (None, frozenset()))

    def begin(gateway):
        place = members.index(gateway)
        known[gateway].add((gateway, counts[gateway][place]))
        stamped(gateway, "state", None, "state", {"$group": "all", "$view": view, "$process": place, "busy": True})

    for step in range(steps):
        if step in (0, steps // 2):
            if step:
                boots["g0"], next_seq["g0"], view, members = 7, 0, 72, members[::-1]
            known, counts = {g: set() for g in members}, {g: [0] * 3 for g in members}
            for gateway in members:
                begin(gateway)
        gateway, what = rng.choice(GATEWAYS), rng.choice(["begin", "read", "read", "read", "message", "message"])
        if what == "read":
            stamped(gateway, rng.choice(STREAMS), rng.choice(["hot", "hot", "k1", None]), "tag")
        elif gateway in members and what == "begin":
            counts[gateway][members.index(gateway)] += 1
            begin(gateway)
        elif gateway in members:
            to = rng.choice(members)
            known[to] |= known[gateway]
            counts[to] = [max(pair) for pair in zip(counts[to], counts[gateway], strict=True)]
    return rows, facts


def causal_expected(rows, facts, window_us=300 * MS):
    """The matches of CAUSAL by what each gateway knew: tuples of (name, gateway, seq)."""

    def before(x, y):
        (view, _), (its_view, knew) = facts[x], facts[y]
        x, y = rows[x], rows[y]
        if x["gateway"] == y["gateway"]:
            return (x["boot"], x["seq"]) < (y["boot"], y["seq"])
        order = GATEWAYS[:3] if view == 71 else GATEWAYS[2::-1]
        return None not in (view, its_view) and view == its_view and (
            x["gateway"], x["vclock"][order.index(x["gateway"])] + 1
        ) in knew  # fmt: skip

    def within(x, y):
        return max(r["t_min"] for r in (x, y)) - min(r["t_max"] for r in (x, y)) <= window_us

    of = {s: [i for i, r in enumerate(rows) if r["stream"].startswith(s)] for s in ("shelf", "till", "exit")}
    matches = set()
    for a, e in ((a, e) for a in of["shelf"] for e in of["exit"]):
        key = rows[a]["key"]
        if key is None or key != rows[e]["key"] or not before(a, e) or not within(rows[a], rows[e]):
            continue
        if not any(rows[c]["key"] == key and before(a, c) and before(c, e) for c in of["till"]):
            matches.add(tuple((name, rows[i]["gateway"], rows[i]["seq"]) for name, i in (("a", a), ("e", e))))
    return matches


def readings_table(job, rows):
    """Rows as the table that `events_of` takes, by plain Python."""
    rows = [r for r in rows if r["kind"] not in ("gap", "absent")]
    columns = {name: table(rows)[name] for name in STAMPED}
    for name in sources_of(job.plan(), job.count):
        if name == "vclock":
            columns[name] = table(rows)[name]
            continue
        if name.startswith("attrs:"):
            maps = [json.loads(r["attrs"] or "{}") for r in rows]
            values = [json.dumps(x[name[6:]]) if name[6:] in x else None for x in maps]
        else:
            values = [r[name] for r in rows]
        columns[name] = pa.array(values, pa.string())
    return pa.table(columns)


def views_table(rows):
    """The views that the state readings among the rows announce."""
    emitted = table([r for r in rows if r["kind"] == "state"])
    return runs_of(emitted.select(STATE))


def events_table(job, rows):
    """Rows as events."""
    return events_of(job, job.plan(), readings_table(job, rows))[0]


def expected(job, rows):
    """The matches by the definition: tuples of (name, gateway, seq)."""
    events, who = [], []
    columns, numbers = job.plan().attributes, {}
    for r in rows:
        for code, stream in enumerate(job.streams):
            if not stream.matches(r["site"], r["gateway"], r["stream"]) or r["kind"] in ("gap", "absent"):
                continue
            if job.pattern.per_key and r["key"] is None:
                continue
            t, t_max = r["t_min"] + stream.offset_us, r["t_max"] + stream.offset_us
            read = tuple(_column(name, r, t, t_max, numbers) for name in columns)
            key = numbers.setdefault(("key", r["key"]), len(numbers))
            events.append(Event(code, key, t, t_max, 0, read))
            who.append((r["gateway"], r["seq"]))
    names = job.pattern.names
    matches = final(Case(job.plan(), len(job.streams), tuple(events), k=1 << 60))
    return {tuple((names[p], *who[i]) for p, i in enumerate(row) if i >= 0) for row in matches}


def _column(column, row, t, t_max, numbers):
    name, word = split_column(column)
    if name in ("t_min", "t_max"):
        return float(t if name == "t_min" else t_max)
    if name == "value":
        value = None if row["value"] is None else json.loads(row["value"])
    elif name in row and name != "attrs":
        value = row[name]
    else:
        value = json.loads(row["attrs"] or "{}").get(name.removeprefix("attrs:"))
    if value is None:
        return math.nan
    if word is not None:
        return float(value == word)
    return float(numbers.setdefault(value, 1_000_000 + len(numbers)) if isinstance(value, str) else value)


def as_matches(rows):
    """The matches of result rows, each once, without retracted ones: tuples of (name, gateway, seq)."""
    matches, ids = set(), {}
    for row in sorted(rows.to_pylist(), key=lambda r: (r.get("batch", 0), r["status"])):
        match = tuple((e["name"], e["gateway"], e["seq"]) for e in row["events"])
        assert ids.setdefault(row["result_id"], match) == match
        if row["status"] == "match":
            assert match not in matches, f"emitted twice: {match}"
            matches.add(match)
        else:
            assert row["status"] == "retracted"
            matches.remove(match)
    return matches
