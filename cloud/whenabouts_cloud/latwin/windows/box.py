"""All consistent global states (CGSs) of the windows: a bit set over the box W^(1) x .. x W^(n), grown and pruned in place.

A cell is one state of each process. The place of state `number` along its process is `number mod w`, so sliding a
window moves nothing: the cells of the state that leaves become those of the state that enters, a slab of 1/w of the
box. A push clears the slab (prune) and rewrites it (grow). The last processes share a word of 64 bits (three at w = 4).

    words   (prod of leading w)   bits of the cells; strides as in `axes`
    axes    (n, columns of Axis)  per process: where its states lie in masks and words
    masks   (n, d)                per state held: a bit for each compatible state of other processes, and its own bit
    tables  (t, 256)              per packed process: for a set of its places the bits of a word that lie there
    facts   (columns of Facts)    size, number of leading processes, word of compatible pairs, CGSs retracted last
    cells   (n, d)                working memory: the bits of a word that a state of a leading process leaves
    path    (4, n)                working memory for walking the leading processes

Words and masks are int64 used as 64 bits. Two states are compatible iff neither knows of the end of the other; a choice
is a CGS iff all its pairs are compatible. So growing walks the leading processes with the common mask. Each word it
reaches is the product of what the mask leaves of each packed process, ANDed with the compatible pairs of packed states.

Yang et al. (2011, Algorithms 1-3) store nodes and edges, find the new CGSs by search from C_max, and miss some if the
window was empty before (their Theorem 4.2 does not hold then). Here nothing is searched. Cost: CGSs / 64 or less,
w^n / (64 w) words cleared; memory w^n bits.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from whenabouts_cloud.jit import Array, columns, compiled_inline, compiled_noref
from whenabouts_cloud.latwin.model.layout import CLOCK, HEAD, META, ROW, Ring
from whenabouts_cloud.latwin.windows.walk_kernel import trailing_zeros

CELLS = 1 << 26  # 8 MiB; 13 processes at w = 4
STATES = 64  # of all windows together: a mask is a word


class Axis(NamedTuple):
    """A process: where its states lie in masks and in the lattice."""

    width: int
    offset: int  # its first bit in masks
    stride: int  # in words; 0 for packed processes
    within: int  # in bits of a word; 0 for leading processes


class Facts(NamedTuple):
    """Numbers of a lattice."""

    size: int  # number of CGSs
    leading: int  # number of leading processes
    pairs: int  # the bits of a word at which all packed states are compatible
    retracted: int  # CGSs that the last report retracted


AXIS, FACTS = columns(Axis), columns(Facts)


class BoxLimitError(ValueError):
    """The lattice is too large to be stored."""


class Box(NamedTuple):
    """The arrays of a lattice, see above."""

    words: Array
    axes: Array
    masks: Array
    tables: Array
    facts: Array
    cells: Array
    path: Array


def new_box(widths: Sequence[int]) -> Box:
    """An empty lattice for windows of these widths.

    Raises:
        BoxLimitError: more cells or states than allowed.
    """
    n, cells = len(widths), int(np.prod(np.array(widths, object)))
    if cells > CELLS or sum(widths) > STATES:
        raise BoxLimitError(
            f"window: found {cells} choices of {sum(widths)} states, expected at most {CELLS} of {STATES}: take smaller "
            "windows or fewer processes, or store=False, which walks the lattice on demand"
        )
    packed = 1
    while packed < n and np.prod(widths[-packed - 1 :]) <= 64 and max(widths[-packed - 1 :]) <= 8:
        packed += 1
    leading = n - packed
    axes = np.zeros((n, len(AXIS)), np.int64)
    axes[:, AXIS.width] = widths
    axes[:, AXIS.offset] = np.cumsum([0, *widths[:-1]])
    axes[:leading, AXIS.stride] = _strides(widths[:leading])
    axes[leading:, AXIS.within] = _strides(widths[leading:])
    places = np.arange(int(np.prod(widths[leading:])))
    tables = np.zeros((packed, 256), np.int64)
    for process in range(leading, n):
        if packed > 1:
            along = places // axes[process, AXIS.within] % axes[process, AXIS.width]
            for chosen in range(1 << widths[process]):
                bits = sum(1 << int(place) for place in places[(chosen >> along) & 1 == 1])
                tables[process - leading, chosen] = np.array([bits], np.uint64).view(np.int64)[0]
    facts = np.zeros(len(FACTS), np.int64)
    facts[FACTS.leading] = leading
    words = np.zeros(int(np.prod(widths[:leading])), np.int64)
    masks, left = np.zeros((2, n, max(widths)), np.int64)
    return Box(words, axes, masks, tables, facts, left, np.zeros((4, n), np.int64))


def _strides(widths: Sequence[int]) -> list[int]:
    return [int(np.prod(widths[i + 1 :])) for i in range(len(widths))]


@compiled_inline
def bits_of(word: int) -> Any:
    """Number of bits set in a word."""
    bits = np.uint64(word)  # machine code has an instruction for these steps, if they are unsigned
    bits -= (bits >> np.uint64(1)) & np.uint64(0x5555555555555555)
    bits = (bits & np.uint64(0x3333333333333333)) + ((bits >> np.uint64(2)) & np.uint64(0x3333333333333333))
    bits = (bits + (bits >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((bits * np.uint64(0x0101010101010101)) >> np.uint64(56))


@compiled_inline
def places_of(box: Box, process: int, mask: int) -> Any:
    """The places along a process that a mask leaves, as bits."""
    width = box.axes[process, AXIS.width]
    return (mask >> box.axes[process, AXIS.offset]) & (-1 if width == 64 else (1 << width) - 1)


@compiled_inline
def word_of(box: Box, mask: int) -> Any:
    """The bits of a word at which a mask leaves the states of all packed processes."""
    leading = box.facts[FACTS.leading]
    if len(box.tables) == 1:
        return places_of(box, leading, mask)
    word = -1
    for process in range(leading, len(box.axes)):
        word &= box.tables[process - leading, places_of(box, process, mask)]
    return word


@compiled_inline
def bits_at(box: Box, process: int, place: int) -> Any:
    """The bits of a word at one place along a packed process."""
    if len(box.tables) == 1:
        return 1 << place
    return box.tables[process - box.facts[FACTS.leading], 1 << place]


@compiled_inline
def clear(box: Box, process: int, place: int) -> None:
    """Removes the slab of one place from the lattice."""
    words, stride = box.words, box.axes[process, AXIS.stride]
    gone = 0
    if stride == 0:
        kept = ~bits_at(box, process, place)
        for i in range(len(words)):
            if words[i] & ~kept:
                gone += bits_of(words[i] & ~kept)
                words[i] &= kept
    else:
        for begin in range(place * stride, len(words), stride * box.axes[process, AXIS.width]):
            for i in range(begin, begin + stride):
                if words[i]:
                    gone += bits_of(words[i])
                    words[i] = 0
    box.facts[FACTS.size] -= gone


@compiled_inline
def grow(box: Box, mask: int) -> None:
    """Adds all CGSs that a mask leaves to the lattice; it may hold none of them before.

    Walks the leading processes with what is left: of their states, and of the cells of a word. Of the last one, whose
    places are words side by side, all states are added at once.
    """
    words, masks, cells, last = box.words, box.masks, box.cells, box.facts[FACTS.leading] - 1
    places, left, fit, index = box.path[0], box.path[1], box.path[2], box.path[3]
    level, size = 0, 0
    left[0], fit[0], index[0] = mask, word_of(box, mask) & box.facts[FACTS.pairs], 0
    if last < 0:
        words[0] |= fit[0]
        box.facts[FACTS.size] += bits_of(fit[0])
        return
    cells_left(box, mask)
    places[0] = places_of(box, 0, mask)
    while level >= 0:
        if level < last and places[level] != 0:
            place = trailing_zeros(places[level])
            places[level] &= places[level] - 1
            found, common = fit[level] & cells[level, place], left[level] & masks[level, place]
            onward = places_of(box, level + 1, common)
            if found != 0 and onward != 0:
                word = index[level] + place * box.axes[level, AXIS.stride]
                level += 1
                places[level], left[level], fit[level], index[level] = onward, common, found, word
            continue
        if level == last:
            chosen = places[last]
            while chosen != 0:
                place = trailing_zeros(chosen)
                chosen &= chosen - 1
                found = fit[last] & cells[last, place]
                words[index[last] + place] |= found
                size += bits_of(found)
        level -= 1
    box.facts[FACTS.size] += size


@compiled_inline
def cells_left(box: Box, mask: int) -> None:
    """Computes the cells of a word that are left by each state of a leading process that a mask leaves."""
    for process in range(box.facts[FACTS.leading]):
        chosen = places_of(box, process, mask)
        while chosen != 0:
            place = trailing_zeros(chosen)
            chosen &= chosen - 1
            box.cells[process, place] = word_of(box, box.masks[process, place])


@compiled_noref
def pair_words(box: Box) -> None:
    """Computes the bits of a word at which all packed states are compatible."""
    leading = box.facts[FACTS.leading]
    common = -1
    for process in range(leading, len(box.axes)):
        word = 0
        for place in range(box.axes[process, AXIS.width]):
            word |= bits_at(box, process, place) & word_of(box, box.masks[process, place])
        common &= word
    box.facts[FACTS.pairs] = common


@compiled_inline
def meet(ring: Ring, box: Box, process: int, place: int) -> None:
    """Computes the mask of a state held, and its bit in the masks of the others. O(n w)."""
    row, masks, axes = ring.window[process, place], box.masks, box.axes
    bit = 1 << (axes[process, AXIS.offset] + place)
    mask = bit
    for j in range(len(axes)):
        if j == process:
            continue
        for other in range(axes[j, AXIS.width]):
            held = ring.window[j, other]
            masks[j, other] &= ~bit
            if held[ROW.number] < 0:
                continue
            if row[CLOCK + j] <= held[ROW.number] and held[CLOCK + process] <= row[ROW.number]:
                masks[j, other] |= bit
                mask |= 1 << (axes[j, AXIS.offset] + other)
    masks[process, place] = mask


@compiled_noref
def forget(box: Box, process: int, place: int) -> None:
    """Removes a state from all masks."""
    bit = 1 << (box.axes[process, AXIS.offset] + place)
    for j in range(len(box.axes)):
        for other in range(box.axes[j, AXIS.width]):
            box.masks[j, other] &= ~bit
    box.masks[process, place] = 0


@compiled_inline
def step(ring: Ring, box: Box, process: int) -> None:
    """Updates the lattice after a release: prunes the state that left, cuts CGSs accepted too early, grows the new ones."""
    place = (ring.heads[process, HEAD.next] - 1) % ring.heads[process, HEAD.width]
    clear(box, process, place)
    if ring.meta[META.raised] > 0:
        forget(box, process, place)
        cut(ring, box, process, place)
    meet(ring, box, process, place)
    if process >= box.facts[FACTS.leading]:
        pair_words(box)
    grow(box, box.masks[process, place])


@compiled_noref
def cut(ring: Ring, box: Box, process: int, place: int) -> None:
    """Removes the CGSs that raised clocks refute; counts them as retracted."""
    before = box.facts[FACTS.size]
    for j in range(len(box.axes)):
        for other in range(box.axes[j, AXIS.width]):
            if (
                ring.window[j, other, ROW.mark]
                and ring.window[j, other, ROW.number] >= 0
                and (j, other) != (process, place)
            ):
                meet(ring, box, j, other)
    forget(box, process, place)
    pair_words(box)
    for j in range(len(box.axes)):
        for other in range(box.axes[j, AXIS.width]):
            if (
                ring.window[j, other, ROW.mark]
                and ring.window[j, other, ROW.number] >= 0
                and (j, other) != (process, place)
            ):
                clear(box, j, other)
                grow(box, box.masks[j, other])
    box.facts[FACTS.retracted] += before - box.facts[FACTS.size]
    ring.meta[META.retracted] += before - box.facts[FACTS.size]


@compiled_noref
def rebuild(ring: Ring, box: Box) -> None:
    """Builds the lattice of the current windows from scratch."""
    box.words[:] = 0
    box.masks[:] = 0
    box.facts[FACTS.size] = 0
    for process in range(len(box.axes)):
        for place in range(box.axes[process, AXIS.width]):
            if ring.window[process, place, ROW.number] >= 0:
                meet(ring, box, process, place)
    pair_words(box)
    grow(box, -1)


@compiled_noref
def drop(box: Box, process: int) -> None:
    """Updates the lattice after a window was emptied: no CGS is left, and no state of that process."""
    box.words[:] = 0
    box.facts[FACTS.size] = 0
    for place in range(box.axes[process, AXIS.width]):
        forget(box, process, place)
