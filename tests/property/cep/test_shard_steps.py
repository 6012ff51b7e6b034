"""A rule's shard, in steps of any size, tells what all readings at once give: in every order of time, with every option.

Stamps are as long as declared, and windows shorter than stamps are drawn, so that matches wait long behind their events.
"""

from hypothesis import given, settings
from hypothesis import strategies as st

from support.cep.landing import MS, events_table, rule
from support.cloud.landing import EPOCH_US, reading
from support.search import examples
from whenabouts_cloud.cep.shard.at_once import matches_of
from whenabouts_cloud.cep.shard.shard import CepShard
from whenabouts_cloud.frontier.gateways import Watermark

CHAINS = (
    "SEQ(shelf a, exit e)", "SEQ(shelf a, !till c, exit e)", "SEQ(shelf a, exit e, !till c)",
    "SEQ(!till c, shelf a, exit e)", "SEQ(shelf{1,2} a, !till c, exit e)", "SEQ(!till c, shelf a, exit e, !till d)",
    "OR(SEQ(shelf a, exit e), SEQ(till c, exit f))", "SEQ((shelf | till) a, exit e)", "SEQ(shelf a, OR(till c, exit e))",
    "SEQ(shelf a, !(till | exit) c, exit e)",
)  # fmt: skip
WITH_AND = ("AND(shelf a, exit e)", "AND(shelf a, exit e, !till c)", "SEQ(AND(shelf a, till b), exit e)")
MODES = ("", "POSSIBLE", "OVER 30 %", "CAUSAL")
SELECTIONS = ("", "NEXT", "STRICT")
CONDITIONS = {
    "a": ("a.value > 1", "a.t_max - a.t_min < 10 ms", 'a.gateway = "g0"'),
    "e": ("e.t_min - a.t_min > 15 ms", "e.gateway != a.gateway", "a.value < e.value"),
    "c": ("c.value > 1", "c.gateway = a.gateway", "c.t_min - a.t_min > 5 ms"),
}
GATEWAYS = ("g0", "g1")
EMISSIONS = ("", "SKIP TO NEXT", "SKIP PAST LAST", "ON ARRIVAL")
SPAN_MS, END_MS = 200, 1200


@st.composite
def patterns(draw):
    """Text and longest stamp, ms. An AND in one order or the other is no pattern of uncertain order."""
    mode, selection = draw(st.sampled_from(MODES)), draw(st.sampled_from(SELECTIONS))
    is_one_order = selection and mode in ("POSSIBLE", "OVER 30 %")
    root = draw(st.sampled_from(CHAINS if is_one_order else CHAINS + WITH_AND))
    window, emission = draw(st.sampled_from(["10 ms", "40 ms", "< 40 ms", "100 ms"])), draw(st.sampled_from(EMISSIONS))
    keys = draw(st.sampled_from(["PER key", "PER key", "ACROSS KEYS"]))
    possible = [text for name, some in CONDITIONS.items() if {"a", name} <= names_in(root) for text in some]
    conditions = draw(st.lists(st.sampled_from(possible), max_size=2, unique=True)) if possible else []
    where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
    return f"{root} WITHIN {window} {keys} {mode} {selection} {emission} {where}", draw(st.sampled_from([5, 20, 50]))


def names_in(root):
    """Names of a pattern's elements, unless no alternative has all of them."""
    return set() if "OR" in root else {name for name in "ace" if f" {name}" in root}


@st.composite
def courses(draw):
    """(rule, readings in the order of their true times, steps of them and how far the watermark goes in each, ms)."""
    text, longest_ms = draw(patterns())
    drawn = []
    for _ in range(draw(st.integers(4, 14))):
        begin, length = draw(st.integers(0, SPAN_MS)), draw(st.sampled_from([0, 1, longest_ms // 2, longest_ms]))
        stream, key = draw(st.sampled_from(["shelf/1", "till/tags", "exit/tags"])), draw(st.sampled_from("kkm"))
        source = draw(st.sampled_from(GATEWAYS)), draw(st.sampled_from([None, "1", "2", "3"]))
        drawn.append((begin + draw(st.integers(0, length)), begin, begin + length, stream, key, *source))
    rows = [
        reading(gateway, seq, stream, key, EPOCH_US + begin * MS, EPOCH_US + end * MS) | {"value": value}
        for seq, (_, begin, end, stream, key, gateway, value) in enumerate(sorted(drawn, key=lambda one: one[:5]))
    ]
    steps = draw(st.lists(st.tuples(st.integers(0, 3), st.sampled_from([1, 2, 5, 20, 60])), min_size=1, max_size=40))
    return rule(text, length=f"{longest_ms} ms"), rows, steps


def found(tables):
    """The matches that are told and not retracted, each told once."""
    left = []
    for row in (row for table in tables for row in table.to_pylist()):
        match = tuple((one["name"], one["seq"]) for one in row["events"])
        if row["status"] == "match":
            left.append(match)
        else:
            left.remove(match)
    return sorted(left)


def told_in_steps(job, rows, steps):
    """Results of a shard whose gateways tell the truth, through a snapshot before every step."""
    shard, tables, reached_ms = CepShard(job), [], 0
    for count, ahead_ms in [*steps, (len(rows), END_MS), (0, END_MS + 1), (0, END_MS + 2)]:
        group, rows = rows[:count], rows[count:]
        least_ms = min(((one["t_max"] - EPOCH_US) // MS for one in rows), default=END_MS + ahead_ms)
        reached_ms = max(reached_ms, min(least_ms, reached_ms + ahead_ms))
        said = [[Watermark(f"hall/{one}", EPOCH_US + reached_ms * MS) for one in GATEWAYS] for _ in job.streams]
        again = CepShard(job)
        again.restore(shard.snapshot())
        shard, out = again, again.step({"events": events_table(job, group)}, said)
        assert not out.late.num_rows
        tables.append(out.results)
    return tables


@given(courses())
@settings(max_examples=examples(400), deadline=None)
def test_steps_tell_what_all_at_once_gives(course):
    """Nothing is told that does not hold in the end, nothing is missing, and no match is told twice."""
    job, rows, steps = course
    assert found(told_in_steps(job, rows, steps)) == found([matches_of(job, events_table(job, rows)).matches])
