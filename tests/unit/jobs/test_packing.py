"""Readings and watermarks on their way to shards, and readings on their way to slabs, without Spark."""

import itertools
from collections import Counter

import pyarrow as pa
import pytest

from support.cep.landing import rule as order
from support.cloud.landing import EPOCH_US, reading, table
from whenabouts_cloud.correlation.pairs import reach_us
from whenabouts_cloud.frontier.times import INT64_MAX, INT64_MIN
from whenabouts_cloud.jobs.engines.cep import CEP
from whenabouts_cloud.jobs.engines.correlate import CORRELATION
from whenabouts_cloud.jobs.engines.engine import TimeSlab
from whenabouts_cloud.jobs.engines.sharding import shard_of_key
from whenabouts_cloud.jobs.reading.packing import COMPLETE, WATERMARKS, Packing, group_of, rule_of, tables_of
from whenabouts_cloud.jobs.reading.sizes import borders_of
from whenabouts_cloud.landing.scan import encoded
from whenabouts_cloud.rules import parse_rules

NEAR = parse_rules("""
    STREAM dock FROM "dock/tags" DELAY 1 s
    STREAM shelf FROM "shelf/#" DELAY 1 s
    RULE near CORRELATE dock AS a, shelf AS b WHERE |@a - @b| <= 1 s OVER 80 % AND a.key = b.key
""").rules[0]


def packed(batches):
    """Packed rows as dictionaries."""
    return [row for batch in batches for row in batch.to_pylist()]


def of_shard(shard, of=2):
    """A key in this shard."""
    return next(key for key in (f"k{n}" for n in range(99)) if shard_of_key(pa.chunked_array([[key]]), of)[0] == shard)


def test_a_reading_goes_to_the_shard_of_its_key_in_the_table_of_its_side():
    """Two keys, three readings: a row for each group and table, which the shard gets back as they were."""
    rows = [
        reading("g0", 0, "dock/tags", of_shard(0), 1, 2),
        reading("g1", 0, "shelf/1", of_shard(1), 3, 4),
        reading("g0", 1, "dock/tags", of_shard(0), 5, 6),
    ]
    packed_rows = packed(
        Packing(CORRELATION, {3: NEAR}, 2).readings(table(rows).cast(encoded(table(rows).schema.names)))
    )
    assert [(row["group"], row["table"]) for row in packed_rows] == [(group_of(3, 0), "a"), (group_of(3, 1), "b")]
    assert {rule_of(row["group"]) for row in packed_rows} == {3}
    tables, watermarks = tables_of(CORRELATION, NEAR, [(row["table"], row["rows"]) for row in packed_rows])
    assert tables["a"]["seq"].to_pylist() == [0, 1]
    assert tables["b"]["t_max"].to_pylist() == [4]
    assert watermarks == [[], []]


def test_a_watermark_goes_to_every_shard_of_each_rule_that_it_concerns():
    """Of three gateways one feeds a stream of the rule; a rule that is gone gets an empty row for each shard."""
    said = [
        {"site": "hall", "gateway": "g0", "frontier_us": 7, "boot": 1, "streams": ["shelf/1", "till"], "landed_us": 0},
        {"site": "hall", "gateway": "g1", "frontier_us": 8, "boot": 1, "streams": ["till"], "landed_us": 0},
        {"site": "hall", "gateway": "g2", "frontier_us": 9, "boot": 1, "streams": [], "landed_us": 0},
    ]
    for complete, name in ((False, WATERMARKS), (True, COMPLETE)):
        packed_rows = packed(Packing(CORRELATION, {0: NEAR}, 2, gone=[5]).watermarks(said, complete))
        assert [(row["group"], row["table"]) for row in packed_rows] == [
            (group_of(0, 0), name), (group_of(0, 1), name), (group_of(5, 0), ""), (group_of(5, 1), ""),
        ]  # fmt: skip
    _, watermarks = tables_of(CORRELATION, NEAR, [(row["table"], row["rows"]) for row in packed_rows[:1]])
    assert watermarks == [[], [("hall/g0", 7, 1)]]


OWNED = """
STREAM dock  FROM "dock/tags" AT SITE "hall" GATEWAY "g0" DELAY 1 s
STREAM shelf FROM "shelf/#"   AT SITE "hall" DELAY 1 s
RULE near  CORRELATE dock AS a, shelf AS b WHERE |@a - @b| <= 1 s OVER 80 % AND a.key = b.key
RULE order SEQ(dock a, shelf b) WITHIN 1 s PER key
"""


