"""Counting matches: what is counted, when, and what is refused."""

import numpy as np
import pytest

from support.search import SEED
from whenabouts_cloud.cep import Pattern
from whenabouts_cloud.cep.count import counter as under_test
from whenabouts_cloud.cep.count.counter import CountLimitError, counter
from whenabouts_cloud.cep.count.sweep import MOST
from whenabouts_cloud.pattern.countable import NotCountableError

NAMES = list("ABCD")


def at(text):
    """Columns of events such as "A1 B3", all of one key."""
    words = text.split()
    kinds, times = [NAMES.index(w[0]) for w in words], [int(w[1:]) for w in words]
    return np.array(kinds), np.full(len(words), 7), np.array(times)


def counted(pattern, events, k=100):
    """The number of all matches."""
    one = counter(Pattern.parse(pattern), NAMES, k=k)
    one.feed(*at(events))
    one.finish()
    return one.totals.matches


@pytest.mark.parametrize(
    ("pattern", "events", "expected"),
    [
        # A A B B        two firsts times two lasts
        ("SEQ(A, B) WITHIN 9", "A1 A2 B3 B4", 4),
        # A . . B        the window's border belongs to it, to a strict one it does not
        ("SEQ(A, B) WITHIN 3", "A1 B4", 1),
        ("SEQ(A, B) WITHIN < 3", "A1 B4", 0),
        # AB             at one time nothing is before anything
        ("SEQ(A, B) WITHIN 9", "A1 B1", 0),
        # A C B B A B    what came before the C is gone, what comes after it counts
        ("SEQ(A, !C, B) WITHIN 9", "A1 C2 B3 B4 A5 B6", 1),
        # A BC B         a C at the time of a neighbour is not between
        ("SEQ(A, !C, B) WITHIN 9", "A1 B2 C2 B3", 1),
        # C . A . B . B  the C is within 5 before the first B, not before the second one
        ("SEQ(!C, A, B) WITHIN 5", "C1 A3 B5 B7", 1),
        ("SEQ(!C, A, B) WITHIN < 5", "C1 A3 B6 B7", 2),
        # A B . C B      the C forbids what ended before it
        ("SEQ(A, B, !C) WITHIN 9", "A1 B2 C4 B5", 1),
        ("SEQ(A, B, !C) WITHIN 3", "A1 B2 C4", 0),
        ("SEQ(A, B, !C) WITHIN < 3", "A1 B2 C4", 1),
        # A B A B        of a gap over two elements the match's own events are no part
        ("SEQ(AND(!A, SEQ(A, A)), B) WITHIN 9", "A1 A2 B3", 1),
        ("SEQ(AND(!A, SEQ(A, A)), B) WITHIN 9", "A1 A2 A3 B4", 0),
        # A B B B        any of the three, any two, all three
        ("SEQ(A, B+ b) WITHIN 9", "A1 B2 B3 B4", 7),
    ],
)
def test_time_lines_counted_by_hand(pattern, events, expected):
    """Small cases in which every match can be pointed at."""
    assert counted(pattern, events) == expected


def test_a_match_is_emitted_once_the_frontier_is_past_it():
    """Behind a K of 2; a negation at the end waits for the window of the first event.

    A1 B3 | B5: f = 3, the B at 3 may still have a twin | B6: f = 4, emitted
    """
    one = counter(Pattern.parse("SEQ(A, B) WITHIN 4"), NAMES, k=2)
    assert [one.feed(*at(e)).matches.tolist() for e in ("A1 B3", "B5", "D6")] == [[], [], [1]]
    assert one.finish().matches.tolist() == [1]
    late = counter(Pattern.parse("SEQ(A, B, !C) WITHIN 4"), NAMES, k=0)
    late.feed(*at("A1 B3"))
    assert [late.advance(f).matches.tolist() for f in (5, 6)] == [[], [1]]
    assert late.counters["keys"] == 0


def test_keys_are_counted_apart_and_forgotten():
    """A quarter of a million short-lived keys leave nothing, in a deep run a million; each is emitted once."""
    count = 1_000_000 if SEED else 250_000
    key, t = np.repeat(np.arange(count), 2), np.repeat(np.arange(count) * 5, 2) + np.tile([0, 3], count)
    one = counter(Pattern.parse("SEQ(A, B) WITHIN 10"), NAMES, k=3)
    emitted = [
        one.feed(np.tile([0, 1], count)[p : p + 65536], key[p : p + 65536], t[p : p + 65536])
        for p in range(0, 2 * count, 65536)
    ]
    emitted.append(one.finish())
    keys = np.concatenate([out.keys for out in emitted])
    assert np.array_equal(np.sort(keys), np.arange(count))
    assert all((out.matches == 1).all() for out in emitted)
    assert one.totals.matches == count
    assert one.counters["keys"] == one.counters["live_starts"] == 0
    assert one.counters["state_bytes"] < 200_000


