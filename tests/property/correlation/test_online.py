"""A correlation fed in steps emits the rows of the batch correlation: each row once, and no row is kept needlessly."""

import dataclasses
import json
import random
from collections import Counter
from fractions import Fraction

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.cloud.landing import EPOCH_US, reading, table
from support.search import examples
from whenabouts_cloud.blobs import joined, of_bytes, parted, to_bytes
from whenabouts_cloud.correlation.pairs import READING, correlate, without_repeats
from whenabouts_cloud.correlation.stream.online import OnlineCorrelation
from whenabouts_cloud.correlation.stream.shard import CorrelationShard
from whenabouts_cloud.frontier.gateways import Watermark
from whenabouts_cloud.pattern.condition import Condition
from whenabouts_cloud.rules import CorrelateRule, Stream
from whenabouts_protocol import ratio_between

MS = 1000
PATIENT_US = 10**12  # a DELAY longer than any example: nothing is ever given up waiting for
FOREVER_US = EPOCH_US + 10**9

thresholds = st.sampled_from([Fraction(1), Fraction(4, 5), Fraction(1, 2), Fraction(1, 10)])


def rule(d_ms, ct, *, delay_us=PATIENT_US, length=None, keyed=True):
    dock = Stream("dock", "dock/tags", delay_us, length)
    shelf = Stream("shelf", "shelf/1", delay_us, length)
    return CorrelateRule("near", dock, shelf, Condition("within", d=d_ms * MS, confidence=ct), keyed)


@st.composite
def conditions(draw):
    """Every predicate; windows on both sides of zero, on one, narrow, empty but for one distance, and lopsided."""
    kind = draw(st.sampled_from(["within", "between", "between", "deadline", "delay"]))
    ct = draw(thresholds)
    first, second = sorted(draw(st.sampled_from([-120, -40, -5, 0, 3, 30, 150])) * MS for _ in range(2))
    if kind == "within":
        return Condition("within", d=second - first, confidence=ct)
    if kind == "between":
        return Condition("between", lo=first, hi=second, confidence=ct)
    if kind == "deadline":
        return Condition("deadline", d=second, window=-first, confidence=ct)
    return Condition("delay", d=first, window=second, confidence=ct)


@st.composite
def jobs(draw, delay_us=PATIENT_US):
    """Rules of every kind with offsets, lengths, keys and choice of the best."""
    offsets = [draw(st.sampled_from([0, 0, 7, -60])) * MS for _ in range(2)]
    length = draw(st.sampled_from([None, (0, 60 * MS)]))
    dock = Stream("dock", "dock/tags", delay_us, length, offset_us=offsets[0])
    shelf = Stream("shelf", "shelf/1", delay_us, length, offset_us=offsets[1])
    return CorrelateRule(
        "near", dock, shelf, draw(conditions()), draw(st.booleans()),
        kind=draw(st.sampled_from(["inner", "left", "anti"])), top_k=draw(st.sampled_from([None, None, 1, 2])),
    )  # fmt: skip


def by_definition(job, rows):
    """The result as (a, b or None) -> probability, pair by pair in exact fractions."""
    a, b = ([r for r in rows if r["stream"] == name] for name in ("dock/tags", "shelf/1"))
    shift = job.b.offset_us - job.a.offset_us
    results = {}
    for x in a:
        matched = []
        for y in b:
            if job.key_equal and (x["key"] is None or x["key"] != y["key"]):
                continue
            stamps = x["t_min"], x["t_max"], y["t_min"] + shift, y["t_max"] + shift
            p = Fraction(*ratio_between(*stamps, job.condition.lo_us, job.condition.hi_us))
            if p >= job.condition.ct:
                distance = abs(stamps[2] + stamps[3] - stamps[0] - stamps[1])
                matched.append((-p, distance, ("hall", y["gateway"], y["boot"], y["seq"])))
        best = sorted(matched)[: job.top_k]
        if job.kind != "anti":
            results |= {((x["gateway"], x["seq"]), (y[1], y[3])): float(-p) for p, _, y in best}
        if job.kind != "inner" and not matched:
            results[(x["gateway"], x["seq"]), None] = None
    return results


