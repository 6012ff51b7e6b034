"""A shard of a running rule: in any order of arrival it emits the matches of the definition once, and evicts all events."""

import random
from itertools import starmap

import numpy as np
import pyarrow as pa
import pytest

from support.cep.landing import (
    CAUSAL,
    GATEWAYS,
    MS,
    RULES,
    as_matches,
    causal_expected,
    causal_readings,
    events_table,
    expected,
    random_readings,
    rule,
    views_table,
)
from support.cloud.landing import EPOCH_US, reading
from whenabouts_cloud.blobs import parted
from whenabouts_cloud.cep.runtime import infa_hts
from whenabouts_cloud.cep.shard.at_once import matches_of
from whenabouts_cloud.cep.shard.events import schema_of, text_code
from whenabouts_cloud.cep.shard.identities import Identities, first_of_each
from whenabouts_cloud.cep.shard.results import RESULT
from whenabouts_cloud.cep.shard.shard import CepShard
from whenabouts_cloud.cep.shard.views import Views
from whenabouts_cloud.frontier.gateways import Watermark

FOREVER_US = EPOCH_US + 10**9  # less than DELAY ahead, so that DELAY does not replace a watermark


def watermarks(job, us):
    """A watermark of every gateway for every stream."""
    some = {f"hall/{g}": us for g in GATEWAYS} if isinstance(us, int) else us
    return [list(starmap(Watermark, some.items())) for _ in job.streams]


@pytest.mark.parametrize("name", sorted(RULES))
def test_all_at_once_is_the_definition(name):
    """Repeats and readings of no rule among the events."""
    job, rows = rule(name), random_readings(seed=len(name), count=110)
    matches = matches_of(job, events_table(job, rows + rows[:40])).matches
    wanted = expected(job, rows)
    assert len(wanted) > 2
    assert as_matches(matches) == wanted


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.deep) for n in (1, 2))])
@pytest.mark.parametrize("name", sorted(RULES))
def test_any_arrival_with_restarts_and_repeats_gives_the_same_once(name, seed):
    """Steps of any size in any order, truthful watermarks ahead of their readings, a snapshot restored before every step."""
    job, rng = rule(name), random.Random(seed)
    rows = random_readings(seed=seed, count=90)
    ordered = sorted(rows, key=lambda r: r["t_max"] + rng.choice([0, 0, 90 * MS]))
    cuts = sorted(rng.choices(range(len(rows) + 1), k=6))
    groups = [ordered[a:b] for a, b in zip([0, *cuts], [*cuts, len(rows)], strict=True)]
    shard, emitted = CepShard(job), []
    for n, group in enumerate(groups):
        # watermark n takes effect in step n + 1, behind its readings: it may count them
        later = [r for g in groups[n + 2 :] for r in g]
        open_until = {
            f"hall/{g}": min((r["t_max"] for r in later if r["gateway"] == g), default=FOREVER_US) for g in GATEWAYS
        }
        again = CepShard(job)
        again.restore(shard.snapshot())
        repeated = groups[n - 1] if n and rng.random() < 0.5 else []
        shard, before = again, shard
        step = shard.step({"events": events_table(job, group + repeated)}, watermarks(job, open_until))
        assert not [
            x for x in step.late.to_pylist() if (x["gateway"], x["seq"]) in {(r["gateway"], r["seq"]) for r in group}
        ]
        emitted.append(step.results.append_column("batch", pa.array([n] * step.results.num_rows, pa.int64())))
        assert before.state()["frontier_us"] is None or before.state()["frontier_us"] <= shard.state()["frontier_us"]
    for n in range(2):
        step = shard.step({"events": events_table(job, [])}, watermarks(job, FOREVER_US + n))
        emitted.append(step.results.append_column("batch", pa.array([90 + n] * step.results.num_rows, pa.int64())))
    assert as_matches(pa.concat_tables(emitted)) == expected(job, rows)
    assert shard.state()["rows_kept"] == 0


