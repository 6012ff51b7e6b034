"""Pos and Def of a conjunction of local predicates from the clocks of the windows: no global state is visited.

Pos    some CGS has a true state of each process. The least one is found by moving on each process whose state another
       process knows to be over (Garg, Waldecker 1994).
Def    every path from C_min to C_max meets such a CGS. That is so if there are runs of true states, one of each process,
       each known to have begun before every other ended (Garg, Waldecker 1996). Runs are cut at C_min and C_max. Not
       sound, as the paper's: the actual execution need not pass through the windows' CGSs.

The second needs clocks that agree: what a state knows, it knows with all that was known there, and no state knows of one
that knows of it. Honest dense clocks do. Reported ones are believed, so `agree` checks those between C_min and C_max.

Cost O(n^2 w), in practice three to five passes over n^2 numbers. `true[p, number % w]` says where a predicate holds.
"""

from typing import Any, NamedTuple

from whenabouts_cloud.jit import Array, columns, compiled_inline, compiled_noref
from whenabouts_cloud.latwin.model.layout import CLOCK, HEAD


class Search(NamedTuple):
    """Rows of working memory: choices of states or runs, an entry for each process."""

    origin: int  # the state at place 0, or the one that was there last
    choice: int  # the least CGS with all true
    least: int  # C_min
    greatest: int  # C_max
    first: int  # the selected run: its first state in the window
    last: int  # and its last one, or OPEN
    begin: int  # the least clock entry that proves its start


SEARCH = columns(Search)
OPEN = 1 << 61  # the last state of a run that still goes on
ALWAYS = -1  # a clock entry that every state has
IMPOSSIBLE, POSSIBLE, UNAVOIDABLE, CLOCKS_DISAGREE = range(4)  # the last: possible, Def is not known


@compiled_noref
def verdict(heads: Array, window: Array, true: Array, search: Array) -> int:
    """IMPOSSIBLE, POSSIBLE, UNAVOIDABLE (and possible), or CLOCKS_DISAGREE."""
    if not begin(heads, search) or not climb(heads, window, true, search, SEARCH.least, False):
        return IMPOSSIBLE
    if not choose_true(heads, true, search):
        return IMPOSSIBLE
    later = 0
    for p in range(len(heads)):
        later += search[SEARCH.choice, p] > search[SEARCH.least, p]
    if later == 0:  # all are true at C_min
        return UNAVOIDABLE
    if not climb(heads, window, true, search, SEARCH.choice, True):
        return IMPOSSIBLE
    descend(heads, window, search)
    if not agree(heads, window, search):
        return CLOCKS_DISAGREE
    return UNAVOIDABLE if every_way(heads, window, true, search) else POSSIBLE


@compiled_noref
def begin(heads: Array, search: Array) -> Any:
    """Fills in `origin`, which all others use, and as `least` the first states; False if a window has none."""
    for p in range(len(heads)):
        first = heads[p, HEAD.first]
        if first == heads[p, HEAD.next]:
            return False
        search[SEARCH.origin, p], search[SEARCH.least, p] = first - first % heads[p, HEAD.width], first
    return True


@compiled_inline
def place_of(heads: Array, search: Array, p: int, number: int) -> Any:
    """The place of a state in its window, `number % w` without a division."""
    place, width = number - search[SEARCH.origin, p], heads[p, HEAD.width]
    return place - width if place >= width else place


@compiled_inline
def next_true(heads: Array, true: Array, search: Array, p: int, number: int) -> Any:
    """The first state of the window from `number` on in which the predicate holds, or -1."""
    end = heads[p, HEAD.next]
    while number < end:
        if true[p, place_of(heads, search, p, number)]:
            return number
        number += 1
    return -1


@compiled_noref
def choose_true(heads: Array, true: Array, search: Array) -> Any:
    """Chooses the first true state of each process from `least` on; False if one has none."""
    for p in range(len(heads)):
        number = next_true(heads, true, search, p, search[SEARCH.least, p])
        if number < 0:
            return False
        search[SEARCH.choice, p] = number
    return True


@compiled_noref
def climb(heads: Array, window: Array, true: Array, search: Array, line: int, only_true: bool) -> Any:
    """Moves a choice of states up to the least CGS above it, of true states if `only_true`; False if there is none."""
    n = len(heads)
    j, calm = 0, 0  # the last `calm` processes move none
    while calm < n:
        row = window[j, place_of(heads, search, j, search[line, j])]
        behind = 0
        for i in range(n):
            behind += row[CLOCK + i] > search[line, i]  # never its own, which is the state itself
        if behind:
            if not catch_up(heads, true, search, line, row, only_true):
                return False
            calm = 0
        calm += 1
        j = j + 1 if j + 1 < n else 0
    return True