def as_pairs(table):
    """Rows of a result as by_definition has them."""
    return {
        ((r["a_gateway"], r["a_seq"]), None if r["b_seq"] is None else (r["b_gateway"], r["b_seq"])): r["probability"]
        for r in table.to_pylist()
    }


def side(rows, stream):
    return table(r for r in rows if r["stream"] == stream).select(READING.names)


def sides(rows):
    return side(rows, "dock/tags"), side(rows, "shelf/1")


def ids(*tables):
    return [x for t in tables for x in t["result_id"].to_pylist()]


@st.composite
def landings(draw):
    """A landing in order: readings of three gateways, their true watermarks between them, and repeats anywhere."""
    rng = draw(st.randoms(use_true_random=False))
    rows = []
    for gateway in ("g0", "g1", "g2"):
        for seq in range(draw(st.integers(0, 14))):
            t = EPOCH_US + rng.randrange(0, 400) * MS
            stream = rng.choice(["dock/tags", "shelf/1"])
            length = rng.choice([0, 0, 1, 5, 20, 60]) * MS
            rows.append(reading(gateway, seq, stream, rng.choice(["x", "y", "x", None]), t, t + length))
    events = landing_order(rows, rng, lag_ms=draw(st.sampled_from([0, 50, 400])))
    for _ in range(draw(st.integers(0, 6)) if rows else 0):
        events.insert(rng.randrange(len(events) + 1), ("repeat", rng.choice(rows)))
    return rows, events, rng


def landing_order(rows, rng, lag_ms):
    """Readings in an order that lags randomly, and after each one a watermark of its gateway for its later readings."""
    order = sorted(rows, key=lambda r: r["t_max"] + rng.randrange(lag_ms + 1) * MS)
    events = []
    for n, row in enumerate(order):
        events.append(("reading", row))
        still = [r["t_max"] for r in order[n + 1 :] if r["gateway"] == row["gateway"]]
        events.append(("watermark", (row["gateway"], min(still, default=FOREVER_US))))
    return events


def cut(events, rng):
    """Steps as a driver makes them: readings are listed first, watermarks a little later, so watermarks can run ahead."""
    at_readings = at_watermarks = 0
    while at_readings < len(events):
        readings_end = rng.randint(at_readings, min(len(events), max(at_readings, at_watermarks) + 16))
        readings_end = max(readings_end, at_watermarks)
        watermarks_end = rng.randint(readings_end, min(len(events), readings_end + 3))
        yield (
            [row for kind, row in events[at_readings:readings_end] if kind != "watermark"],
            [Watermark(f"hall/{name}", us) for kind, (name, us) in _watermarks(events[at_watermarks:watermarks_end])],
        )
        at_readings, at_watermarks = readings_end, watermarks_end
        if readings_end == len(events):
            return


def _watermarks(events):
    return [event for event in events if event[0] == "watermark"]


def tables(rows):
    """The readings as a shard is given them."""
    return dict(zip("ab", sides(rows), strict=True))


def run(job, events, rng):
    """Feed the steps to a shard that is restarted now and then; results, shard, frontiers each reading met, counts."""
    shard, results, met, counts = CorrelationShard(job), [], {}, Counter()
    births = [Watermark(f"hall/g{n}", EPOCH_US) for n in range(3)]  # a gateway nobody has heard of cannot be waited for
    shard.step(tables([]), (births, births))
    for rows, watermarks in cut(events, rng):
        for row in rows:
            n = row["stream"] != "dock/tags"
            met.setdefault((row["gateway"], row["seq"]), shard.frontiers[n].value)
        results.append(shard.step(tables(rows), (watermarks, watermarks)).results)
        if rng.random() < 0.3:
            counts += shard.online.counts
            again = CorrelationShard(job)
            again.restore(shard.snapshot())
            shard = again
    for _ in range(2):  # the end of time, and once more for it to take effect
        results.append(shard.step(tables([]), ([one._replace(us=FOREVER_US) for one in births],) * 2).results)
    return results, shard, met, counts + shard.online.counts