@pytest.mark.parametrize("seed", range(4))
def test_causal_order_is_what_gateways_knew_whatever_comes_when(seed):
    """Two views, a restart, a gateway in no group; readings come a step before the state reading of their view, or later."""
    job, rng = rule(CAUSAL, length="40 ms"), random.Random(seed)
    rows, facts = causal_readings(seed, 240)
    wanted = causal_expected(rows, facts)
    assert len(wanted) > 10
    known = Views()
    known.add(views_table(rows))
    result = matches_of(job, events_table(job, rows + rows[:40]), known)
    assert as_matches(result.matches) == wanted
    alone = {(r["gateway"], r["seq"]) for r in rows if r["gateway"] == "g3" and r["key"]}
    assert len(result.ungrouped) == len(alone) > 0
    reached, ordered = dict.fromkeys(GATEWAYS, 0), []
    for row in rows:  # a gateway's readings land in their order
        reached[row["gateway"]] = max(reached[row["gateway"]], row["t_max"] + rng.choice([0, 0, 90 * MS]))
        ordered.append((reached[row["gateway"]], row))
    ordered = [row for _, row in sorted(ordered, key=lambda pair: pair[0])]
    cuts = sorted(rng.choices(range(len(rows) + 1), k=6))
    groups = [ordered[a:b] for a, b in zip([0, *cuts], [*cuts, len(rows)], strict=True)]
    shard, emitted = CepShard(job), []
    views = [[r for r in group if r["kind"] == "state"] for group in groups]
    open_until = [
        {
            f"hall/{g}": min(
                (r["t_max"] for some in groups[n + 2 :] for r in some if r["gateway"] == g), default=FOREVER_US
            )
            for g in GATEWAYS
        }
        for n in range(len(groups))
    ]
    for n in range(1, len(views) - 1):  # some are listed late, unless a watermark covers them
        late = [r for r in views[n] if r["t_max"] >= open_until[n - 1][f"hall/{r['gateway']}"] and rng.random() < 0.5]
        views[n], views[n + 1] = [r for r in views[n] if r not in late], late + views[n + 1]
    for n, group in enumerate(groups):
        again = CepShard(job)
        again.restore(shard.snapshot())
        shard = again
        step = shard.step(
            {"events": events_table(job, group), "views": views_table(views[n])}, watermarks(job, open_until[n])
        )
        assert step.late.num_rows == 0
        emitted.append(step.results)
    for n in range(2):
        emitted.append(shard.step({"events": events_table(job, [])}, watermarks(job, FOREVER_US + n)).results)
    assert as_matches(pa.concat_tables(emitted)) == wanted
    assert shard.state()["rows_kept"] == 0


def test_a_reading_waits_for_its_view_no_longer_than_it_may():
    """g0 reads a, then g1 e with a clock that knows it; the state reading of g0's view never comes.

    0    5               50
    a    e               | the frontier passes a: taken in, in order with its own gateway only
    """
    job = rule(CAUSAL)
    a, e = (
        reading(f"g{n}", 4, stream, "x", EPOCH_US + t * MS, EPOCH_US + t * MS) | {"vclock": vclock}
        for n, stream, t, vclock in ((0, "shelf/1", 0, [0, 0]), (1, "exit/tags", 5, [1, 0]))
    )
    shard = CepShard(job)
    shard.step({"events": events_table(job, [a, e])}, watermarks(job, EPOCH_US + 50 * MS))
    assert (shard.state()["rows_kept"], shard.counts["readings"]) == (2, 0)
    step = shard.step({"events": events_table(job, [])}, watermarks(job, FOREVER_US))
    assert (step.results.num_rows, step.late.num_rows) == (0, 0)
    assert (shard.counts["readings"], shard.counts["ungrouped"]) == (2, 2)
    assert shard.state()["ungrouped_at"] == ["hall/g0", "hall/g1"]


