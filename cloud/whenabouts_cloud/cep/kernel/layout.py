"""Layout of an engine's state, which consists of int64 and float64 arrays only.

So the state can be grown, copied, written out and read back as it is, and machine code uses it without objects.

    slots   (2^n, 2)            hash table: `HashSlot`; keys are compared, not only hashed
    nodes   (.., CHAINS + 3 C)  per-key event lists; rows 0 and 1: patterns without a key, unknown keys
    pool    (.., 2 or 3)        stored events (`Stored`), cut into blocks
    attrs   (.., A)             attributes of the stored events, in the same places
    pending (.., 6 + 3 m)       matches that are complete but not final
    pending_attrs (.., m * A)   attributes of their events
    heap    (.., 2)             `Timer`, the earliest on top
    tree    (2^n)               tournament tree over the sources' frontiers
    meta    (..)                numbers (`Meta`)
    recent  (.., 65 or 0)       by row of nodes: a count and a ring of the last events by time, if any class has many uses
"""

from typing import NamedTuple

from whenabouts_cloud.jit import Array, columns

NEVER = -(1 << 62)  # the frontier before the first event
FOREVER = 1 << 62
POSITIVES = 48  # the most positives of an alternative: sets of them are bits of an int64
NEGATED_PLACE = 63  # row of a negated event among the bound ones
EVENT_PLACE = 62  # row of the attributes of the arriving event

# Statuses that the machine code returns. MORE_...: the array that must grow before the next call.
DONE, MORE_NODES, MORE_POOL, MORE_PENDING, MORE_EMITTED, MORE_RETRACTED, MORE_LATE, MORE_ADDED, MORE_REMOVED = range(9)
MORE_CANDIDATES, MORE_NEGATED, STOPPED = 9, 10, 11

FREE_BLOCKS = 40  # first place in `meta`, behind those of `Meta`, of the heads of the lists of free blocks, by size
BLOCK_SIZES = 64
META_WORDS = 128


class Meta(NamedTuple):
    """Numbers of an engine; those named after results count filled rows."""

    frontier: int
    newest: int  # the greatest t_max seen
    longest: int  # the longest stamp seen
    stored: int
    pending: int
    swept: int  # the frontier at the last sweep
    pool_top: int
    node_top: int
    node_free: int  # head of the list of free nodes
    nodes: int
    pending_top: int
    pending_free: int  # head of the list of free places in `pending`
    heap: int
    event: int  # place of the next event in the block
    stage: int
    chain: int  # number of chains that have the event being stored
    staged: int  # head of the list of new pending matches of this event
    recent_since: int  # the recent events of each key are all there that are later than this
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
    node: int  # per-key event list of the event being processed
    forgotten: int  # before this time, events may be missing that patterns added later need


class HashSlot(NamedTuple):
    """An entry of the hash table."""

    key: int
    node: int  # 0: the entry is empty


class Node(NamedTuple):
    """The event list of a key, followed by its chains (`Chain`), one for each class."""

    key: int
    events: int
    minimum: int
    maximum: int
    matches: int  # head of the list of its pending matches


class Chain(NamedTuple):
    """Events of one class and key in time order."""

    block: int  # base << 8 | size
    span: int  # begin << 32 | end
    last: int  # time of the last event


class Stored(NamedTuple):
    """A stored event. The last column is there once intervals were seen; without it, t_max is t."""

    t: int
    arrival: int  # its index; in the first row of a free block: the base of the next free block of its size
    t_max: int


class Pending(NamedTuple):
    """A match that is complete but not final, followed by (t, t_max, index) of each of its events."""

    due: int  # the frontier at which it is final
    alternative: int
    node: int
    before: int
    next: int
    serial: int


class Timer(NamedTuple):
    """An entry of the heap of pending matches."""

    due: int
    place: int  # in `pending`


class Change(NamedTuple):
    """A match that a late event would have added or removed, followed by the indices of its events."""

    moment: int  # index of the late event
    pattern: int


class Candidate(NamedTuple):
    """A match that is decided outside the machine code, followed by (t, t_max, index) of each of its positives."""

    moment: int
    alternative: int
    serial: int
    kind: int
    negated: int  # row of the first of its negated events
    key: int


class NegatedEvent(NamedTuple):
    """An event that may forbid a candidate."""

    negation: int
    t: int
    t_max: int
    arrival: int


class Bound(NamedTuple):
    """State of one element in a search."""

    t: int
    t_max: int
    arrival: int  # index of the event
    place: int  # of the event in its chain
    end: int  # one past the last place that the event can have
    latest: int  # the latest begin that the event can have
    limit: int  # the latest begin that the negations before it allow
    begin: int  # the first place that the event can have


META, SLOT, NODE, CHAIN, STORED = columns(Meta), columns(HashSlot), columns(Node), columns(Chain), columns(Stored)
PENDING, TIMER, CHANGE = columns(Pending), columns(Timer), columns(Change)
CANDIDATE, NEGATED_EVENT, BOUND = columns(Candidate), columns(NegatedEvent), columns(Bound)
PER_FEED = [  # numbers that each feed resets to 0
    META.emitted, META.retracted, META.late, META.added, META.removed, META.candidates, META.negated_events, META.event,
]  # fmt: skip
EMPTY_NODE = 1  # an empty list that no slot refers to, for unknown keys
CHAINS, CHAIN_WORDS = len(NODE), len(CHAIN)
RING = 64  # places of a ring of recent events, of which one is unused
PENDING_EVENTS, CANDIDATE_EVENTS, CHANGE_INDICES = len(PENDING), len(CANDIDATE), len(CHANGE)
POINT_WIDTH, INTERVAL_WIDTH = len(STORED) - 1, len(STORED)  # columns of the pool before and after intervals were seen
assert len(META) <= FREE_BLOCKS <= META_WORDS - BLOCK_SIZES, "the heads of the free lists would overlap other numbers"


class State(NamedTuple):
    """The arrays of an engine, see the module docstring."""

    slots: Array
    nodes: Array
    pool: Array
    attrs: Array
    pending: Array
    pending_attrs: Array
    heap: Array
    tree: Array
    meta: Array
    recent: Array


class Block(NamedTuple):
    """Columns of one feed; columns that are not given are empty. `true` has a row per class with a condition."""

    type_code: Array
    key: Array
    t: Array
    t_max: Array
    source: Array
    attrs: Array
    true: Array
    frontier: Array  # filled with the frontier after each event, unless empty


class Results(NamedTuple):
    """Results of one feed; `meta` has the numbers of filled rows."""

    emitted: Array  # rows of indices
    emitted_at: Array
    emitted_which: Array
    retracted: Array
    retracted_at: Array
    retracted_which: Array
    late: Array
    added: Array  # rows of `Change`
    removed: Array
    candidates: Array
    negated: Array


class Scratch(NamedTuple):
    """Working arrays of a search: bound events and their attributes, per element; a stack; a row of a match; two more."""

    bound: Array
    attrs: Array
    stack: Array
    row: Array
    around: Array  # rows of the classes of the events before and after an event, see `infa.look_around`
    found: Array  # uses that an event may complete
