"""Rules of all three engines over one landing, and the results that their definitions give."""

import random
from collections import Counter

import pyarrow.parquet as pq

from reference.latwin import simulate
from spark.cases import same_rows, sides
from support.cep.landing import STREAMS, as_matches, expected, random_readings
from support.cloud.bucket import BucketLanding
from support.latwin.states import choices, emitted, states_of
from whenabouts_cloud.correlation.pairs import correlate
from whenabouts_cloud.rules import load_rules

GROUP = [f"g{n}" for n in range(3)]
READERS = [f"r{n}" for n in range(4)]
RULES = """
STREAM shelf FROM "shelf/#"   DELAY 1 h LENGTH 0 us .. 20 ms
STREAM till  FROM "till/tags" DELAY 1 h LENGTH 0 us .. 20 ms
STREAM exit  FROM "exit/tags" DELAY 1 h LENGTH 0 us .. 20 ms
STREAM s0 FROM "s0/state" DELAY 1 h LENGTH 0 us .. 6 ms
STREAM s1 FROM "s1/state" DELAY 1 h LENGTH 0 us .. 6 ms
STREAM s2 FROM "s2/state" DELAY 1 h LENGTH 0 us .. 6 ms
RULE near CORRELATE shelf AS a, exit AS b WHERE |@a - @b| <= 100 ms OVER 80 % AND a.key = b.key
RULE sure CORRELATE shelf AS a, till AS b WHERE |@a - @b| <= 50 ms OVER 1 AND a.key = b.key
RULE unpaid SEQ(shelf a, !till c, exit e) WITHIN 300 ms PER key
RULE together DEFINITELY s0 AND s1 AND s2 WINDOW 4 IN GROUP office
"""


def every_kind():
    """Those of readers, and states of a group."""
    tags = [row | {"gateway": f"r{row['gateway'][1:]}"} for row in random_readings(seed=8, count=160)]
    return tags, states_of(simulate(random.Random(26), 3, 90))


def pairs_of(rule, tags):
    """The pairs of a correlation by the kernel."""
    return correlate(rule, *sides(tags, rule))


def defined(rules, tags, states):
    """How many results each rule has by its definition."""
    pairs = {rule.name: pairs_of(rule, tags).num_rows for rule in rules.correlate_rules}
    return Counter(pairs, unpaid=len(expected(rules.cep_rules[0], tags)), together=len(choices(states, 3)))


def published(out):
    """How many results of each rule are in the folder."""
    emitted = Counter()
    for kind in ("pairs", "matches", "verdicts"):
        # Hidden folders come and go while the job runs: only those that are published are looked into.
        for depth in ("", "[!._]*/"):
            for batch in (out / kind).glob(f"{depth}batch=*"):
                emitted.update(pq.read_table(batch)["rule"].to_pylist())
    return emitted


def check(folder, tags, states, rules=None):
    """The results are those of the definitions, each once."""
    rules, out = load_rules(rules or folder / "rule.wa"), folder / "out"
    for rule in rules.correlate_rules:
        assert same_rows(pq.read_table(out / "pairs" / rule.name), pairs_of(rule, tags))
    assert as_matches(pq.read_table(out / "matches")) == expected(rules.cep_rules[0], tags)
    assert emitted(pq.read_table(out / "verdicts" / "together")) == choices(states, 3)
    return defined(rules, tags, states)


def watermark_bucket(landing: BucketLanding, us):
    """Land watermarks of every gateway in a bucket."""
    landing.watermark(dict.fromkeys(READERS, us), STREAMS)
    landing.watermark(dict.fromkeys(GROUP, us), [f"s{n}/state" for n in range(3)])