@compiled_noref
def catch_up(heads: Array, true: Array, search: Array, line: int, row: Array, only_true: bool) -> Any:
    """Moves the processes of a choice up to what a state knows; False if there is no such state."""
    for i in range(len(heads)):
        number = row[CLOCK + i]
        if number > search[line, i]:
            if only_true:
                number = next_true(heads, true, search, i, number)
            if number < 0 or number >= heads[i, HEAD.next]:
                return False
            search[line, i] = number
    return True


@compiled_noref
def descend(heads: Array, window: Array, search: Array) -> None:
    """Fills in `greatest`, down from the last states; there must be a CGS."""
    n = len(heads)
    for p in range(n):
        search[SEARCH.greatest, p] = heads[p, HEAD.next] - 1
    j, calm = 0, 0  # the last `calm` processes fit
    while calm < n:
        row = window[j, place_of(heads, search, j, search[SEARCH.greatest, j])]
        ahead = 0
        for i in range(n):
            ahead += row[CLOCK + i] > search[SEARCH.greatest, i]
        if ahead:
            search[SEARCH.greatest, j] -= 1
            calm = 0
        else:
            calm += 1
            j = j + 1 if j + 1 < n else 0


@compiled_noref
def agree(heads: Array, window: Array, search: Array) -> Any:
    """True if each state up to C_max knows all that the states above C_min know that it knows, and none of these knows it.

    The knowledge of a process grows, so a state is compared only where it knows more than its predecessor.
    """
    n = len(heads)
    for j in range(n):
        for number in range(search[SEARCH.least, j] + 1, search[SEARCH.greatest, j] + 1):
            row = window[j, place_of(heads, search, j, number)]
            before = window[j, place_of(heads, search, j, number - 1)]
            for i in range(n):
                known = row[CLOCK + i]
                if i == j or known <= search[SEARCH.least, i] or known == before[CLOCK + i]:
                    continue
                behind = 0
                other = window[i, place_of(heads, search, i, known)]
                for k in range(n):
                    behind += other[CLOCK + k] > row[CLOCK + k]
                if behind or other[CLOCK + j] == number:
                    return False
    return True


@compiled_noref
def every_way(heads: Array, window: Array, true: Array, search: Array) -> Any:
    """True if every path from C_min to C_max meets a CGS with all true. Both are filled in; clocks agree between them.

    Moves each process on to its next run until every run began before every other ended. A run that ended before another
    began cannot overlap that run or a later one of its process.
    """
    for p in range(len(heads)):
        if not cut_run(heads, true, search, p, search[SEARCH.least, p]):
            return False
    j, calm = 0, 0  # the last `calm` runs reach all
    while calm < len(heads):
        if reaches_all(heads, window, search, j):
            calm += 1
            j = j + 1 if j + 1 < len(heads) else 0
        elif cut_run(heads, true, search, j, search[SEARCH.last, j] + 1):
            calm = 0
        else:
            return False
    return True


@compiled_noref
def reaches_all(heads: Array, window: Array, search: Array, j: int) -> Any:
    """True if all other runs are known to have begun before the run of process j ended."""
    if search[SEARCH.last, j] == OPEN:
        return True
    row = window[j, place_of(heads, search, j, search[SEARCH.last, j] + 1)]
    unknown = 0
    for i in range(len(heads)):
        unknown += row[CLOCK + i] < search[SEARCH.begin, i]  # never its own
    return unknown == 0


@compiled_noref
def cut_run(heads: Array, true: Array, search: Array, p: int, number: int) -> Any:
    """Selects the first run of process p from a state on, between C_min and C_max; False if there is none."""
    number = next_true(heads, true, search, p, number)
    greatest = search[SEARCH.greatest, p]
    if number < 0 or number > greatest:
        return False
    search[SEARCH.first, p] = number
    search[SEARCH.begin, p] = number if number > search[SEARCH.least, p] else ALWAYS
    while number < greatest and true[p, place_of(heads, search, p, number + 1)]:
        number += 1
    search[SEARCH.last, p] = number if number < greatest else OPEN
    return True
