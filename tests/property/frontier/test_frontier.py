"""Frontiers of streams, rules and groups (`whenabouts_cloud.frontier`): their definitions, and never too high."""

import json
from itertools import starmap

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from reference.frontier import Step, rule_frontier, silent, stream_frontier
from reference.frontier import group_frontier as group_definition
from support.search import examples
from whenabouts_cloud.frontier.gateways import Watermark, Watermarks, gateways_of
from whenabouts_cloud.frontier.processes import group_frontier, process_frontiers, silent_processes
from whenabouts_cloud.frontier.rule import RuleFrontier
from whenabouts_cloud.frontier.stream import StreamFrontier
from whenabouts_cloud.frontier.times import FURTHEST_US, INT64_MAX
from whenabouts_cloud.rules import parse_rules

GATEWAYS = ("s/g0", "s/g1", "t/g0")
SOME = st.lists(st.sampled_from(GATEWAYS), max_size=3)
TIMES = st.integers(-30, 30) | st.sampled_from((-INT64_MAX, -FURTHEST_US, FURTHEST_US, INT64_MAX))
STEPS = st.lists(
    st.builds(Step, SOME, st.lists(st.tuples(st.sampled_from(GATEWAYS), TIMES), max_size=4)), min_size=1, max_size=8
)
SCHEMA = pa.schema([("type", pa.int16()), ("site", pa.string()), ("gateway", pa.string())])
DELAYS = st.sampled_from((0, 1, 7, 25, 10**6))


def advance(frontier: StreamFrontier, step: Step) -> None:
    """One step, in the order in which shards do it."""
    frontier.seen(step.gateways)
    frontier.take_effect()
    for gateway, us in step.watermarks:
        frontier.note_watermark(gateway, us)


@given(STEPS, DELAYS)
@settings(max_examples=examples(1000), deadline=None)
def test_a_stream_s_frontier_is_its_definition_after_every_step(steps, delay_us):
    """Value and silent gateways, through a snapshot as JSON at every step."""
    frontier = StreamFrontier(delay_us)
    for n, step in enumerate(steps, 1):
        again = StreamFrontier(delay_us)
        again.restore(json.loads(json.dumps(frontier.snapshot())))
        for one in (frontier, again):
            advance(one, step)
            assert one.value == stream_frontier(steps[:n], delay_us)
            assert one.silent == silent(steps[:n], delay_us)


@given(STEPS, DELAYS)
@settings(max_examples=examples(500), deadline=None)
def test_a_frontier_never_falls(steps, delay_us):
    """With gateways that appear late, and watermarks in any order."""
    frontier, before = StreamFrontier(delay_us), None
    for step in steps:
        advance(frontier, step)
        assert before is None or frontier.value >= before
        before = frontier.value


@st.composite
def worlds(draw):
    """Gateways that keep their word: readings (gateway, t_max), visible from a step on, and listings of them.

    In each step a driver lists readings, then watermarks. In between more may become visible: a watermark may so cover a
    reading that is listed in the next step. A watermark is true of what its gateway has made visible until then.
    """
    pending = {name: draw(st.lists(st.integers(0, 40), max_size=6)) for name in GATEWAYS}
    visible: list[tuple[str, int]] = []
    steps = []

    def publish() -> None:
        for name, times in pending.items():
            for _ in range(draw(st.integers(0, len(times)))):
                visible.append((name, times.pop(draw(st.integers(0, len(times) - 1)))))

    for _ in range(draw(st.integers(1, 6))):
        publish()
        listed, visible = visible, []
        publish()
        watermarks = [
            (name, draw(st.integers(0, min(times, default=50))))
            for name, times in pending.items()
            if draw(st.booleans())
        ]
        steps.append((listed, watermarks))
    return steps


