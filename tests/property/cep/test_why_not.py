"""Explanations agree with the engine: they show a match where there is one, and elements named missing are missing."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from property.strategies_cep import clocks_of
from reference.cep import Event
from support.search import examples
from whenabouts_cloud.cep import Pattern, detect, engine
from whenabouts_cloud.cep.explain.explanation import Seen
from whenabouts_cloud.cep.explain.why_not import why_not

PATTERNS = [
    "SEQ(A, !C, B) WITHIN 8",
    "SEQ(!C, A, B{1,2} b) WITHIN < 8",
    "AND(A, B, !C) WITHIN 5",
    "SEQ(A, OR(B, SEQ(C, A)), !B) WITHIN 9",
    "SEQ(A, B, C) WITHIN 9 WHERE A.v < C.v AND B.v > 0",
    "SEQ(A, B, C) WITHIN 9 NEXT",
    "SEQ(A, B) WITHIN 9 STRICT",
]
events_of = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 15), st.integers(0, 2), st.sampled_from([0.0, 1.0, 2.0])), max_size=7
)


@settings(max_examples=examples(150), deadline=None)
@given(st.sampled_from(PATTERNS), events_of, st.integers(0, 15))
def test_a_match_is_found_exactly_where_the_engine_has_one(text, events, time):
    """The match contains the focus; filled elements are different events, of their types and in order."""
    pattern = Pattern.parse(text)
    seen = [Seen(code, t, t + length, str(n), {"v": v}) for n, (code, t, length, v) in enumerate(events)]
    explanation = why_not(pattern, list("ABC"), seen, time)
    code, t, length, v = (
        (np.array(column) for column in zip(*events, strict=True)) if events else [np.empty(0, int)] * 4
    )
    rows = detect(
        pattern, list("ABC"), code, np.zeros(len(events), int), t, None, t + length, {"v": np.asarray(v, float)}
    )
    agrees(pattern, explanation, rows.tolist())


CAUSAL = [
    "SEQ(A, B) WITHIN 9",
    "SEQ(A, B, C) WITHIN 9 WHERE A.v < C.v",
    "SEQ(A, !C, B) WITHIN 8",
    "SEQ(!C, A, B) WITHIN < 8",
    "SEQ(A, B, !C) WITHIN 8",
    "AND(A, B, !C) WITHIN 5",
    "SEQ(AND(A, B), C) WITHIN 9",
    "SEQ(A, AND(B, C)) WITHIN 9",
]


@settings(max_examples=examples(250), deadline=None)
@given(st.sampled_from(CAUSAL), events_of, st.integers(0, 15), st.data())
def test_in_causal_order_too(text, events, time, data):
    """By what two gateways knew of each other."""
    pattern = Pattern.parse(f"{text} CAUSAL")
    seen = [Seen(code, t, t + length, str(n), {"v": v}) for n, (code, t, length, v) in enumerate(events)]
    clocks = data.draw(clocks_of([Event(code, 0, t, t + length) for code, t, length, _ in events]))
    explanation = why_not(pattern, list("ABC"), seen, time, clocks=clocks)
    rows = []
    if events:
        code, t, length, v = (np.array(column) for column in zip(*events, strict=True))
        one = engine(pattern, list("ABC"), k=100)
        out = one.feed(code, np.zeros(len(events), int), t, t_max=t + length, attributes={"v": v}, clocks=clocks)
        rows = [*out.matches.tolist(), *one.finish().matches.tolist()]
    agrees(pattern, explanation, rows)


def agrees(pattern, explanation, rows):
    """A match is shown exactly where one contains the focus; filled elements are different events."""
    if explanation.focus is None:
        assert rows == []
        return
    focus = int(explanation.focus.name)
    assert explanation.searched_all
    assert (explanation.verdict == "match") == any(focus in row for row in rows)
    if explanation.verdict == "match":
        shown = dict.fromkeys(pattern.names, -1) | {e.name: int(e.event.name) for e in explanation.elements}
        assert list(shown.values()) in rows
    else:
        assert explanation.blockers or any(e.failure for e in explanation.elements)
    filled = [int(e.event.name) for e in explanation.elements if e.failure is None]
    assert len(filled) == len(set(filled))


@settings(max_examples=examples(150), deadline=None)
@given(st.sampled_from([*PATTERNS, "SEQ(A, B, C) WITHIN 9 POSSIBLE"]), events_of, st.integers(0, 15))
def test_no_event_outside_the_room_of_an_element_can_fill_it(text, events, time):
    """Room is what order and window leave: with an event of the right type outside it there is still no match."""
    pattern = Pattern.parse(text)
    seen = [Seen(code, t, t + length, str(n), {"v": v}) for n, (code, t, length, v) in enumerate(events)]
    answer = why_not(pattern, list("ABC"), seen, time)
    assert set(answer.examined) == set(seen)
    lacking = [e for e in answer.elements if e.failure is not None]
    if len(lacking) != 1 or lacking[0].room is None:
        return
    [element], chosen = lacking, [e.event for e in answer.elements if e.failure is None]
    first, last = element.room
    kept = [e for e in seen if e in chosen]
    for code in range(3):
        for t in range(-20, 40):
            if first <= t <= last:
                continue
            more = [*kept, Seen(code, t, t, "new", {"v": 1.0})]
            found = why_not(pattern, list("ABC"), more, kept[0].t_min)
            used = [e.event.name for e in found.elements if e.failure is None]
            if found.verdict == "match" and set(used) == {*(e.name for e in kept), "new"}:
                places = [e.name for e in found.elements if e.event is not None and e.event.name == "new"]
                assert places != [element.name], f"{t} is outside {element.room}"