def test_numbers_beyond_64_bits_are_emitted_as_most():
    """Sixteen elements, of each a thousand events: 10^48 matches are MOST or more, and the totals are not exact."""
    pattern = Pattern.parse(f"SEQ({', '.join(f'A a{n}' for n in range(16))}) WITHIN 100")
    one = counter(pattern, NAMES, k=0)
    t = np.repeat(np.arange(16), 1000)
    one.feed(np.zeros(len(t), int), np.zeros(len(t), int), t)
    assert one.finish().matches.tolist() == [MOST]
    assert (one.totals.matches, one.totals.exact) == (MOST, False)
    assert counted("SEQ(A, B) WITHIN 9", "A1 B2") == 1


def test_large_numbers_below_are_exact():
    """Six times a thousand: 10^18, one more than a float can distinguish."""
    pattern = Pattern.parse(f"SEQ({', '.join(f'A a{n}' for n in range(6))}, B) WITHIN 100")
    one = counter(pattern, NAMES, k=0)
    t = np.append(np.repeat(np.arange(7), [1000] * 5 + [999] + [1]), 200)
    one.feed(np.append(np.zeros(len(t) - 2, int), [1, 0]), np.zeros(len(t), int), t)
    one.finish()
    assert one.totals == under_test.Totals(999 * 1000**5, {}, True)


def test_aggregates_leave_out_missing_values():
    """As in SQL: over what is there; nan where nothing is.

    A1(2) A2(none) B3(5) B4(1)      four matches, values of A: 2 2, of B: 5 1 5 1
    """
    asked = [
        ("sum", "A.v"),
        ("avg", "A.v"),
        ("min", "B.v"),
        ("max", "B.v"),
        ("avg", "B.v"),
        ("max", "A.t_min"),
        ("sum", "A.u"),
    ]
    one = counter(Pattern.parse("SEQ(A, B) WITHIN 9"), NAMES, k=0, aggregates=asked)
    nan = float("nan")
    one.feed(*at("A1 A2 B3 B4"), attributes={"v": [2, nan, 5, 1], "u": [nan] * 4})
    out = one.finish()
    assert one.totals.matches == 4
    np.testing.assert_equal(list(one.totals.aggregates.values()), [4.0, 2.0, 1.0, 5.0, 3.0, 2.0, nan])
    np.testing.assert_equal(out.aggregates[0], [2.0, 2.0, 1.0, 1.0, 1.0, 2.0, nan])  # of the B at 4, emitted last


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("AND(A, B) WITHIN 9", "AND"),
        ("SEQ(A a, B b) WITHIN 9 WHERE a.v < b.v", "across 2 events"),
        ("SEQ(A a, !C c, B) WITHIN 9 WHERE c.v = a.v", "between a negated event"),
        ("SEQ(A, B) WITHIN 9 POSSIBLE", "POSSIBLE"),
        ("SEQ(A, B) WITHIN 9 OVER 90 %", "OVER"),
        ("SEQ(A, B) WITHIN 9 CAUSAL", "CAUSAL"),
        ("SEQ(A, B) WITHIN 9 SKIP PAST LAST", "SKIP"),
    ],
)
def test_what_cannot_be_counted_is_refused_with_its_reason(text, reason):
    """Never a wrong number: the engine lists those."""
    with pytest.raises(NotCountableError, match=reason):
        counter(Pattern.parse(text), NAMES, k=0)


def test_mistakes_of_the_caller_are_named():
    """And nothing is taken in."""
    pattern = Pattern.parse("SEQ(A a, B) WITHIN 9 WHERE a.v > 0")
    with pytest.raises(ValueError, match=r"expected ELEMENT\.COLUMN with one of a, B"):
        counter(pattern, NAMES, k=0, aggregates=[("sum", "c.v")])
    with pytest.raises(ValueError, match="expected one of sum, min, max, avg"):
        counter(pattern, NAMES, k=0, aggregates=[("median", "a.v")])
    with pytest.raises(ValueError, match="found None, expected the largest delay"):
        counter(pattern, NAMES)
    one = counter(pattern, NAMES, k=0)
    with pytest.raises(ValueError, match="expected v too"):
        one.feed(*at("A1"))
    with pytest.raises(ValueError, match=r"expected 0 \.\. 3"):
        one.feed([4], [0], [1], attributes={"v": [1.0]})
    with pytest.raises(ValueError, match="found order kbound"):
        one.advance({0: 3})
    assert one.counters["fed_events"] == 0


def test_a_block_beyond_the_limit_is_refused_whole(monkeypatch):
    """Nothing of it is taken in; after an advance there is room again."""
    monkeypatch.setattr(under_test, "HELD_EVENTS", 3)
    one = counter(Pattern.parse("SEQ(A, B) WITHIN 9"), NAMES, k=100)
    one.feed(*at("A1 B2"))
    with pytest.raises(
        CountLimitError, match="held events: found 2 and a block of 2, expected at most 3; nothing is taken in"
    ):
        one.feed(*at("A3 B4"))
    one.advance(3)
    one.feed(*at("A3 B4"))
    one.finish()
    assert one.totals.matches == 3  # A1 B2, A1 B4, A3 B4
