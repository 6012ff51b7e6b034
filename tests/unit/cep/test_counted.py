"""Rules with COUNT: as many as the definition lists, by key and stretch of time, at once and as readings come."""

import math
import random
import subprocess
import sys
from itertools import starmap

import pyarrow as pa
import pytest

from support.cep.landing import GATEWAYS, MS, events_table, expected, random_readings, rule
from support.cloud.landing import EPOCH_US, reading
from whenabouts_cloud import cep
from whenabouts_cloud.cep import methods
from whenabouts_cloud.cep.count import counter
from whenabouts_cloud.cep.shard.counted import CountShard, counts_of
from whenabouts_cloud.cep.shard.results import COUNT
from whenabouts_cloud.frontier.gateways import Watermark
from whenabouts_cloud.rules import RuleError, parse_rules

FOREVER_US = EPOCH_US + 10**9
INNER = "SEQ(shelf a, !till c, exit e) WITHIN 300 ms PER key"
MEASURED = f"{INNER} COUNT, SUM(a.value), MIN(e.rssi), MAX(e.attrs.rssi), AVG(a.rssi) EVERY 250 ms"
REPEATED = "SEQ(till c, (shelf | exit){1,3} b) WITHIN 120 ms PER key COUNT, SUM(b.rssi) EVERY 100 ms"
ACROSS = "SEQ(till c, exit e) WITHIN 40 ms ACROSS KEYS COUNT, MAX(c.rssi) EVERY 200 ms"
TRAILING = "SEQ(shelf a, exit e, !till c) WITHIN 200 ms PER key COUNT"


def middles(rows):
    """The readings as points, each at the middle of its stamp."""
    return [r | {"t_min": m, "t_max": m} for r in rows for m in [r["t_min"] + (r["t_max"] - r["t_min"]) // 2]]


def defined(text, rows):
    """By (key, begin): matches and aggregates of what the definition lists of the middles."""
    job, points = rule(text), middles(rows)
    plain = rule(text.split(" COUNT")[0])
    of = {(r["gateway"], r["seq"]): r for r in points}
    matches_at = {}
    for match in expected(plain, points):
        events = [(name, of[gateway, seq]) for name, gateway, seq in match]
        last = max(r["t_min"] for _, r in events)
        begin = None if job.count.every_us is None else last // job.count.every_us * job.count.every_us
        key = events[0][1]["key"] if job.pattern.per_key else None
        matches_at.setdefault((key, begin), []).append(events)
    return {
        at: (len(matches), [aggregate(matches, *one) for one in job.count.aggregates])
        for at, matches in matches_at.items()
    }


def aggregate(matches, function, name, column):
    values = [number(r, column) for events in matches for its, r in events if its.partition("[")[0] == name]
    values = [x for x in values if x is not None]
    if not values:
        return None
    return {"sum": sum, "min": min, "max": max, "avg": lambda x: sum(x) / len(x)}[function](values)


def number(row, column):
    """The number that a reading has in a column: no text."""
    import json

    value = json.loads(row["value"] or "null") if column == "value" else json.loads(row["attrs"] or "{}").get(
        column.removeprefix("attrs.")
    )  # fmt: skip
    return None if value is None or isinstance(value, str) else float(value)


def as_counts(*tables):
    """By (key, begin): matches and aggregates of rows of COUNT, each key and stretch once."""
    rows = pa.concat_tables([COUNT.empty_table(), *tables]).to_pylist()
    counts = {(r["key"], r["t_min"]): (r["matches"], [x["value"] for x in r["aggregates"]]) for r in rows}
    assert len(counts) == len(rows) == len({r["result_id"] for r in rows})
    assert all(r["exact"] for r in rows)
    return counts


def equal(counts, wanted):
    assert counts.keys() == wanted.keys()
    for at, (matches, aggregates) in wanted.items():
        assert counts[at][0] == matches
        for a, b in zip(counts[at][1], aggregates, strict=True):
            assert (a is None) == (b is None)
            assert a is None or math.isclose(a, b, rel_tol=1e-12)


def watermarks(job, us):
    some = {f"hall/{g}": us for g in GATEWAYS} if isinstance(us, int) else us
    return [list(starmap(Watermark, some.items())) for _ in job.streams]


@pytest.mark.parametrize("text", [MEASURED, REPEATED, ACROSS, TRAILING, f"{INNER} COUNT"])
def test_all_at_once_is_what_the_definition_lists(text):
    """Repeats, texts and nothing among the values; stamps longer than a point at their middles."""
    job, rows = rule(text), random_readings(seed=3, count=140)
    out = counts_of(job, events_table(job, rows + rows[:30]))
    wanted = defined(text, rows)
    assert len(wanted) > 2
    equal(as_counts(out.counts), wanted)
    assert out.middles > 10


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.deep)])
@pytest.mark.parametrize("text", [MEASURED, REPEATED, ACROSS])
def test_any_arrival_with_restarts_ends_with_the_same_once(text, seed):
    """Steps in any order, watermarks ahead of readings, a snapshot before each step: each stretch is emitted once, whole."""
    job, rng = rule(text), random.Random(seed)
    rows = random_readings(seed=seed + 10, count=120)
    ordered = sorted(rows, key=lambda r: r["t_max"] + rng.choice([0, 0, 90 * MS]))
    cuts = sorted(rng.choices(range(len(rows) + 1), k=6))
    groups = [ordered[a:b] for a, b in zip([0, *cuts], [*cuts, len(rows)], strict=True)]
    shard, emitted = CountShard(job), []
    for n, group in enumerate(groups):
        open_until = {
            f"hall/{g}": min(
                (r["t_max"] for some in groups[n + 2 :] for r in some if r["gateway"] == g), default=FOREVER_US
            )
            for g in GATEWAYS
        }
        again = CountShard(job)
        again.restore(shard.snapshot())
        shard = again
        step = shard.step(
            {"events": events_table(job, group + (groups[n - 1] if n % 2 else []))}, watermarks(job, open_until)
        )
        assert not {(r["gateway"], r["seq"]) for r in group} & {(r["gateway"], r["seq"]) for r in step.late.to_pylist()}
        emitted.append(step.results)
    for n in range(2):
        emitted.append(shard.step({"events": events_table(job, [])}, watermarks(job, FOREVER_US + n)).results)
    equal(as_counts(*emitted), defined(text, rows))
    assert shard.state()["rows_kept"] == shard.state()["keys_kept"] == 0


