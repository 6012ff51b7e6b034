"""Where things lie in the arrays that an engine consists of: all of its state is int64 and float64 arrays.

So the state can be grown, copied, written out and read back as it is, and machine code goes through it without objects.

    slots   (2^n, 2)            hash table: key, main node (0: empty); keys are compared, not only hashed
    nodes   (.., NODE + 3 C)    main nodes, one row per key; rows 0 and 1: patterns without a key, no key
    pool    (.., 2 or 3)        stored events: t, index of arrival and, once intervals were seen, t_max; cut into blocks
    attrs   (.., A)             attributes of the stored events, in the same places
    pending (.., 6 + 3 m)       matches that are complete but not sealed
    pending_attrs (.., m * A)   attributes of their events
    heap    (.., 2)             sealing time and place in `pending`, the earliest on top
    tree    (2^n)               tournament over the sources' frontiers
    meta    (..)                numbers, named below
"""

from typing import NamedTuple

from whenabouts_cloud.jit import Array

NEVER = -(1 << 62)  # a frontier before anything is promised
FOREVER = 1 << 62
POSITIVES = 48  # elements of a variant at most: sets of them are bits of an int64
NEGATED_PLACE = 63  # where a negated event stands among the bound ones
EVENT_PLACE = 62  # and the attributes of the one that arrives

# meta
FRONTIER, NEWEST, LONGEST, STORED, PENDING, SWEPT = 0, 1, 2, 3, 4, 5
POOL_TOP, NODE_TOP, NODE_FREE, NODES, PENDING_TOP, PENDING_FREE, HEAP = 6, 7, 8, 9, 10, 11, 12
AT, STAGE, CHAIN, STAGED, WANT, SERIAL = 13, 14, 15, 16, 17, 18
TOLD, GROUP, RETRACTED, RETRACTED_GROUP, LATE, ADDED, REMOVED = 19, 20, 21, 22, 23, 24, 25
CANDIDATES, NEGATED_EVENTS = 26, 27
FED, BEGUN_CANDIDATES, BEGUN_NEGATED, LATE_TOTAL, STOP = 28, 29, 30, 31, 32
FORGOTTEN = 33  # before it events may be missing that patterns added since would have held
FREE = 40  # heads of the lists of free blocks, by size
META = 128

# What the machine code may ask for before it goes on.
DONE, MORE_NODES, MORE_POOL, MORE_PENDING, MORE_TOLD, MORE_RETRACTED, MORE_LATE, MORE_ADDED, MORE_REMOVED = range(9)
MORE_CANDIDATES, MORE_NEGATED, STOPPED = 9, 10, 11

# A main node: key, the set of classes present (the first 62), counter, minimum and maximum time, list of pending matches.
EMPTY_NODE = 1  # always empty, in no place of the table: what an unknown key has
KEY, STATE, COUNT, MINIMUM, MAXIMUM, MATCHES, NODE = 0, 1, 2, 3, 4, 5, 6
# A child chain: block << 8 | size, begin << 32 | end, time of the last event.
BLOCK, RANGE, LAST, CHAIN_WORDS = 0, 1, 2, 3
# A pending match.
P_SEAL, P_VARIANT, P_NODE, P_BEFORE, P_NEXT, P_SERIAL, P_EVENTS = 0, 1, 2, 3, 4, 5, 6
CANDIDATE = 6  # where the positives of a candidate begin


class State(NamedTuple):
    """The arrays of an engine, see above."""

    slots: Array
    nodes: Array
    pool: Array
    attrs: Array
    pending: Array
    pending_attrs: Array
    heap: Array
    tree: Array
    meta: Array


class Block(NamedTuple):
    """The columns of one feed; those that are not given are empty. `true` holds a row per class with a condition."""

    type_code: Array
    key: Array
    t: Array
    t_max: Array
    source: Array
    attrs: Array
    true: Array
    frontier: Array  # filled with the frontier after each event, unless empty


class Results(NamedTuple):
    """What one feed tells, with the numbers of filled rows in `meta`."""

    told: Array  # rows of indices
    told_at: Array
    told_which: Array
    retracted: Array
    retracted_at: Array
    retracted_which: Array
    late: Array
    added: Array  # late event, pattern, indices
    removed: Array
    candidates: Array  # moment, variant, serial, kind, first negated event, key, (t, t_max, index) of each positive
    negated: Array  # negation, t, t_max, index


class Scratch(NamedTuple):
    """Room for a search: numbers and attributes per element (stamps, index, places in chains), a stack, a match."""

    num: Array
    attrs: Array
    stack: Array
    row: Array


S_T, S_T_MAX, S_INDEX, S_AT, S_END, S_BOUND, S_LIMIT, SCRATCH = 0, 1, 2, 3, 4, 5, 6, 8