@pytest.mark.compiles
@given(landings(), jobs())
@settings(max_examples=examples(35), deadline=None)
def test_any_order_and_any_cut_emits_the_whole_result_once(landing, job):
    """Random arrival, random steps, watermarks before the readings they cover, repeats, restarts; every kind of rule."""
    rows, events, rng = landing
    results, shard, _, counts = run(job, events, rng)
    whole = correlate(job, *sides(rows))
    assert as_pairs(whole) == pytest.approx(by_definition(job, rows), abs=1e-12)
    assert sorted(ids(*results)) == sorted(ids(whole))
    assert counts["pairs"] + counts["unmatched"] == whole.num_rows
    # A repeat of a forgotten reading looks like a late reading; it only has no effect.
    assert counts["repeats"] + counts["expired"] == sum(kind == "repeat" for kind, _ in events)
    assert counts["late"] == counts["expired"]
    assert counts["overflow"] == 0
    assert shard.online.rows_kept == 0
    assert shard.online.snapshot()[1] == CorrelationShard(job).online.snapshot()[1], "no best pair is left behind"


@pytest.mark.compiles
@given(landings(), jobs(), st.sampled_from([0, 20 * MS, 100 * MS]))
@settings(max_examples=examples(35), deadline=None)
def test_what_is_missing_or_wrongly_unmatched_had_a_late_half_and_nothing_comes_twice(landing, job, delay_us):
    """With a DELAY that gateways overrun, only answers that a late reading would have changed differ from the whole."""
    rows, events, rng = landing
    streams = [dataclasses.replace(stream, delay_us=delay_us) for stream in (job.a, job.b)]
    job = dataclasses.replace(job, a=streams[0], b=streams[1], top_k=None)
    results, _, met, _ = run(job, events, rng)
    came = ids(*results)
    assert len(came) == len(set(came))
    emitted = {pair for table in results for pair in as_pairs(table)}
    assert not {a for a, b in emitted if b is None} & {a for a, b in emitted if b is not None}
    t_max = {(r["gateway"], r["seq"]): r["t_max"] for r in rows}
    late = {who for who, frontier in met.items() if frontier is not None and t_max[who] < frontier}
    partners = {}
    for a, b in by_definition(dataclasses.replace(job, kind="inner"), rows):
        partners.setdefault(a, set()).add(b)
    whole = set(by_definition(job, rows))
    for a, b in whole - emitted:
        # A pair is also withheld if its a was emitted as unmatched, which is right for the readings that came in time.
        assert a in late or b in late
    for a, b in emitted - whole:
        assert b is None
        assert partners[a] <= late


@given(landings(), jobs(), st.sampled_from([0, 20 * MS, 100 * MS]))
@settings(max_examples=examples(15), deadline=None)
def test_the_best_pairs_of_a_reading_are_emitted_together_and_once(landing, job, delay_us):
    """However late readings are, no reading of a gets more than k pairs, and none is both paired and unmatched."""
    _, events, rng = landing
    streams = [dataclasses.replace(stream, delay_us=delay_us) for stream in (job.a, job.b)]
    job = dataclasses.replace(job, a=streams[0], b=streams[1], top_k=1)
    results, _, _, _ = run(job, events, rng)
    emitted = Counter(a for table in results for a, _ in as_pairs(table))
    assert set(emitted.values()) <= {1}


@given(landings(), st.sampled_from([5, 40]), thresholds)
@settings(max_examples=examples(15), deadline=None)
def test_everything_landed_twice_at_the_end_changes_nothing(landing, d_ms, ct):
    """A crashed ingest repeats old files when their readings are long forgotten: nothing comes out again."""
    rows, events, rng = landing
    job = rule(d_ms, ct)
    results, shard, _, _ = run(job, events, rng)
    for _ in range(2):
        again = shard.step(tables(rows), ([], []))
        assert again.results.num_rows == 0
    assert sorted(ids(*results)) == sorted(ids(correlate(job, *sides(rows))))


def test_readings_are_forgotten_when_nothing_to_come_can_need_them():
    """d 10 ms, ct 4/5, points: longest is 25 ms, so a reading goes 70 ms behind both frontiers and not before."""
    #  a,b at 0      F at 70      F at 71 (in ms, effective)
    job = rule(10, Fraction(4, 5))
    shard = CorrelationShard(job)
    rows = [
        reading("g0", 0, "dock/tags", "x", EPOCH_US, EPOCH_US),
        reading("g0", 1, "shelf/1", "x", EPOCH_US, EPOCH_US),
    ]
    none = tables([])
    assert shard.step(tables(rows), ([], [])).results.num_rows == 1
    for ms, kept in ((70, 2), (71, 0)):
        watermarks = [Watermark("hall/g0", EPOCH_US + ms * MS)]
        shard.step(none, (watermarks, watermarks))
        assert shard.online.rows_kept == 2, "a watermark counts from the next step on"
        shard.step(none, ([], []))
        assert shard.online.rows_kept == kept


