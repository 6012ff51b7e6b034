"""The definition of matches by which schedules are judged: cases that people expect, and the engine on small ones."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.cep.landing import MS, events_table
from support.cloud.landing import EPOCH_US, reading
from support.landed_readings import landed
from support.search import examples
from whenabouts_cloud.cep.shard.at_once import matches_of
from whenabouts_sim.chaos.checks.rules.conditions import HOLDS
from whenabouts_sim.chaos.checks.rules.matches import matches
from whenabouts_sim.chaos.parts.job_rules import MATCHES, rule
from whenabouts_sim.chaos.parts.rule_form import UNPAID, Form, StreamForm
from whenabouts_sim.chaos.schedule.match_forms import CONDITIONS, LEFT, OPTIONS, OVER, PATTERNS, SHAPES, WITH_AND

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
        ("AND(shelf a, exit e)", "", "s0-5 x4-9", [(0, 1)]),
        ("AND(shelf a, exit e)", "", "x0 s10 x21", [(1, 0)]),
        ("AND(shelf a, exit e)", "", "s0-12 x6-7", [(0, 1)]),
        ("SEQ(AND(shelf a, till c), exit e)", "", "s0 t1 x2", [(0, 1, 2)]),
        ("SEQ(AND(shelf a, till c), exit e)", "", "t0 s1 x2", [(1, 0, 2)]),
        ("SEQ(AND(shelf a, till c), exit e)", "", "t0 s1-3 x2", []),
        ("SEQ(shelf a, OR(till c, exit e))", "", "s0 t1 x2", [(0, 1), (0, 2)]),
        ("SEQ((shelf | till) a, exit e)", "NEXT", "s0 t1 x2 x3", [(0, 2), (1, 2)]),
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


UNIT_MS = 40  # of the drawn stamps, so that some keep the limits of conditions and some do not


@st.composite
def rules(draw):
    """A rule of any of the patterns, options and conditions of schedules."""
    options = draw(st.just("") | st.sampled_from([*OPTIONS, *OVER]))
    shapes = [UNPAID, *PATTERNS, *SHAPES] if "SKIP" not in options else [UNPAID, *PATTERNS]
    pattern = LEFT if options in OVER else draw(st.sampled_from(shapes if options else [*shapes, *WITH_AND]))
    possible = [one for one in CONDITIONS if "c." not in one or " c" in pattern]
    is_open = "NEXT" not in options.replace("TO NEXT", "")
    where = draw(st.lists(st.sampled_from(possible), max_size=2, unique=True)) if is_open else []
    is_below = options not in OVER and draw(st.booleans())
    is_across = options in ("", "SKIP TO NEXT", "SKIP PAST LAST") and draw(st.booleans())
    window_ms = UNIT_MS * draw(st.sampled_from([2, 5, 15]))
    streams = (StreamForm(1000, 60 * UNIT_MS),) * 3
    form = Form(streams, pattern=pattern, options=options, where=tuple(where), is_below=is_below, is_across=is_across)
    return rule(MATCHES, window_ms, 100, 1000, form=form)


@st.composite
def landed_readings(draw):
    """Up to nine readings of two gateways and two keys, in the order of their true times."""
    word = st.tuples(st.sampled_from("stx"), st.integers(0, 25), st.sampled_from([0, 0, 1, 3, 10]), st.integers(0, 10))
    drawn = draw(st.lists(word, max_size=9, unique_by=lambda one: (one[1], one[2])))
    drawn.sort(key=lambda one: one[1] + min(one[2], one[3]))
    some = readings(" ".join(f"{place}{begin}-{begin + length}" for place, begin, length, _ in drawn))
    places = st.sampled_from([("hall", "gw-1"), ("shop", "gw-2")])
    moved = []
    for one in some:
        (site, gateway), key = draw(places), draw(st.sampled_from("KKM"))
        stamp = {"t_min": one.t_min * UNIT_MS, "t_max": one.t_max * UNIT_MS}
        moved.append(one._replace(site=site, gateway=gateway, key=key, **stamp))
    return moved


@given(rules(), landed_readings())
@settings(max_examples=examples(1600), deadline=None)
def test_the_engine_gives_the_same(one, some):
    """For all patterns and options of schedules: two programs that have nothing in common but the meaning of rules."""
    rows = [
        reading(x.gateway, x.seq, x.stream, x.key, EPOCH_US + x.t_min, EPOCH_US + x.t_max) | {"site": x.site}
        for x in some
    ]
    told = matches_of(one, events_table(one, rows)).matches.to_pylist()
    mine = sorted(tuple(x.seq for x in match) for match in matches(one, some, {}))
    assert mine == sorted(tuple(e["seq"] for e in x["events"]) for x in told)


def test_each_drawn_condition_has_a_meaning():
    forms = (Form(pattern="SEQ(shelf a, till c, exit e)", where=(one,)) for one in CONDITIONS)
    assert [rule(MATCHES, 10, 100, 1000, form=one).pattern.where[0].text() for one in forms] == list(HOLDS)
