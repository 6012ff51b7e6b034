"""Parts of the lattice by themselves: rows and clocks, words and walks."""

import numpy as np

from whenabouts_cloud.latwin import All, Any, AtLeast, Local, Related
from whenabouts_cloud.latwin.model.algebra import ADD, AT_LEAST, COUNT, PUSH, STEP
from whenabouts_cloud.latwin.model.frame import greatest as greatest_walked
from whenabouts_cloud.latwin.model.frame import least as least_walked
from whenabouts_cloud.latwin.model.layout import CLOCK, META, NO_ROOM, TAKEN, new_ring
from whenabouts_cloud.latwin.windows.all_true import IMPOSSIBLE, UNAVOIDABLE
from whenabouts_cloud.latwin.windows.bound import BoundPredicate
from whenabouts_cloud.latwin.windows.bound_conjunction import KEPT, OTHER, Conjunctions, local_parts
from whenabouts_cloud.latwin.windows.box import bits_of, new_box, rebuild
from whenabouts_cloud.latwin.windows.effective import join
from whenabouts_cloud.latwin.windows.lattice_on_demand import Walked, frame_of
from whenabouts_cloud.latwin.windows.lattice_stored import Stored
from whenabouts_cloud.latwin.windows.ring import accept, release
from whenabouts_cloud.latwin.windows.walk_box import greatest, least


def filled(room=16):
    """Three processes, four states each; state 3 of the last knows state 2 of the first."""
    ring = new_ring(3, 3, "causal", room=room)
    for number in range(4):
        for process in range(3):
            clock = np.zeros(3, np.int64)
            clock[process] = number
            clock[0] = max(clock[0], 2 if (process, number) == (2, 3) else 0)
            assert accept(ring, process, number, clock, 0, 0, 0) == TAKEN
            assert release(ring) == process
            assert release(ring) == -1
    return ring


def test_joining_never_raises_the_own_entry_of_a_clock():
    """Joining raises what is lower; the own entry stays, and that is counted."""
    ring = new_ring(3, 3, "causal")
    row = np.zeros(CLOCK + 3, np.int64)
    row[CLOCK:] = 4, 5, 6
    assert join(ring, row, np.array([5, 9, 1]), 1)
    assert row[CLOCK:].tolist() == [5, 5, 6]
    assert ring.meta[META.contradictions] == 1
    assert not join(ring, row, np.array([5, 5, 1]), 1)


def test_a_state_too_far_ahead_has_to_be_sent_again():
    """`accept` makes room first; the same report fits after the releases."""
    ring, clock = new_ring(1, 3, "causal", room=2), np.array([7])
    assert accept(ring, 0, 7, clock, 0, 0, 0) == NO_ROOM
    assert release(ring) == -1
    assert accept(ring, 0, 7, clock, 0, 0, 0) == TAKEN
    assert release(ring) == 0


def test_kept_walked_and_rebuilt_are_one_lattice():
    """Ends, size and CGSs of the box, of a rebuilt box, and of the walks."""
    ring, low, high = filled(), np.zeros(3, np.int64), np.zeros(3, np.int64)
    stored = Stored(ring)
    stored.rebuild(ring)
    box = new_box([3, 3, 3])
    rebuild(ring, box)
    assert box.words.tolist() == stored.box.words.tolist()
    assert stored.size(ring) == Walked().size(ring) == sum(int(bits_of(word)) for word in box.words) == 24
    assert stored.states(ring).tolist() == Walked().states(ring).tolist()
    assert least(ring, low)
    assert greatest(ring, high)
    assert (tuple(low.tolist()), tuple(high.tolist())) == (
        least_walked(frame_of(ring)),
        greatest_walked(frame_of(ring)),
    )


def test_a_count_is_a_program_of_digits():
    """Three parts need two digits; at least two of them hold in the cells that brute force gives."""
    ring, box = filled(), new_box([3, 3, 3])
    rebuild(ring, box)
    bound = BoundPredicate(AtLeast(2, [Local(p, {3}) for p in range(3)]), ring, box)
    assert [step[STEP.operation] for step in bound.code.steps] == [COUNT, PUSH, ADD, PUSH, ADD, PUSH, ADD, AT_LEAST]
    true = np.zeros_like(box.words)
    assert bound.holds(true)
    rows = Walked().states(ring)
    assert sum(int(bits_of(word)) for word in true & box.words) == ((rows == 3).sum(axis=1) >= 2).sum()


def test_a_conjunction_of_local_predicates_is_taken_apart_by_process():
    """`All` of `Local`, also nested, and one by itself; nothing else, and no process that there is not."""
    a, b, c = Local(0, {1}), Related((2,), bool), Local(0, {1, 2})
    parts = local_parts(All(a, All(b, c), All()), 3)
    assert [set(own) for own in parts] == [{a.function, c.function}, set(), {b.function}]
    assert local_parts(b, 3) == [[], [], [b.function]]
    for other in (Any(a, b), ~a, AtLeast(1, [a]), Related((0, 1), max), All(a, ~b)):
        assert local_parts(other, 3) is None
    assert local_parts(a & b, 2) is None


def test_the_conjunctions_of_a_group_are_kept_up_to_a_limit():
    """The one bound first is dropped and asks again; a function takes no room."""
    ring, all_kept, asked = filled(), Conjunctions(), []
    first = All(Local(0, lambda number: asked.append(number) or number == 1), Local(1, {1, 2}))
    assert all_kept.verdict(ring, first) == all_kept.verdict(ring, first) == UNAVOIDABLE
    assert asked == [1, 2, 3]
    others = [Local(0, {9}) & Local(1, {n}) for n in range(KEPT - 1)]
    assert {all_kept.verdict(ring, other) for other in others} == {IMPOSSIBLE}
    assert all_kept.verdict(ring, lambda numbers: True) == all_kept.verdict(ring, lambda numbers: False) == OTHER
    assert all_kept.verdict(ring, first) == UNAVOIDABLE
    assert asked == [1, 2, 3]
    assert all_kept.verdict(ring, ~first) == OTHER
    assert all_kept.verdict(ring, first) == UNAVOIDABLE
    assert asked == [1, 2, 3] * 2