def test_a_match_that_waits_for_the_end_of_its_window_is_emitted_by_a_watermark_without_events():
    """shelf 0, exit 50 ms, window 200 ms: till may still come until 200 ms, and 20 ms is the longest stamp.

    0        50                  200   220
    a -------- e ................ |     | emitted
    """
    job = rule("trailing")
    rows = [
        reading("g0", 0, "shelf/1", "x", EPOCH_US, EPOCH_US),
        reading("g1", 0, "exit/tags", "x", EPOCH_US + 50 * MS, EPOCH_US + 50 * MS),
    ]
    shard, none = CepShard(job), events_table(job, [])
    assert shard.step({"events": events_table(job, rows)}, watermarks(job, EPOCH_US + 220 * MS)).results.num_rows == 0
    assert shard.step({"events": none}, watermarks(job, EPOCH_US + 220 * MS + 1)).results.num_rows == 0, (
        "till may end at 220"
    )
    step = shard.step({"events": none}, watermarks(job, FOREVER_US))
    [row] = step.results.to_pylist()
    assert (row["key"], row["status"], row["t_min"], row["t_max"]) == ("x", "match", EPOCH_US, EPOCH_US + 50 * MS)
    assert [e["name"] for e in row["events"]] == ["a", "e"]
    assert step.results.schema == RESULT
    assert row["probability"] == 1.0


def test_a_match_emitted_on_arrival_is_retracted_once():
    """exit, then the till in between, then the till again as a repeat: one match, one retraction of the same id."""
    job = rule("arrival")
    a, c, e = (
        reading(f"g{n}", 0, stream, "x", EPOCH_US + n * MS, EPOCH_US + n * MS)
        for n, stream in enumerate(["shelf/1", "till/tags", "exit/tags"])
    )
    shard, none = CepShard(job), watermarks(job, {})
    [emitted] = shard.step({"events": events_table(job, [e, a])}, none).results.to_pylist()
    [back] = shard.step({"events": events_table(job, [c])}, none).results.to_pylist()
    assert shard.step({"events": events_table(job, [c])}, none).results.num_rows == 0
    assert (emitted["probability"], back) == (1.0, emitted | {"status": "retracted", "probability": None})
    assert shard.counts["repeats"] == 1


def test_a_late_event_goes_to_the_side_output_with_what_it_would_have_changed():
    """The match with the exit is emitted; then a till in between arrives behind the frontier."""
    job = rule("inner")
    a, c, e = (
        reading(f"g{n}", 7, stream, "x", EPOCH_US + n * MS, EPOCH_US + n * MS)
        for n, stream in enumerate(["shelf/1", "till/tags", "exit/tags"])
    )
    shard = CepShard(job)
    shard.step({"events": events_table(job, [a, e])}, watermarks(job, EPOCH_US + 100 * MS))
    [emitted] = shard.step({"events": events_table(job, [])}, watermarks(job, EPOCH_US + 101 * MS)).results.to_pylist()
    step = shard.step({"events": events_table(job, [c])}, watermarks(job, {}))
    assert step.results.num_rows == 0
    [late] = step.late.to_pylist()
    assert (late["reason"], late["gateway"], late["seq"]) == ("late", "g1", 7)
    assert step.effects.to_pylist() == [emitted | {"status": "late removed", "probability": None}]


def test_a_stamp_that_begins_too_early_and_ends_in_time_is_not_late():
    """It goes to the side output because it is longer than LENGTH; only the reading that ended too early counts as late."""
    job = rule("inner")
    early, long = (
        reading("g1", n, "till/tags", "x", EPOCH_US - 3_600_000 * MS, EPOCH_US + end * MS)
        for n, end in enumerate([1, 500])
    )
    shard, none = CepShard(job), watermarks(job, {})
    for _ in range(2):
        shard.step({"events": events_table(job, [])}, watermarks(job, EPOCH_US + 100 * MS))
    step = shard.step({"events": events_table(job, [early, long])}, none)
    assert sorted(step.late["reason"].to_pylist()) == ["beyond length", "late"]
    assert (shard.counts["late"], step.late.num_rows) == (1, 2)