def test_a_late_reading_joins_what_is_left_and_is_counted():
    """Late by the watermark of its own stream, near a reading of the other that is still kept."""
    shard = CorrelationShard(rule(10, Fraction(4, 5)))
    other = reading("g1", 0, "shelf/1", "x", EPOCH_US + 5 * MS, EPOCH_US + 5 * MS)
    shard.step(tables([other]), ([Watermark("hall/g0", EPOCH_US + 20 * MS)], [Watermark("hall/g1", EPOCH_US)]))
    shard.step(tables([]), ([], []))
    late = reading("g0", 0, "dock/tags", "x", EPOCH_US, EPOCH_US)
    step = shard.step(tables([late]), ([], []))
    assert step.results.num_rows == 1
    assert step.late.to_pylist() == [
        {"rule": shard.online.rule.name, "reason": "late a"} | {name: late[name] for name in READING.names}
    ]
    assert shard.state()["late"] == 1
    assert shard.state()["expired"] == 0


def test_unmatched_is_emitted_when_no_later_reading_can_match_and_not_before():
    """between 5 and 10 ms, ct 1: longest is 5 ms, so a at 0 is settled once b's frontier is beyond 15 ms."""
    #  a at 0 [..] b must be within 5 .. 10, begins at most 5 before its t_max: nothing of b from 15 on can match
    dock, shelf = Stream("dock", "dock/tags", PATIENT_US), Stream("shelf", "shelf/1", PATIENT_US)
    condition = Condition("between", lo=5 * MS, hi=10 * MS, confidence=1)
    online = OnlineCorrelation(CorrelateRule("near", dock, shelf, condition, False, kind="left"))
    online.feed(*sides([reading("g0", 0, "dock/tags", "x", EPOCH_US, EPOCH_US)]))
    assert online.advance(EPOCH_US, EPOCH_US + 15 * MS).num_rows == 0
    emitted = online.advance(EPOCH_US, EPOCH_US + 15 * MS + 1)
    assert as_pairs(emitted) == {(("g0", 0), None): None}
    assert emitted["key"].to_pylist() == ["x"]
    late = reading("g1", 0, "shelf/1", "x", EPOCH_US + 7 * MS, EPOCH_US + 7 * MS)
    step = online.feed(*sides([late]))
    assert step.rows.num_rows == 0, "a reading emitted as unmatched stays unmatched"
    assert step.late["reason"].to_pylist() == ["late b"]


def test_a_reading_that_can_match_nothing_is_unmatched_at_once_and_once():
    """An unbounded clock, and a tag without a key where keys are compared."""
    job = dataclasses.replace(rule(10, "0.8"), kind="anti")
    online = OnlineCorrelation(job)
    rows = [
        reading("g0", 0, "dock/tags", "x", -(1 << 63), (1 << 63) - 1),
        reading("g0", 1, "dock/tags", None, EPOCH_US, EPOCH_US),
    ]
    assert online.feed(*sides(rows)).rows["a_seq"].to_pylist() == [0, 1]
    assert online.feed(*sides(rows)).rows.num_rows == 0
    assert online.counts["repeats"] == 2


def test_readings_that_can_match_nothing_go_first_when_room_is_short():
    """Two without a usable stamp and two with: the bound of three loses none of the useful ones."""
    online = OnlineCorrelation(dataclasses.replace(rule(10, "0.8"), kind="left"), max_rows=3)
    rows = [reading("g0", n, "dock/tags", "x", -(1 << 63), (1 << 63) - 1) for n in range(2)]
    rows += [reading("g0", n, "dock/tags", "x", EPOCH_US + n, EPOCH_US + n) for n in (2, 3)]
    online.feed(*sides(rows))
    assert online.counts["overflow"] == 1
    near = reading("g1", 0, "shelf/1", "x", EPOCH_US, EPOCH_US)
    assert online.feed(*sides([near])).rows["a_seq"].to_pylist() == [2, 3]


