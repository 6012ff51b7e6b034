"""Least and greatest CGS, all CGSs in order, and Def, on the stored lattice.

Along a process the states are in the order of their numbers, which begins at place `FIRST mod w` and wraps around. So
state numbers are walked and converted to places. All CGSs lie between C_min and C_max: numbers outside are not walked.
"""

from typing import Any

from whenabouts_cloud.jit import Array, compiled_noref
from whenabouts_cloud.latwin.model.layout import CLOCK, HEAD, Ring
from whenabouts_cloud.latwin.windows.box import AXIS, FACTS, Box, bits_at


@compiled_noref
def least(ring: Ring, choice: Array) -> bool:
    """Fills in the numbers of C_min; returns False if there is no CGS. O(n^2 w).

    From the first states on, each process advances to the state that the others know of it, until no clock demands
    more.
    """
    heads, window = ring.heads, ring.window
    for i in range(len(heads)):
        if heads[i, HEAD.first] == heads[i, HEAD.next]:
            return False
        choice[i] = heads[i, HEAD.first]
    again = True
    while again:
        again = False
        for j in range(len(heads)):
            row = window[j, choice[j] % heads[j, HEAD.width]]
            for i in range(len(heads)):
                if i != j and row[CLOCK + i] > choice[i]:
                    if row[CLOCK + i] >= heads[i, HEAD.next]:
                        return False
                    choice[i] = row[CLOCK + i]
                    again = True
    return True


@compiled_noref
def greatest(ring: Ring, choice: Array) -> bool:
    """Fills in the numbers of C_max; returns False if there is no CGS. O(n^2 w).

    From the last states back, each process goes back until its clock knows no more of the others than their chosen
    states.
    """
    heads, window = ring.heads, ring.window
    for i in range(len(heads)):
        if heads[i, HEAD.first] == heads[i, HEAD.next]:
            return False
        choice[i] = heads[i, HEAD.next] - 1
    again = True
    while again:
        again = False
        for j in range(len(heads)):
            i = 0
            while i < len(heads):
                if i != j and window[j, choice[j] % heads[j, HEAD.width], CLOCK + i] > choice[i]:
                    choice[j] -= 1
                    if choice[j] < heads[j, HEAD.first]:
                        return False
                    again, i = True, 0
                else:
                    i += 1
    return True


@compiled_noref
def word_at(box: Box, numbers: Array) -> Any:
    """The index of the word that a choice of states lies in."""
    word = 0
    for i in range(box.facts[FACTS.leading]):
        word += numbers[i] % box.axes[i, AXIS.width] * box.axes[i, AXIS.stride]
    return word


@compiled_noref
def bit_at(box: Box, numbers: Array) -> Any:
    """The bit of a choice of states in its word."""
    bit = 0
    for i in range(box.facts[FACTS.leading], len(numbers)):
        bit += numbers[i] % box.axes[i, AXIS.width] * box.axes[i, AXIS.within]
    return bit


@compiled_noref
def copy(source: Array, to: Array) -> None:
    """Copies one row of numbers onto another."""
    for i in range(len(source)):
        to[i] = source[i]


@compiled_noref
def following(low: Array, high: Array, numbers: Array, begin: int, end: int) -> bool:
    """Advances processes begin .. end - 1 to their next choice in lexicographic order between two; False after the last."""
    i = end - 1
    while i >= begin:
        if numbers[i] < high[i]:
            numbers[i] += 1
            return True
        numbers[i] = low[i]
        i -= 1
    return False


@compiled_noref
def list_states(box: Box, low: Array, high: Array, numbers: Array, out: Array) -> Any:
    """Writes the CGSs as rows of numbers in lexicographic order; returns how many."""
    n, leading, count = len(numbers), box.facts[FACTS.leading], 0
    copy(low, numbers)
    while True:
        word = box.words[word_at(box, numbers)]
        while word:
            if (word >> bit_at(box, numbers)) & 1:
                copy(numbers, out[count])
                count += 1
            if not following(low, high, numbers, leading, n):
                break
        if not following(low, high, numbers, 0, leading):
            return count