@pytest.mark.parametrize(("over", "matches"), [("87 %", 1), ("88 %", 0)])
def test_over_gives_the_probability_of_a_match(over, matches):
    """shelf in [0, 10] ms, exit in [5, 15] ms: 1 - 25 / 200 = 0.875, exactly, though bounds would decide it."""
    job = rule(f"SEQ(shelf a, exit e) WITHIN 1 s PER key OVER {over}")
    rows = [
        reading("g0", n, s, "x", EPOCH_US + t * MS, EPOCH_US + (t + 10) * MS)
        for n, (s, t) in enumerate([("shelf/1", 0), ("exit/tags", 5)])
    ]
    emitted = CepShard(job).step({"events": events_table(job, rows)}, watermarks(job, {})).results
    assert emitted["probability"].to_pylist() == pytest.approx([0.875] * matches, abs=1e-11)
    assert matches_of(job, events_table(job, rows)).matches.equals(emitted)


@pytest.mark.parametrize("mode", ["POSSIBLE", "CAUSAL"])
def test_modes_without_a_probability_emit_none(mode):
    """POSSIBLE needs only some choice of times, CAUSAL no times."""
    job = rule(f"SEQ(shelf a, exit e) WITHIN 1 s PER key {mode}")
    rows = [
        reading("g0", n, s, "x", EPOCH_US + n * MS, EPOCH_US + (n + 5) * MS)
        for n, s in enumerate(["shelf/1", "exit/tags"])
    ]
    assert matches_of(job, events_table(job, rows)).matches["probability"].to_pylist() == [None]


def exits(count):
    """One shelf, then so many exits of its key."""
    rows = [reading("g0", 0, "shelf/1", "x", EPOCH_US, EPOCH_US)]
    return rows + [reading("g0", n, "exit/tags", "x", EPOCH_US + n, EPOCH_US + n) for n in range(1, count)]


def test_more_matches_than_a_block_may_emit_come_in_parts(monkeypatch):
    """300 matches of one step, at most 64 or so in a block: all are emitted, once."""
    monkeypatch.setattr(infa_hts, "BLOCK_MATCHES", 64)
    job = rule("SEQ(shelf a, exit e) WITHIN 1 s PER key")
    shard = CepShard(job)
    step = shard.step({"events": events_table(job, exits(301)[::-1])}, watermarks(job, {}))
    assert step.results.num_rows == len(as_matches(step.results)) == 300
    assert (step.late.num_rows, shard.state()["full"]) == (0, "")


def test_events_at_the_limit_of_stored_events_go_to_the_side_output_until_there_is_room(monkeypatch):
    """The limit or a few more are stored; the rest goes to the side output with its reason, and comes in again later."""
    monkeypatch.setattr(infa_hts, "STORED_EVENTS", 1000)
    job = rule("SEQ(till c, exit e) WITHIN 10 ms PER key")
    rows = exits(6000)
    shard = CepShard(job)
    step = shard.step({"events": events_table(job, rows)}, watermarks(job, EPOCH_US + 5000))
    aside = step.late.num_rows
    assert set(step.late["reason"].to_pylist()) == {"limit"}
    assert (shard.counts["limit"], shard.state()["rows_kept"]) == (aside, 5999 - aside)
    assert shard.state()["full"].startswith("stored events: found 1")
    assert shard.step({"events": events_table(job, rows[-1:])}, watermarks(job, FOREVER_US)).late.num_rows == 1
    assert shard.step({"events": events_table(job, [])}, watermarks(job, {})).late.num_rows == 0
    late = [r | {"t_min": FOREVER_US + 1, "t_max": FOREVER_US + 1} for r in rows[-3:]]
    again = CepShard(job)
    again.restore(shard.snapshot())
    assert again.step({"events": events_table(job, late)}, watermarks(job, {})).late.num_rows == 0
    assert again.state()["rows_kept"] == 3


@pytest.mark.parametrize("ahead_us", [10**15, (1 << 59) - EPOCH_US - 1000], ids=["30 years", "the last time"])
def test_events_from_the_future_make_no_event_of_others_late(ahead_us):
    """Only watermarks move the frontier: the limit on times is what keeps an event's own time from moving it."""
    job = rule("SEQ(shelf a, exit e) WITHIN 1 s PER key")
    shard = CepShard(job)
    now = watermarks(job, EPOCH_US)
    for part in range(3):
        times = range(EPOCH_US + ahead_us + part * 100, EPOCH_US + ahead_us + part * 100 + 100)
        flood = [reading("evil", t - EPOCH_US, "exit/tags", "x", t, t) for t in times]
        shard.step({"events": events_table(job, flood)}, now)
    again = CepShard(job)
    again.restore(shard.snapshot())
    step = again.step({"events": events_table(job, exits(301)[::-1])}, now)
    step = [step, again.step({"events": events_table(job, [])}, watermarks(job, FOREVER_US))]
    step.append(again.step({"events": events_table(job, [])}, now))
    assert sum(one.results.num_rows for one in step) == 300
    assert sum(one.late.num_rows for one in step) == 0


