"""Explanations agree with the engine: a match is shown where there is one, and what is said to be missing is."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from whenabouts_cloud.cep import Pattern, detect
from whenabouts_cloud.cep.why_not import Seen, why_not

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


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(PATTERNS), events_of, st.integers(0, 15))
def test_a_match_is_found_exactly_where_the_engine_has_one(text, events, time):
    """With the focus in it; and the elements said to be filled are in order, of their types, and different events."""
    pattern = Pattern.parse(text)
    seen = [Seen(code, t, t + length, str(n), {"v": v}) for n, (code, t, length, v) in enumerate(events)]
    found = why_not(pattern, list("ABC"), seen, time)
    code, t, length, v = (
        (np.array(column) for column in zip(*events, strict=True)) if events else [np.empty(0, int)] * 4
    )
    rows = detect(
        pattern, list("ABC"), code, np.zeros(len(events), int), t, None, t + length, {"v": np.asarray(v, float)}
    )
    if found.focus is None:
        assert len(rows) == 0
        return
    focus = int(found.focus.name)
    assert found.searched_all
    assert (found.verdict == "match") == any(focus in row for row in rows.tolist())
    if found.verdict == "match":
        shown = dict.fromkeys(pattern.names, -1) | {e.name: int(e.event.name) for e in found.elements}
        assert list(shown.values()) in rows.tolist()
    else:
        assert found.blockers or any(e.failure for e in found.elements)
    filled = [int(e.event.name) for e in found.elements if e.failure is None]
    assert len(filled) == len(set(filled))
