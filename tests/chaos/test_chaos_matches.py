"""The definition of matches by which schedules are judged: cases that people expect, and the engine on small ones."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.cep.landing import MS, events_table
from support.cloud.landing import EPOCH_US, reading
from support.landed_readings import landed
from support.search import examples
from whenabouts_cloud.cep.shard.at_once import matches_of
from whenabouts_sim.chaos.checks.rules.matches import matches
from whenabouts_sim.chaos.parts.job_rules import MATCHES, rule
from whenabouts_sim.chaos.parts.rule_form import UNPAID, Form, StreamForm
from whenabouts_sim.chaos.schedule.forms import LEFT, OPTIONS, OVER, PATTERNS

PLACES = {"s": "shelf", "t": "till", "x": "exit"}


def readings(text):
    """From "s0 t1-3": the stream, and the stamp in ms."""
    found = []
    for number, word in enumerate(text.split()):
        begin, _, end = word[1:].partition("-")
        found.append(landed(f"{PLACES[word[0]]}/tags", number, int(begin) * MS, int(end or begin) * MS))
    return found


def found(pattern, options, some, window_ms=10):
    one = rule(MATCHES, window_ms, 100, 1000, form=Form((StreamForm(1000, 60),) * 3, pattern=pattern, options=options))
    return sorted(tuple(x.seq for x in match) for match in matches(one, some, {}))


@pytest.mark.parametrize(
    ("pattern", "options", "text", "expected"),
    [
        ("SEQ(shelf a, exit e)", "", "s0 s1 x2 x3", [(0, 2), (0, 3), (1, 2), (1, 3)]),
        ("SEQ(shelf a, exit e)", "NEXT", "s0 s1 x2 x3", [(0, 2), (1, 2)]),
        ("SEQ(shelf a, exit e)", "STRICT", "s0 s1 x2 x3", [(1, 2)]),
        ("SEQ(shelf a, exit e)", "SKIP TO NEXT", "s0 s1 x2 x3", [(0, 2), (1, 2)]),
        ("SEQ(shelf a, exit e)", "SKIP PAST LAST", "s0 s1 x2 s3 x4", [(0, 2), (3, 4)]),
        ("SEQ(shelf{1,2} a, exit e)", "NEXT", "s0 s1 x2", [(0, 1, 2), (1, 2)]),
        ("SEQ(shelf a, exit e)", "SKIP TO NEXT", "s0 x2-9 x2-3", [(0, 2)]),
        ("SEQ(shelf a, exit e)", "", "s0-5 x4-9", []),
        ("SEQ(shelf a, exit e)", "POSSIBLE", "s0-5 x4-9", [(0, 1)]),
        ("SEQ(shelf a, exit e)", "POSSIBLE", "s4-9 x0-4", []),
        ("SEQ(shelf a, exit e)", "POSSIBLE", "s0-5 x15-20", [(0, 1)]),
        ("SEQ(shelf a, exit e)", "POSSIBLE", "s0-5 x16-20", []),
        ("SEQ(shelf a, !till c, exit e)", "POSSIBLE", "s0-5 t2-3 x4-9", [(0, 2)]),
        ("SEQ(shelf a, !till c, exit e)", "POSSIBLE", "s0-2 t3-4 x5-9", []),
        ("SEQ(shelf a, !till c, exit e)", "POSSIBLE", "s0-2 t1-6 x5-9", [(0, 2)]),
        ("SEQ(shelf a, till c, exit e)", "POSSIBLE", "s0-5 t12-16 x9-15", [(0, 1, 2)]),
        ("SEQ(shelf a, till c, exit e)", "POSSIBLE", "s0-5 t15-16 x9-15", []),
        ("SEQ(shelf a, exit e, !till c)", "POSSIBLE", "s0-5 x6 t15", [(0, 1)]),
        ("SEQ(shelf a, exit e, !till c)", "POSSIBLE", "s5 x6 t15", []),
        ("SEQ(!till c, shelf a, exit e)", "POSSIBLE", "t0 s5 x10", []),
        ("SEQ(!till c, shelf a, exit e)", "POSSIBLE", "t0 s5 x10-11", [(1, 2)]),
    ],
)
def test_the_matches_are_those_that_people_expect(pattern, options, text, expected):
    assert found(pattern, options, readings(text)) == expected


@given(st.data())
@settings(max_examples=examples(800), deadline=None)
def test_the_engine_gives_the_same(data):
    """For all patterns and options of schedules: two programs that have nothing in common but the meaning of rules."""
    options = data.draw(st.sampled_from(["", *OPTIONS, *OVER]))
    pattern = LEFT if options in OVER else data.draw(st.sampled_from([UNPAID, *PATTERNS]))
    word = st.tuples(st.sampled_from("stx"), st.integers(0, 25), st.sampled_from([0, 0, 1, 3, 10]), st.integers(0, 10))
    drawn = data.draw(st.lists(word, max_size=9, unique_by=lambda one: (one[1], one[2])))
    drawn.sort(key=lambda one: one[1] + min(one[2], one[3]))  # by true times in the stamps
    some = readings(" ".join(f"{place}{begin}-{begin + length}" for place, begin, length, _ in drawn))
    window_ms = data.draw(st.sampled_from([2, 5, 15]))
    one = rule(MATCHES, window_ms, 100, 1000, form=Form((StreamForm(1000, 60),) * 3, pattern=pattern, options=options))
    rows = [reading("gw-1", x.seq, x.stream, "K", EPOCH_US + x.t_min, EPOCH_US + x.t_max) for x in some]
    told = matches_of(one, events_table(one, rows)).matches.to_pylist()
    assert found(pattern, options, some, window_ms) == sorted(tuple(e["seq"] for e in x["events"]) for x in told)