def test_a_stamp_that_is_no_time_goes_to_the_side_output():
    """The stamp of an unbounded clock covers all of time."""
    job = rule("inner")
    row = reading("g0", 0, "shelf/1", "x", -(1 << 63), (1 << 63) - 1)
    shard = CepShard(job)
    step = shard.step({"events": events_table(job, [row])}, watermarks(job, {}))
    assert step.late["reason"].to_pylist() == ["beyond time"]
    assert shard.state()["beyond_time"] == 1
    assert shard.state()["rows_kept"] == 0


def test_a_stream_without_a_watermark_is_named_and_waited_for():
    """No gateway has the till: the frontier is unknown, and the state names the stream."""
    job = rule("inner")
    shard = CepShard(job)
    for n in range(2):
        shard.step(
            {"events": events_table(job, [])},
            [[Watermark("hall/g0", FOREVER_US + n)], [], [Watermark("hall/g0", FOREVER_US + n)]],
        )
    assert shard.state()["frontier_us"] is None
    assert shard.state()["unheard"] == ["till"]


def test_an_offset_moves_the_times_compared_and_not_those_emitted():
    """The till's clock is 100 ms fast: what it stamps 105 ms happened at 5 ms, between shelf and exit."""
    job = rule("inner", offset="OFFSET -100 ms")
    a, e = (
        reading("g0", n, s, "x", EPOCH_US + t, EPOCH_US + t)
        for n, (s, t) in enumerate([("shelf/1", 0), ("exit/tags", 9 * MS)])
    )
    c = reading("g0", 2, "till/tags", "x", EPOCH_US + 105 * MS, EPOCH_US + 105 * MS)
    assert matches_of(job, events_table(job, [a, c, e])).matches.num_rows == 0
    c["t_min"] = c["t_max"] = EPOCH_US + 5 * MS
    assert matches_of(job, events_table(job, [a, c, e])).matches.num_rows == 1


def test_short_lived_keys_leave_nothing_behind():
    """50 000 keys of one reading each, in ten steps: what is kept is the last step's, and in the end nothing."""
    job, sizes = rule("inner"), []
    shard = CepShard(job)
    for n in range(10):
        count = 5000
        t = EPOCH_US + n * 1000 * MS + np.arange(count)
        events = pa.table(
            {
                "type": np.zeros(count, np.int16), "site": ["hall"] * count, "gateway": ["g0"] * count,
                "boot": np.ones(count, np.int64), "seq": n * count + np.arange(count), "stream": ["shelf/1"] * count,
                "key": [f"k{n}-{i}" for i in range(count)], "t_min": t, "t_max": t,
            }
        ).cast(schema_of(job.plan()))  # fmt: skip
        shard.step({"events": events}, watermarks(job, EPOCH_US + n * 1000 * MS + 900 * MS))
        sizes.append(len(shard.snapshot()))
    assert shard.state()["rows_kept"] <= 2 * 5000
    assert max(sizes[5:]) <= 1.2 * max(sizes[:5])
    for n in range(2):
        shard.step({"events": events.slice(0, 0)}, watermarks(job, FOREVER_US + n))
    assert shard.state()["rows_kept"] == shard.state()["keys_kept"] == 0
    assert len(parted(shard.snapshot())[1]) < 8192, "names of gateways and streams, no more"


def test_an_event_costs_few_bytes_to_know():
    """Arrays, no objects: at most 48 bytes beside the engine's."""
    job = rule("inner")
    stored = Identities(job)
    stored.add(events_table(job, random_readings(seed=1, count=500)))
    assert stored.nbytes <= 48 * len(stored)