@compiled_noref
def mark_true(box: Box, rows: Array, true: Array, out: Array) -> None:
    """Sets in `out` the bits of those CGSs (rows of numbers) for which `true`, and no others."""
    out[:] = 0
    for i in range(len(rows)):
        if true[i]:
            out[word_at(box, rows[i])] |= 1 << bit_at(box, rows[i])


@compiled_noref
def any_true(box: Box, true: Array) -> bool:
    """Pos: True if a CGS of the lattice has its bit set in `true`."""
    common = 0
    for i in range(len(box.words)):
        common |= box.words[i] & true[i]
    return common != 0


@compiled_noref
def unavoidable(box: Box, low: Array, high: Array, true: Array, reached: Array, numbers: Array) -> bool:
    """Def: True if each path of single steps from C_min to C_max passes a CGS with its bit set in `true`.

    The false CGSs that can be reached through false ones are propagated word by word in lexicographic order; within a
    word they spread until nothing is added. `reached` is working memory of the size of the lattice.
    """
    words, axes, leading = box.words, box.axes, box.facts[FACTS.leading]
    if (true[word_at(box, low)] >> bit_at(box, low)) & 1 or (true[word_at(box, high)] >> bit_at(box, high)) & 1:
        return True
    begin_paths(box, low, high)
    part, begin = box.path[0], box.path[1]
    reached[:] = 0
    index = word_at(box, low)
    reached[index] = 1 << bit_at(box, low)
    copy(low, numbers)
    i = 0
    while i >= 0:
        here = reached[index] & words[index] & ~true[index]
        if here:
            here = spread_within_word(box, low, high, here, words[index] & ~true[index])
            for i in range(leading):
                if numbers[i] < high[i]:
                    stride = axes[i, AXIS.stride]
                    onward = stride if part[i] < stride * (axes[i, AXIS.width] - 1) else -part[i]
                    reached[index + onward] |= here
        reached[index] = here
        i = leading - 1
        while i >= 0:
            index -= part[i]
            if numbers[i] < high[i]:
                numbers[i] += 1
                part[i] += axes[i, AXIS.stride]
                if part[i] == axes[i, AXIS.stride] * axes[i, AXIS.width]:
                    part[i] = 0
                index += part[i]
                break
            numbers[i], part[i] = low[i], begin[i]
            index += part[i]
            i -= 1
    return not (reached[word_at(box, high)] >> bit_at(box, high)) & 1


@compiled_noref
def begin_paths(box: Box, low: Array, high: Array) -> None:
    """Fills `box.path` for paths from C_min to C_max.

    Leading processes: their part of a word's index, and its start. Packed processes, from row 1: the bits of the last
    state, and those from which a step wraps around.
    """
    axes, leading = box.axes, box.facts[FACTS.leading]
    for i in range(len(low)):
        width = axes[i, AXIS.width]
        if i < leading:
            box.path[0, i] = box.path[1, i] = low[i] % width * axes[i, AXIS.stride]
        else:
            box.path[1, i] = bits_at(box, i, high[i] % width)
            box.path[2, i] = bits_at(box, i, width - 1)


@compiled_noref
def spread_within_word(box: Box, low: Array, high: Array, here: int, open_bits: int) -> Any:
    """All open bits of a word that steps of packed processes reach from `here`; `box.path` holds ends and wraps."""
    n = len(low)
    while True:
        before = here
        for i in range(box.facts[FACTS.leading], n):
            if low[i] == high[i]:
                continue
            within = box.axes[i, AXIS.within]
            moving, last = here & ~box.path[1, i], box.path[2, i]
            here |= ((moving & ~last) << within) & open_bits
            back = within * (box.axes[i, AXIS.width] - 1)
            if moving & last and back > 0:
                here |= (((moving & last) >> back) & ((1 << (64 - back)) - 1)) & open_bits
        if here == before:
            return here
