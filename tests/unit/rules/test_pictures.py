"""Pictures of rules: what they show is what the rule does, whatever its names are."""

from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.search import examples
from whenabouts_cloud.rules import parse_rules
from whenabouts_cloud.rules.pair_picture import HEIGHT, WIDTH, curves
from whenabouts_cloud.rules.pictures import picture

SVG = "{http://www.w3.org/2000/svg}"
STREAMS = """
STREAM x FROM "x" DELAY 1 s LENGTH {x}
STREAM y FROM "y" DELAY 1 s LENGTH {y} OFFSET -7 s
STREAM p FROM "p" AT SITE "<b>" DELAY 1 s
STREAM q FROM "q" DELAY 1 s
"""


def rule(text, x="0 us .. 5 us", y="3 us .. 4 us"):
    return parse_rules(f"{STREAMS.format(x=x, y=y)}\nRULE r {text}").rules[0]


def texts(drawn):
    return [x.text for x in ET.fromstring(drawn).iter(f"{SVG}text")]


limits = st.tuples(st.integers(-20, 20), st.integers(0, 25)).map(lambda x: (x[0], x[0] + x[1]))
lengths = st.tuples(st.integers(0, 9), st.integers(0, 9)).map(sorted)


@settings(max_examples=examples(100), deadline=None)
@given(limits, st.sampled_from(["0.05", "0.5", "0.8", "1"]), lengths, lengths)
def test_a_curve_is_the_probability_and_its_reach_where_it_is_a_pair(limit, ct, x, y):
    """By brute force over all distances of middles; offsets move the stamps, not the condition."""
    job = rule(
        f"CORRELATE x AS a, y AS b WHERE @b - @a IN [{limit[0]} us, {limit[1]} us] OVER {ct}",
        f"{x[0]} us .. {x[1]} us",
        f"{y[0]} us .. {y[1]} us",
    )
    condition = job.condition
    for one in curves(job):
        a, b = one.lengths_us
        pairs = []
        for doubled, p in one.points:
            if (doubled + a + b) % 2 == 0:  # else the middles cannot be that far apart
                first = (doubled + a - b) // 2
                assert p == condition.probability(0, a, first, first + b)
        for first in range(-80, 80):
            if condition.holds(0, a, first, first + b):
                pairs.append(2 * first + b - a)
        if one.reach_us is None:
            assert not pairs
        elif pairs:
            low, high = one.reach_us
            assert (min(pairs), max(pairs)) == pytest.approx((2 * low, 2 * high), abs=1)


def test_the_probability_is_drawn_with_its_threshold_and_limits():
    """Numbers are below the graph; all lines are inside it."""
    drawn = picture(rule("CORRELATE x AS a, y AS b WHERE |@a - @b| <= 10 s OVER 80 % AND a.key = b.key", "0 s .. 2 s"))
    root = ET.fromstring(drawn)
    said = texts(drawn)
    assert said[0] == "r: @b - @a from -10 s to 10 s, OVER 0.8"
    assert {"0", "0.8", "1", "-10 s", "10 s", "only readings of one key"} <= set(said)
    found = [x for x in root.iter(f"{SVG}path") if x.get("class") == "curve" and "L" in x.get("d")]
    assert len(found) == 3
    for one in found:
        points = [tuple(map(float, p.split())) for p in one.get("d")[1:].split("L")]
        assert max(x for x, _ in points) - min(x for x, _ in points) == WIDTH
        assert max(y for _, y in points) - min(y for _, y in points) <= HEIGHT
        assert max(x for x, _ in points) < int(root.get("width"))


@pytest.mark.parametrize(
    "predicate", ["@b - @a IN [0 s, 0 s] OVER 1", "@b - @a IN [-87600 h, 87600 h] OVER 0.000000000001"]
)
def test_the_narrowest_and_the_widest_condition_are_drawn(predicate):
    """A microsecond, and twenty years."""
    assert ET.fromstring(picture(rule(f"CORRELATE p AS a, q AS b WHERE {predicate}"))).get("width")


def test_windows_are_a_row_for_each_gateway():
    """As many boxes as states count, the latest at the right; names are only text."""
    drawn = picture(rule('POSSIBLY p AND q.room = "</svg>" WINDOW 4, q 2 IN GROUP "<i>"'))
    root = ET.fromstring(drawn)
    rows = {g.find(f"{SVG}text").text: g.findall(f"{SVG}rect") for g in root.findall(f"{SVG}g")}
    assert {name: len(boxes) for name, boxes in rows.items()} == {"p": 4, "q": 2}
    latest = {box.get("x") for boxes in rows.values() for box in boxes if box.get("class") == "latest"}
    assert len(latest) == 1
    assert "at most 8 global states in the windows" in texts(drawn)
    assert texts(drawn)[0] == 'r: POSSIBLY p AND (q.room = "</svg>")'
    assert "decided by runs of states: the windows do not matter" in texts(
        picture(rule("DEFINITELY p AND q WINDOW 4 IN GROUP g"))
    )


def test_events_are_their_automaton():
    """As `explain --svg` draws it."""
    assert "double border" in picture(rule("SEQ(x, y) WITHIN 1 h"))