@pytest.mark.parametrize("far", [0, 1 << 62])
def test_the_first_of_each_identity_is_kept_however_far_the_numbers_lie_apart(far):
    """Packed into one number where that fits, else compared as two."""
    rng = np.random.default_rng(3)
    group, number = rng.integers(0, 5, 300), rng.integers(0, 20, 300)
    number[::2] += far
    seen, first = set(), []
    for at, one in enumerate(zip(group.tolist(), number.tolist(), strict=True)):
        if one not in seen and at >= 50:
            first.append(at - 50)
        seen.add(one)
    assert first_of_each(group, number, 50).tolist() == first


@pytest.mark.parametrize(
    ("pattern", "rows"),
    [
        ("SEQ(shelf a, !till c, exit e) WITHIN 100 ms PER key POSSIBLE", [("shelf/1", 0, 0), ("exit/tags", 90, 140)]),
        ("SEQ(shelf a, !till c, exit e) WITHIN 100 ms PER key OVER 5 %", [("shelf/1", 0, 0), ("exit/tags", 90, 140)]),
        ("AND(shelf a, exit e) WITHIN 100 ms PER key SKIP TO NEXT", [("exit/tags", 0, 0), ("shelf/1", 100, 100)]),
    ],
)
def test_a_match_that_waits_keeps_its_events_however_long(pattern, rows):
    """The gap ends with the longest stamp behind exit, or the match that begins with shelf may not be the first."""
    assert results_by_the_ms(rule(pattern, length="50 ms"), rows, 1) == 1


def test_a_gap_between_true_times_is_known_whenever_the_job_runs():
    """Shelf and exit happened at the ends of their stamps that are further apart than the window, and till in between."""
    rows = [("shelf/1", 0, 50), ("till/tags", 0, 1), ("exit/tags", 150, 200)]
    job = rule("SEQ(shelf a, !till c, exit e) WITHIN 100 ms PER key CAUSAL", length="50 ms")
    assert [results_by_the_ms(job, rows, every_ms) for every_ms in (1, 7, 1000)] == [0, 0, 0]


def results_by_the_ms(job, rows, every_ms):
    """Number of matches of readings (stream, begin, end in ms) of one gateway, its watermark raised so far in each step."""
    readings = [
        reading("g0", n, stream, "k", EPOCH_US + a * MS, EPOCH_US + b * MS) for n, (stream, a, b) in enumerate(rows)
    ]
    begin_ms, shard = max(b for *_, b in rows), CepShard(job)
    steps = [shard.step({"events": events_table(job, readings)}, watermarks(job, EPOCH_US + begin_ms * MS))]
    for us in range(begin_ms + 1, begin_ms + 300 + 2 * every_ms, every_ms):
        steps.append(shard.step({"events": events_table(job, [])}, watermarks(job, EPOCH_US + us * MS)))
    return sum(step.results.num_rows for step in steps)


def test_identities_are_found_by_number_after_some_are_forgotten_and_a_restart():
    """Keys keep their numbers while they have events; names are those of the readings."""
    job = rule("across")
    rows = sorted(random_readings(seed=5, count=80), key=lambda r: r["t_max"])
    events = events_table(job, rows)
    stored = Identities(job)
    stored.add(events)
    border = events["t_max"][40].as_py()
    stored.keep_from(border)
    again = Identities(job)
    again.restore(stored.snapshot())
    left = np.flatnonzero(events["t_max"].to_numpy() >= border)
    assert len(again) == len(left) < events.num_rows
    wanted = events.take(pa.array(left)).to_pylist()
    assert again.rows(left).to_pylist() == [{k: v for k, v in x.items() if not k.startswith("@")} for x in wanted]
    with pytest.raises(LookupError):
        again.rows(np.array([0]))
    assert again.add(events.take(pa.array(left)))[0].tolist() == []
    more = again.add(events)
    assert len(more[0]) == events.num_rows - len(left), "what is forgotten is new"


def test_texts_have_numbers_that_a_double_holds():
    """Equal texts have equal numbers, in any process."""
    assert text_code("left") == text_code("left") != text_code("right")
    assert text_code("left") == int(text_code("left")) < 1 << 53
