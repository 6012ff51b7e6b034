"""INFA as a value and as a picture: states are sets of types present, whatever order they arrive in."""

from itertools import permutations
from xml.etree import ElementTree as ET

import pytest

from whenabouts_cloud.cep import Pattern
from whenabouts_cloud.pattern.automaton import automaton
from whenabouts_cloud.pattern.automaton_svg import MAX_DRAWN, svg
from whenabouts_cloud.rules import parse_rules
from whenabouts_cloud.rules.explain_events import explain_events, gaps, picture

SVG = "{http://www.w3.org/2000/svg}"
RULE = """
STREAM shelf FROM "shelf" DELAY 2 s LENGTH 0 s .. 1 s
STREAM till FROM "till" DELAY 3 s LENGTH 0 s .. 1 s
STREAM exit FROM "exit" DELAY 1 s LENGTH 0 s .. 1 s
RULE unpaid {body} WITHIN 60 s
"""


def of(text):
    return automaton(Pattern.parse(f"{text} WITHIN 9"))


def rule(body):
    return parse_rules(RULE.format(body=body)).rules[0]


def test_every_order_of_arrival_ends_in_the_complete_state():
    """One state for each set of types; negated types are in none, a type that is there changes nothing."""
    states = of("SEQ(A, B, !X, C, A)")
    assert (states.letters, len(states.states), states.needs) == ((("A",), ("B",), ("C",)), 8, (7,))
    for order in permutations("ABC"):
        state = 0
        for name in order:
            assert not states.is_complete(state)
            assert state in states.states
            state = dict(states.transitions(state))[name]
            assert name not in dict(states.transitions(state))
        assert states.is_complete(state)
    assert states.layers() == {0: (1, 0), 1: (3, 0), 2: (3, 0), 3: (1, 1)}
    assert states.names(5) == ("A", "C")


def test_one_alternative_is_enough():
    """Alternatives: complete as soon as one has all it needs; an event of a type brings every element that takes it."""
    states = of("SEQ(A, OR(B, SEQ(C, D)))")
    assert sorted(states.names(need) for need in states.needs) == [("A", "B"), ("A", "C", "D")]
    states = of("SEQ((A | B), B)")
    assert dict(states.transitions(0)) == {"A": 1, "B": 3}
    assert states.needs == (3,)
    assert states.states == (0, 1, 3)
    assert of("OR(A, SEQ(A, B))").needs == (1,)  # B is never waited for


def boxes(root):
    """(x, y, width, height) of the boxes and the texts in each."""
    rects = []
    for group in root.iter(f"{SVG}g"):
        rect = group.find(f"{SVG}rect")
        texts = [(int(t.get("x")), int(t.get("y")), t.text) for t in group.findall(f"{SVG}text")]
        rects.append((tuple(int(rect.get(n)) for n in ("x", "y", "width", "height")), texts))
    return rects


@pytest.mark.parametrize(
    "text",
    ["SEQ(A)", "SEQ(shelf, !till, exit)", "SEQ(A, B, C, D, E)", "OR(SEQ(A, B), SEQ(A, C), SEQ(D, E))",
     "SEQ(A, B, !C, D, E, F, G)", f"SEQ({'x' * 60}, B)"],
)  # fmt: skip
def test_the_picture_has_a_box_for_each_state_and_none_covers_another(text):
    """Text inside its box, boxes inside the picture and apart; beyond 32 states a box for each number of types."""
    states = of(text)
    root = ET.fromstring(svg(states, text, ["a note <&>"]))
    width, height = int(root.get("width")), int(root.get("height"))
    drawn = boxes(root)
    small = len(states.states) <= MAX_DRAWN
    assert len(drawn) == (len(states.states) if small else len(states.layers()))
    for (x, y, w, h), texts in drawn:
        assert min(x, y) >= 0
        assert x + w <= width
        assert y + h <= height
        assert all(x < tx and tx + 8 * len(t) <= x + w and y < ty - 10 and ty < y + h for tx, ty, t in texts)
    for n, (a, _) in enumerate(drawn):
        for b, _ in drawn[:n]:
            apart = a[0] + a[2] <= b[0] or b[0] + b[2] <= a[0] or a[1] + a[3] <= b[1] or b[1] + b[3] <= a[1]
            assert apart
    moves = [p for p in root.iter(f"{SVG}path") if p.find(f"{SVG}title") is not None]
    if small:
        assert len(moves) == sum(len(list(states.transitions(state))) for state in states.states)
    words = [t.text for t in root.iter(f"{SVG}text")]
    assert "a note <&>" in words
    assert {f"{name} arrives" for name in states.moves} <= set(words)
    doubles = [r for r in root.iter(f"{SVG}rect") if r.get("class") == "inner"]
    assert len(doubles) == (sum(map(states.is_complete, states.states)) if small else 1)


def test_very_many_states_are_not_counted():
    """17 types in any order are more states than are listed; the picture reports it."""
    parts = ", ".join(f"T{n}" for n in range(17))
    states = automaton(Pattern.parse(f"OR({parts}) WITHIN 1"))
    assert (states.states, states.layers()) == (None, {})
    assert "more than 65536 states of 17 types" in svg(states, "many")


@pytest.mark.parametrize(
    ("body", "where", "final_by", "after_s"),
    [
        ("SEQ(shelf a, !till c, exit e)", "after a and before e", "e", 3 + 1),
        ("SEQ(!till c, AND(shelf a, exit e))", "before a and e, back to the last event less the window", "a and e", 4),
        ("SEQ(shelf{2,3} a, !till c)", "after a[LAST], up to the first event plus the window", "the first event", 64),
        ("AND(shelf, !till c)", "from the last event less the window up to the first event plus the window",
         "the first event", 64),
    ],
)  # fmt: skip
def test_gaps_are_reported_with_what_makes_them_final(body, where, final_by, after_s):
    """K is the longest DELAY, here 3 s, the longest stamp 1 s, the window 60 s."""
    [gap] = gaps(rule(body))
    assert (gap.where, gap.final_by, gap.after_us) == (where, final_by, after_s * 10**6)
    assert gap.element == "till c"


def test_the_explanation_of_a_rule():
    """The places of a match, how long events are kept, and the states with their transitions."""
    e = explain_events(rule("SEQ(shelf a, !till, exit+ e)"))
    assert (e.places, e.alternatives, e.emit) == (("a", *(f"e[{i}]" for i in range(1, 9))), 8, "sure")
    assert (e.lateness_us, e.longest_us, e.keep_us) == (3 * 10**6, 10**6, 64 * 10**6)
    assert [(s.present, s.complete) for s in e.states] == [
        ((), False), (("shelf",), False), (("exit",), False), (("shelf", "exit"), True),
    ]  # fmt: skip
    assert e.states[1].moves == (("exit", 3),)
    assert (e.state_count, e.layers) == (4, ((0, 1, 0), (1, 2, 0), (2, 1, 1)))
    words = [t.text for t in ET.fromstring(picture(rule("SEQ(shelf a, !till, exit e)"))).iter(f"{SVG}text")]
    assert "unpaid: SEQ(shelf a, !till, exit e)" in words
    assert "no till after a and before e" in words