@given(worlds())
@settings(max_examples=examples(1000), deadline=None)
def test_no_reading_comes_below_the_frontier_of_gateways_that_keep_their_word(steps):
    """As long as no gateway is given up for silence, and all have spoken: the heart of what engines rely on."""
    frontier = StreamFrontier(delay_us=1000)
    frontier.seen(GATEWAYS)
    for listed, watermarks in steps:
        passed = frontier.value
        assert all(passed is None or t_max >= passed for _, t_max in listed)
        advance(frontier, Step([name for name, _ in listed], watermarks))


@given(st.tuples(STEPS, STEPS), st.tuples(DELAYS, DELAYS), st.tuples(st.integers(-50, 50), st.integers(-50, 50)))
@settings(max_examples=examples(500), deadline=None)
def test_a_rule_s_frontier_is_the_least_of_its_streams(streams, delays_us, offsets_us):
    """Each moved by its OFFSET, within the times that engines take; through a snapshot at every step."""
    rule = parse_rules(
        "".join(
            f'STREAM {name} FROM "{name}" DELAY {delay} us OFFSET {offset} us\n'
            for name, delay, offset in zip("xy", delays_us, offsets_us, strict=True)
        )
        + "RULE r SEQ(x, y) WITHIN 1 s"
    ).rules[0]
    length = max(map(len, streams))
    streams = [[*steps, *[Step([], [])] * (length - len(steps))] for steps in streams]
    frontier = RuleFrontier(rule)
    for n in range(length):
        again = RuleFrontier(rule)
        again.restore(frontier.snapshot())
        now = [steps[n] for steps in streams]
        events = [(number, *name.split("/")) for number, step in enumerate(now) for name in step.gateways]
        table = pa.Table.from_pylist([dict(zip(SCHEMA.names, event, strict=True)) for event in events], SCHEMA)
        for one in (frontier, again):
            one.note_watermarks(table, [list(starmap(Watermark, step.watermarks)) for step in now])
            past = [steps[: n + 1] for steps in streams]
            assert one.value_us == rule_frontier(past, [*delays_us], [*offsets_us], FURTHEST_US)


PROCESSES = st.lists(st.tuples(st.none() | TIMES, DELAYS, st.integers(-50, 50)), min_size=2, max_size=4)


@given(PROCESSES)
@settings(max_examples=examples(1000), deadline=None)
def test_a_group_s_frontier_is_its_definition(processes):
    """Of processes with and without watermarks; silent are those that would hold it back if they were waited for longer."""
    watermarks_us, delays_us, offsets_us = (list(column) for column in zip(*processes, strict=True))
    frontier_us = group_frontier(watermarks_us, delays_us, offsets_us)
    assert frontier_us == group_definition(watermarks_us, delays_us, offsets_us, FURTHEST_US)
    for n, is_silent in enumerate(silent_processes(watermarks_us, offsets_us, frontier_us)):
        patient = [*delays_us[:n], 1 << 70, *delays_us[n + 1 :]]
        held_us = group_definition(watermarks_us, patient, offsets_us, FURTHEST_US)
        if watermarks_us[n] is None:
            assert not is_silent
        elif frontier_us >= -FURTHEST_US:
            assert is_silent == (held_us < frontier_us)
    assert None not in process_frontiers(watermarks_us, delays_us) or set(watermarks_us) == {None}


def test_watermarks_count_one_step_after_they_were_noted():
    """And the greatest counts, not the last."""
    watermarks = Watermarks()
    watermarks.note("s/g", 5)
    watermarks.note("s/g", 3)
    assert watermarks.in_effect == {}
    watermarks.take_effect()
    watermarks.note("s/g", 4)
    watermarks.take_effect()
    assert watermarks.in_effect == {"s/g": 5}


def test_gateways_are_named_by_site_and_gateway_once_each():
    """Of dictionaries and plain texts alike."""
    rows = pa.table({"site": ["s", "s", "t"], "gateway": ["g", "g", "g"]})
    assert sorted(gateways_of(rows)) == ["s/g", "t/g"]
    coded = pa.table({name: rows[name].dictionary_encode() for name in rows.column_names})
    assert sorted(gateways_of(coded)) == ["s/g", "t/g"]