def test_best_pairs_that_tie_but_for_rounding_are_ranked_by_the_fractions():
    """Probabilities 1/3 in two different shapes: equal, so the nearer middle wins, whatever the rounding."""
    dock, shelf = Stream("dock", "dock/tags", 0), Stream("shelf", "shelf/1", 0)
    rows = [reading("g0", 0, "dock/tags", "x", 0, 30)]
    shapes = [(45, 75), (41, 53), (-12, 12), (27, 42), (23, 41), (40, 40), (-10, -10), (0, 90)]
    rows += [reading("g1", n, "shelf/1", "x", low, high) for n, (low, high) in enumerate(shapes)]
    for d in range(10, 40):
        for k in (1, 2, 3, 4):
            condition = Condition("within", d=d, confidence="0.05")
            job = CorrelateRule("near", dock, shelf, condition, True, top_k=k)
            assert as_pairs(correlate(job, *sides(rows))).keys() == by_definition(job, rows).keys()


def test_a_full_shard_forgets_the_readings_furthest_behind_the_frontier_and_counts_them():
    """The bound holds, what is lost is counted, and a repeat of a lost reading is not let in again."""
    online = OnlineCorrelation(rule(10**6, Fraction(1, 2)), max_rows=3)
    online.advance(EPOCH_US + 3, None)
    rows = [reading("g0", n, "dock/tags", "x", EPOCH_US + n, EPOCH_US + n) for n in range(5)]
    online.feed(*sides(rows))
    assert online.rows_kept == 3
    assert online.counts["overflow"] == 2
    online.feed(*sides(rows[:2]))
    assert online.counts["expired"] == 2
    assert online.rows_kept == 3


YEARS_US = 10 * 365 * 86_400 * 10**6


def flood(seqs, stream="dock/tags", ahead_us=YEARS_US):
    """Readings of one gateway whose clock is ahead, each at another time."""
    times = ((n, EPOCH_US + ahead_us + n * MS) for n in seqs)
    return [reading("evil", n, stream, "x", t, t) for n, t in times]


def true_pairs(count, ms=0):
    """Readings of a and b of distinct keys, 1 ms apart."""
    rows = []
    for n in range(count):
        t = EPOCH_US + (ms + n) * MS
        rows.append(reading("g0", n, "dock/tags", f"k{n}", t, t))
        rows.append(reading("g1", n, "shelf/1", f"k{n}", t + MS, t + MS))
    return rows


def messages_from_the_future(shard):
    """251 messages, eight times as many readings as the shard keeps."""
    for n in range(251):
        shard.step(tables(flood(range(n * 8, n * 8 + 8))), ([], []))


@pytest.mark.parametrize("known", [True, False], ids=["frontiers known", "no watermark yet"])
def test_readings_from_the_future_cost_no_true_pair(known):
    """More readings stamped ten years ahead than a shard keeps: the readings of others still pair, also after a restart."""
    job = rule(10, Fraction(4, 5), delay_us=1000 * MS)
    shard = CorrelationShard(job, max_rows=250)
    now = [Watermark("hall/g0", EPOCH_US), Watermark("hall/g1", EPOCH_US)] if known else []
    for _ in range(2):
        shard.step(tables([]), (now, now))
    messages_from_the_future(shard)
    assert shard.online.rows_kept == 250
    assert shard.state()["ahead"] == 251 * 8 - 250
    again = CorrelationShard(job, max_rows=250)
    again.restore(shard.snapshot())
    for one in (shard, again):
        rows = true_pairs(100)
        found = [one.step(tables(rows[n : n + 5]), (now, now)).results.num_rows for n in range(0, 200, 5)]
        assert sum(found) == 100
        assert one.state()["expired"] == 0