@pytest.mark.parametrize(("engine", "number"), [(CORRELATION, 0), (CEP, 1)], ids=["pairs", "events"])
def test_a_watermark_of_another_gateway_does_not_count_for_a_stream_with_an_owner(engine, number):
    """Three gateways name both streams: of the owned one counts only the owner's, of the other those of its site."""
    said = [
        {"site": site, "gateway": name, "frontier_us": us, "boot": 1} | {"streams": ["dock/tags", "shelf/1"]}
        for site, name, us in (("hall", "g0", 7), ("hall", "evil", 8), ("yard", "g0", 9))
    ]
    job = parse_rules(OWNED).rules[number]
    rows = packed(Packing(engine, {0: job}, 1).watermarks(said, complete=True))
    _, watermarks = tables_of(engine, job, [(row["table"], row["rows"]) for row in rows])
    assert watermarks == [[("hall/g0", 7, 1)], [("hall/g0", 7, 1), ("hall/evil", 8, 1)]]


def test_a_reading_of_another_gateway_is_no_event_of_a_stream_with_an_owner():
    """Readings with the owned stream's name: the owner's is an event, another gateway's and another site's are none."""
    job = parse_rules(OWNED).rules[1]
    rows = [
        reading("g0", 0, "dock/tags", "k", 1, 1),
        reading("evil", 1, "dock/tags", "k", 2, 2),
        reading("g0", 2, "dock/tags", "k", 3, 3, site="yard"),
        reading("evil", 3, "shelf/1", "k", 4, 4),
    ]
    [routed] = CEP.routed(job, CEP.readings([job], table(rows)), 1)
    assert [(r["type"], r["gateway"], r["site"]) for r in routed.rows.to_pylist()] == [
        (0, "g0", "hall"),
        (1, "evil", "hall"),
    ]


BORDERS = [INT64_MIN, EPOCH_US, EPOCH_US + 5_000_000, INT64_MAX]
TIMES = [INT64_MIN, EPOCH_US - 1, EPOCH_US, EPOCH_US + 5_000_000, INT64_MAX]


@pytest.fixture
def slabs():
    """All of time in three slabs."""
    reach = reach_us(NEAR)[0]
    return [TimeSlab(low, high, reach) for low, high in itertools.pairwise(BORDERS)]


def test_a_reading_of_a_is_in_one_slab_and_all_that_it_can_pair_with_in_the_same(slabs):
    """Readings at the borders of slabs and at the ends of time."""
    reach, shift = reach_us(NEAR)
    a = table(reading("g0", n, "dock/tags", "k0", t, t) for n, t in enumerate(TIMES))
    near = [min(max(t + shift + d, INT64_MIN), INT64_MAX) for t in TIMES for d in (-reach + 4, 0, reach - 4)]
    b = table(reading("g1", n, "shelf/1", "k0", t, t) for n, t in enumerate(near))
    in_a, in_b = (CORRELATION.inside(NEAR, name, rows) for name, rows in (("a", a), ("b", b)))
    homes = Counter()
    for slab in slabs:
        mine, others = in_a(slab), in_b(slab)
        homes.update(mine.nonzero()[0].tolist())
        assert all(others[3 * n : 3 * n + 3].all() for n in mine.nonzero()[0])
    assert homes == Counter(range(len(TIMES)))


def test_a_slab_has_the_events_that_matches_beginning_in_it_may_need():
    """An event as far behind the slab as a window reaches is in it, one further away is not."""
    job = order("inner")
    slab = TimeSlab(EPOCH_US, EPOCH_US + 1000, reach=300_000)
    at = [slab.low - slab.reach - 1, slab.low - slab.reach, slab.high + slab.reach, slab.high + slab.reach + 1]
    rows = table(reading("g0", n, "shelf/1", "k0", t, t) for n, t in enumerate(at))
    [routed] = CEP.routed(job, CEP.readings([job], rows), 1)
    assert CEP.inside(job, "events", routed.rows)(slab).tolist() == [False, True, True, False]


def test_cuts_that_lie_close_together_make_no_separate_slab():
    """Quantiles of a burst: of cuts that are not further apart than 10 the first stays."""
    assert borders_of([0, 1, 10, 11, 30, 31], apart=10) == [0, 11, 30]
