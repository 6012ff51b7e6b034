"""Where things lie in the arrays that an engine consists of: all of its state is int64 and float64 arrays.

So the state can be grown, copied, written out and read back as it is, and machine code goes through it without objects.

    slots   (2^n, 2)            hash table: key, main node (0: empty); keys are compared, not only hashed
    nodes   (.., CHAINS + 3 C)  main nodes, one row per key; rows 0 and 1: patterns without a key, no key
    pool    (.., 2 or 3)        stored events: t, index of arrival and, once intervals were seen, t_max; cut into blocks
    attrs   (.., A)             attributes of the stored events, in the same places
    pending (.., 6 + 3 m)       matches that are complete but not sealed
    pending_attrs (.., m * A)   attributes of their events
    heap    (.., 2)             sealing time and place in `pending`, the earliest on top
    tree    (2^n)               tournament over the sources' frontiers
    meta    (..)                numbers (`Meta`)
"""

from typing import NamedTuple

from whenabouts_cloud.jit import Array, columns

NEVER = -(1 << 62)  # a frontier before anything is promised
FOREVER = 1 << 62
POSITIVES = 48  # elements of a variant at most: sets of them are bits of an int64
NEGATED_PLACE = 63  # where a negated event stands among the bound ones
EVENT_PLACE = 62  # and the attributes of the one that arrives

# What the machine code may ask for before it goes on.
DONE, MORE_NODES, MORE_POOL, MORE_PENDING, MORE_EMITTED, MORE_RETRACTED, MORE_LATE, MORE_ADDED, MORE_REMOVED = range(9)
MORE_CANDIDATES, MORE_NEGATED, STOPPED = 9, 10, 11

FREE_BLOCKS = 40  # where in `meta` the heads of the lists of free blocks begin, by size
META_WORDS = 128


class Meta(NamedTuple):
    """The numbers of an engine; those of the results count rows that are filled."""

    frontier: int
    newest: int  # the greatest t_max seen
    longest: int  # the longest stamp seen
    stored: int
    pending: int
    swept: int  # the frontier at the last sweep
    pool_top: int
    node_top: int
    node_free: int  # head of the list of free main nodes
    nodes: int
    pending_top: int
    pending_free: int  # head of the list of free places in `pending`
    heap: int
    event: int  # place in the block of the event that is next
    stage: int
    chain: int  # how many chains have the event that is being stored
    staged: int  # head of the list of pending matches that this event began
    unused: int
    serial: int
    emitted: int
    group: int  # rows of `emitted` before this event
    retracted: int
    retracted_group: int
    late: int
    added: int
    removed: int
    candidates: int
    negated_events: int
    fed: int  # events before this block
    begun_candidates: int
    begun_negated: int
    late_total: int
    stop: int
    forgotten: int  # before it events may be missing that patterns added since would have held


class Node(NamedTuple):
    """A main node; its chains follow, one for each class."""

    key: int
    present: int  # the set of classes that have events (the first 62)
    events: int
    minimum: int
    maximum: int
    matches: int  # head of the list of its pending matches


class Chain(NamedTuple):
    """A child chain."""

    block: int  # base << 8 | size
    span: int  # begin << 32 | end
    last: int  # time of the last event


class Pending(NamedTuple):
    """A match that is complete but not final; (t, t_max, index) of each of its events follow."""

    due: int  # the frontier at which it is final
    alternative: int
    node: int
    before: int
    next: int
    serial: int


class Candidate(NamedTuple):
    """A match that is decided outside of the machine code; (t, t_max, index) of each of its positives follow."""

    moment: int
    alternative: int
    serial: int
    kind: int
    negated: int  # the first of its negated events
    key: int


class NegatedEvent(NamedTuple):
    """An event that may forbid a candidate."""

    negation: int
    t: int
    t_max: int
    arrival: int


class Bound(NamedTuple):
    """What a search knows of an element."""

    t: int
    t_max: int
    arrival: int  # index of the event
    place: int  # of the event in its chain
    end: int  # one past the last place that it can have
    latest: int  # the latest begin that it can have
    limit: int  # the latest begin that negations before it allow
    begin: int  # the first place that it can have


META, NODE, CHAIN, PENDING = columns(Meta), columns(Node), columns(Chain), columns(Pending)
CANDIDATE, NEGATED_EVENT, BOUND = columns(Candidate), columns(NegatedEvent), columns(Bound)
PER_FEED = [  # what begins at 0 with each feed
    META.emitted, META.retracted, META.late, META.added, META.removed, META.candidates, META.negated_events, META.event,
]  # fmt: skip
EMPTY_NODE = 1  # always empty, in no place of the table: what an unknown key has
CHAINS, CHAIN_WORDS = len(NODE), len(CHAIN)
PENDING_EVENTS, CANDIDATE_EVENTS = len(PENDING), len(CANDIDATE)


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

    emitted: Array  # rows of indices
    emitted_at: Array
    emitted_which: Array
    retracted: Array
    retracted_at: Array
    retracted_which: Array
    late: Array
    added: Array  # late event, pattern, indices
    removed: Array
    candidates: Array
    negated: Array


class Scratch(NamedTuple):
    """Room for a search: what is bound and its attributes, per element; a stack; a row of a match."""

    bound: Array
    attrs: Array
    stack: Array
    row: Array