def test_a_stretch_is_emitted_once_it_is_final_and_later_events_are_late():
    """Stamps are at most 20 ms long: the stretch to 100 ms is closed when the frontier is at 110 ms.

    0       10          100  110
    a       e           |    | emitted
    """
    job = rule("SEQ(shelf a, exit e) WITHIN 90 ms PER key COUNT EVERY 100 ms")
    begin = EPOCH_US // (100 * MS) * 100 * MS
    a, e, late = (
        reading("g0", n, s, "x", begin + t * MS, begin + t * MS)
        for n, (s, t) in enumerate([("shelf/1", 0), ("exit/tags", 10), ("exit/tags", 20)])
    )
    shard, none = CountShard(job), events_table(job, [])
    shard.step({"events": events_table(job, [a, e])}, watermarks(job, begin + 109 * MS))
    assert shard.step({"events": none}, watermarks(job, begin + 110 * MS)).results.num_rows == 0
    [row] = shard.step({"events": none}, watermarks(job, {})).results.to_pylist()
    assert (row["key"], row["matches"], row["t_min"], row["t_max"]) == ("x", 1, begin, begin + 100 * MS - 1)
    step = shard.step({"events": events_table(job, [late])}, watermarks(job, FOREVER_US))
    assert step.late["reason"].to_pylist() == ["late"]
    assert shard.step({"events": none}, watermarks(job, {})).results.num_rows == 0


def test_at_the_limit_of_the_counter_events_go_to_the_side_output(monkeypatch):
    """Nothing of the step is taken in, and all of it may come again."""
    monkeypatch.setattr(counter, "HELD_EVENTS", 50)
    job, rows = rule(MEASURED), random_readings(seed=4, count=200)
    shard = CountShard(job)
    events = events_table(job, rows)
    step = shard.step({"events": events}, watermarks(job, {}))
    assert set(step.late["reason"].to_pylist()) == {"limit"}
    assert step.late.num_rows == shard.counts["limit"] == events.num_rows > 50
    assert shard.state()["full"].startswith("held events: found 0")
    assert shard.state()["rows_kept"] == 0
    assert shard.step({"events": events.slice(0, 10)}, watermarks(job, {})).late.num_rows == 0


def test_a_count_of_all_time_is_for_a_whole_landing_only():
    """As long as readings come it is not final."""
    with pytest.raises(ValueError, match="COUNT without EVERY"):
        CountShard(rule(TRAILING))


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("COUNT, SUM(z.value)", "found z, expected one of a, e"),
        ("COUNT, SUM(c.value)", "found c, expected one of a, e"),
        ("COUNT, SUM(a.key)", "found key, expected value or an attribute"),
        ("COUNT, SUM(a.other.rssi)", "found other.rssi, expected value, an attribute or attrs.rssi"),
        ("COUNT EVERY 0 s", "found EVERY 0, expected more than 0"),
        ("ON ARRIVAL COUNT", "found COUNT with ON ARRIVAL, expected WHEN SURE"),
        ("POSSIBLE COUNT", "found POSSIBLE, expected CERTAIN"),
        ("SKIP TO NEXT COUNT", "found an after-match SKIP, expected none"),
        ("WHERE a.value < e.value COUNT", "found a condition across 2 events"),
        ("COUNT PER key", "found PER"),
        ("COUNT, SUM a.value", "found a.value, expected `(`"),
    ],
)
def test_what_cannot_be_counted_is_a_mistake_at_its_place(text, line):
    """With what was found and expected."""
    with pytest.raises(RuleError, match="(?s)" + line.replace("(", r"\(").replace("+", r"\+")):
        rule(f"SEQ(shelf a, !till c, exit e) WITHIN 300 ms {text}")


def test_every_with_a_negation_at_the_end_is_refused():
    """Such a match is certain when its window ends, not when its last event is past."""
    with pytest.raises(RuleError, match="found EVERY with a negation behind the last event"):
        rule(f"{TRAILING} EVERY 1 s")


@pytest.mark.parametrize("text", [MEASURED, REPEATED, TRAILING])
def test_a_counting_rule_is_its_text(text):
    """Parsed again it is the same rule."""
    job = rule(text)
    assert parse_rules(job.text()).cep_rules[0] == job
    assert "COUNT" in job.text()


def test_names_of_the_package_are_those_of_its_modules():
    """They are loaded on first use; an unknown name raises AttributeError."""
    assert cep.engine is methods.engine
    assert cep.detect is methods.detect
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        cep.nothing  # noqa: B018


def test_the_command_line_starts_without_numba():
    """Help and rule checks need none, and no pandas; loading one of them takes half a second and more."""
    code = "import sys, whenabouts_cloud.cli; print({'numba', 'pandas'} & set(sys.modules))"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "set()"
