"""Readings for the Spark tests: many gateways, equal stamps, skewed keys, a slab border under every pair."""

import random

from support.cloud.landing import EPOCH_US, reading, table
from whenabouts_cloud.correlation.pairs import READING
from whenabouts_cloud.rules import parse_rules

MS = 1000

RULES = {
    "keyed": "WHERE |@a - @b| <= 400 ms OVER 80 % AND a.key = b.key",
    "keyless": "WHERE |@a - @b| <= 30 ms OVER 50 %",
    "sure": "WHERE |@a - @b| <= 500 ms OVER 1 AND a.key = b.key",
    "short": "WHERE |@a - @b| <= 10 ms OVER 5 % AND a.key = b.key",
}


def rule(name, *, delay="1 h", length=""):
    """One of RULES over the dock and every shelf."""
    return parse_rules(f"""
        STREAM dock FROM "dock/tags" DELAY {delay} {length}
        STREAM shelf FROM "shelf/#" DELAY {delay} {length}
        RULE {name} CORRELATE dock AS a, shelf AS b {RULES[name]}
    """).rules[0]


def random_readings(seed, count, span_ms=4000):
    """Readings of five gateways on the ms grid, points among them; half of them carry the same key."""
    rng = random.Random(seed)
    rows, next_seq = [], [0] * 5
    for _ in range(count):
        gateway = rng.randrange(5)
        t = EPOCH_US + rng.randrange(span_ms) * MS
        length = rng.choice([0, 0, 1, 20, 100, 100, 300]) * MS
        stream = rng.choice(["dock/tags", "shelf/1", "shelf/2/left", "shelf", "gate/tags"])
        key = rng.choice(["hot"] * 5 + ["k1", "k2", "k3", None])
        kind = rng.choice(["tag"] * 12 + ["gap", "absent"])
        rows.append(reading(f"g{gateway}", next_seq[gateway], stream, key, t, t + length, kind=kind))
        next_seq[gateway] += 1
    return rows


def sides(rows, job):
    """The readings of a rule's two streams, chosen by plain Python."""
    events = [r for r in rows if r["kind"] not in ("gap", "absent")]
    return [
        table(r for r in events if stream.matches(r["site"], r["gateway"], r["stream"])).select(READING.names)
        for stream in (job.a, job.b)
    ]


def same_rows(one, other):
    """True if two result tables hold the same rows, in any order."""
    columns = [name for name in one.schema.names if name != "batch"]
    first, second = (t.select(columns).combine_chunks().sort_by("result_id").to_pylist() for t in (one, other))
    return first == second