def test_readings_minutes_ahead_do_not_displace_those_that_wait_for_their_partner():
    """A clock nine minutes ahead, partners 20 minutes apart: the older half of a pair is not the first to go."""
    dock, shelf = Stream("dock", "dock/tags", 30_000 * MS), Stream("shelf", "shelf/1", 30_000 * MS)
    condition = Condition("between", lo=0, hi=30 * 60_000 * MS, confidence=1)
    online = OnlineCorrelation(CorrelateRule("near", dock, shelf, condition, True), max_rows=100)
    old = reading("g0", 0, "dock/tags", "k", EPOCH_US, EPOCH_US)
    online.feed(*sides([old]))
    now_us = EPOCH_US + 20 * 60_000 * MS
    online.advance(now_us, now_us)
    for n in range(20):
        online.feed(*sides(flood(range(n * 20, n * 20 + 20), ahead_us=29 * 60_000 * MS)))
    assert online.feed(*sides([reading("g1", 0, "shelf/1", "k", now_us, now_us)])).rows["a_seq"].to_pylist() == [0]


def test_a_snapshot_that_refuses_the_present_is_healed_and_counted():
    """Earlier programs raised a horizon past readings from the future: restored, it refuses nothing before the frontier."""
    job = rule(10, Fraction(4, 5), delay_us=1000 * MS)
    shard = CorrelationShard(job, max_rows=250)
    now = [Watermark("hall/g0", EPOCH_US), Watermark("hall/g1", EPOCH_US)]
    for _ in range(2):
        shard.step(tables([]), (now, now))
    messages_from_the_future(shard)
    again = CorrelationShard(job, max_rows=250)
    again.restore(with_horizons(shard.snapshot(), [EPOCH_US + YEARS_US, EPOCH_US + YEARS_US]))
    output = again.step(tables(true_pairs(100)), (now, now))
    assert output.results.num_rows == 100
    assert output.counts["healed"] == 2
    once_more = CorrelationShard(job, max_rows=250)
    once_more.restore(again.snapshot())
    assert "healed" not in once_more.state()


def test_an_unmatched_reading_is_not_certain_where_a_partner_was_lost_before_the_restart():
    """A healed horizon lets readings in again, but b's readings up to the present may be missing: nothing is unmatched."""
    dock, shelf = Stream("dock", "dock/tags", 0), Stream("shelf", "shelf/1", 0)
    job = CorrelateRule("near", dock, shelf, Condition("within", d=10 * MS, confidence=1), True, kind="anti")
    shard = CorrelationShard(job)
    now = [Watermark("hall/g0", EPOCH_US)]
    for _ in range(2):
        shard.step(tables([]), (now, now))
    again = CorrelationShard(job)
    again.restore(with_horizons(shard.snapshot(), [None, EPOCH_US + YEARS_US]))
    near, far = (reading("g0", n, "dock/tags", "x", t, t) for n, t in ((0, EPOCH_US), (1, EPOCH_US + 3_600_000 * MS)))
    later = [Watermark("hall/g0", EPOCH_US + 2 * 3_600_000 * MS)]
    emitted = [again.step(tables(rows), (later, later)).results for rows in ([near, far], [])]
    assert [seq for table in emitted for seq in table["a_seq"].to_pylist()] == [1]


def with_horizons(snapshot, horizons):
    """A shard's snapshot with these horizons."""
    readings, *rest = parted(snapshot)
    rows = of_bytes(readings)
    head = json.loads(rows.schema.metadata[b"whenabouts"]) | {"horizon": horizons}
    return joined([to_bytes(rows.replace_schema_metadata({b"whenabouts": json.dumps(head)})), *rest])


@pytest.mark.compiles
@given(landings(), jobs(), st.sampled_from([PATIENT_US, 100 * MS]), st.integers(1, 40))
@settings(max_examples=examples(25), deadline=None)
def test_whatever_is_evicted_no_horizon_passes_its_frontier_and_no_result_of_others_changes(
    landing, job, delay_us, burst
):
    """A gateway floods both streams from the future; after every step others have what they would have without it."""
    rows, events, rng = landing
    streams = [dataclasses.replace(stream, delay_us=delay_us) for stream in (job.a, job.b)]
    job = dataclasses.replace(job, a=streams[0], b=streams[1])
    alone, flooded = CorrelationShard(job), OnlineCorrelation(job, max_rows=max(len(rows), 1))
    births = [Watermark(f"hall/g{n}", EPOCH_US) for n in range(3)]
    for said in (births, []):  # until a frontier is known, nobody can tell what comes from the future
        alone.step(tables([]), (said, said))
    flooded.advance(*(frontier.value for frontier in alone.frontiers))
    sent = 0
    for some, watermarks in cut(events, rng):
        more = [row for stream in ("dock/tags", "shelf/1") for row in flood(range(sent, sent + burst), stream)]
        sent += burst
        mixed = sorted([*some, *more], key=lambda _: rng.random())
        expected = alone.step(tables(some), (watermarks, watermarks)).results
        found = flooded.feed(*sides(mixed)).rows
        found = pa.concat_tables([found, flooded.advance(*(frontier.value for frontier in alone.frontiers))])
        assert {k: p for k, p in as_pairs(found).items() if k[0][0] != "evil"} == as_pairs(expected)
        for horizon, frontier in zip(flooded._horizon, alone.frontiers, strict=True):
            assert horizon is None or horizon <= frontier.value
        assert flooded.rows_kept <= 2 * max(len(rows), 1)


def test_a_reading_longer_than_length_is_joined_and_counted():
    """LENGTH states a bound; it is not a filter."""
    job = rule(1000, Fraction(1, 2), length=(0, 10))
    online = OnlineCorrelation(job)
    rows = [
        reading("g0", 0, "dock/tags", "x", EPOCH_US, EPOCH_US + 11),
        reading("g0", 1, "shelf/1", "x", EPOCH_US, EPOCH_US),
    ]
    assert online.feed(*sides(rows)).rows.num_rows == 1
    assert online.counts["beyond_length"] == 1


def test_a_silent_gateway_holds_its_stream_by_no_more_than_the_delay():
    """g1 stops sending watermarks: F stays with it up to DELAY behind g0, then goes on without it and names it."""
    shard = CorrelationShard(rule(10, Fraction(4, 5), delay_us=100))
    none = tables([])
    for g0, expected, silent in ((150, 100, []), (200, 100, []), (201, 101, ["hall/g1"])):
        watermarks = [Watermark("hall/g0", g0), Watermark("hall/g1", 100)]
        shard.step(none, (watermarks, watermarks))
        shard.step(none, ([], []))
        assert shard.frontiers[0].value == expected
        assert shard.state()["silent"] == silent


def test_a_reading_is_no_pair_with_itself():
    """Both sides the same stream: x with y and y with x, not x with x."""
    dock = Stream("dock", "dock/tags", 0)
    job = CorrelateRule("self", dock, dock, Condition("within", d=10, confidence="0.5"), True)
    rows = side([reading("g0", n, "dock/tags", "x", n, n) for n in range(2)], "dock/tags")
    results = correlate(job, rows, rows)
    assert list(zip(results["a_seq"].to_pylist(), results["b_seq"].to_pylist(), strict=True)) == [(0, 1), (1, 0)]
    online = OnlineCorrelation(job)
    assert sorted(ids(online.feed(rows, rows).rows)) == sorted(ids(results))


def test_equal_gateway_names_of_two_sites_are_two_gateways():
    """A name is unique in its group only, so the site belongs to the identity."""
    rows = [reading("g0", 0, "dock/tags", "x", 0, 0, site=s) for s in ("hall", "yard")]
    assert without_repeats(table(rows)).num_rows == 2


def test_a_snapshot_of_another_version_is_refused():
    """The error text names the remedy."""
    online = OnlineCorrelation(rule(10, Fraction(1, 2)))
    reader = pa.ipc.open_stream(online.snapshot()[0])
    rows = reader.read_all().replace_schema_metadata({b"whenabouts": b'{"version": 99}'})
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, rows.schema) as writer:
        writer.write_table(rows)
    with pytest.raises(ValueError, match="found version 99, expected 2"):
        online.restore((out.getvalue().to_pybytes(), online.snapshot()[1]))


def test_numbers_wider_than_a_double_survive_the_state():
    """Sequence numbers above 2^53 come back as they were."""
    rng = random.Random(3)
    online = OnlineCorrelation(rule(10, Fraction(1, 2)))
    rows = [reading("g0", (1 << 60) + n, "dock/tags", "x", rng.randrange(1000), 1000) for n in range(5)]
    online.feed(*sides(rows))
    again = OnlineCorrelation(rule(10, Fraction(1, 2)))
    again.restore(online.snapshot())
    results = again.feed(*sides([reading("g1", 0, "shelf/1", "x", 500, 500)])).rows
    assert results["a_seq"].to_pylist() == [r["seq"] for r in rows]
