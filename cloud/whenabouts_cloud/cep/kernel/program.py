"""Tables that the machine code reads instead of plans: classes shared among patterns, uses of a class, elements, negations.

A use of a class completes no match while another class that the pattern needs has no event. If a class has many uses,
`group_uses` groups them, so that an event decides a group of them at once.
"""

from typing import NamedTuple

from whenabouts_cloud.jit import Array, columns
from whenabouts_cloud.words import WORDS

CERTAIN, POSSIBLE, UNORDERED = 0, 1, 2  # how the search checks an order: certain, possible, not at all
MANY, BITS = 8, 62  # a class has many uses if more than this; bits of a set: classes 62 apart share one
LEVELS = 5  # positives of a use on a side that its automaton asks for, see `group_uses`
GROUPED = 64 * WORDS  # uses of a group
HEAD, ROW = (LEVELS + 1) * WORDS, LEVELS * WORDS  # words of a group's levels: how they begin, and for each class


class Class(NamedTuple):
    """A class of events: type and condition, which decide the chains and uses of an event."""

    true: int  # row of Block.true, or -1
    keyed: int
    use: int  # uses as a positive: [use, use_end)
    use_end: int
    negations: int  # number of negations of the class
    many: int  # 1 if it has many uses
    group: int  # then its groups are [group, group_end)
    group_later: int  # [group, group_later) need no event after this one
    group_end: int
    recent: int  # 1 if its events are among the recent ones: a class around it has many uses
    window: int  # the widest of their windows


class Use(NamedTuple):
    """A class at a position of an alternative. This row is enough to skip most uses that cannot complete a match.

    It repeats the alternative's elements and window, so that nothing waits for two rows, one after the other.
    """

    alternative: int
    position: int
    plain: int  # 1 for a chain of certain order without conditions across events, not decided outside
    element: int
    width: int
    window: int
    before: int  # class before it in the chain of a plain alternative, else -1
    after: int


class Group(NamedTuple):
    """Uses of a class with many, which are decided at once."""

    use: int  # the first
    after: int  # the fewest events after the arrived one that any of them needs
    rounds: int  # how often its automaton reads the events: once, or for each level if they may be in any order


class AlternativeRow(NamedTuple):
    """An alternative of a pattern."""

    plan: int
    window: int
    order: int  # CERTAIN, POSSIBLE or UNORDERED
    refined: int  # 1 if order and negations are decided outside the machine code
    decided_outside: int  # 1 if matches go to `candidates`: it is refined or has an after-match skip
    width: int
    element: int  # elements: [element, element + width)
    negation: int
    negation_end: int
    condition: int
    condition_end: int


class ElementRow(NamedTuple):
    """A positive of an alternative."""

    event_class: int
    column: int  # its column in the results
    before: int  # positives before it, as bits
    after: int


class Negation(NamedTuple):
    """A class of events that an alternative forbids between the positives in `left` and those in `right`, as bits."""

    event_class: int
    left: int
    right: int
    mask: int  # positives that must be bound to decide it
    step: int  # its condition: [step, step_end)
    step_end: int
    level: int  # the later positive, if it lies between two of a chain, else -1
    lower: int  # the earlier one, else -1


class ConditionRow(NamedTuple):
    """A condition across positives."""

    mask: int  # positives that it names
    step: int
    step_end: int


class StepRow(NamedTuple):
    """A step of a condition, see `conditions`."""

    code: int
    element: int
    column: int


CLASS, USE, GROUP, ALTERNATIVE = columns(Class), columns(Use), columns(Group), columns(AlternativeRow)
ELEMENT, NEGATION, CONDITION, STEP = columns(ElementRow), columns(Negation), columns(ConditionRow), columns(StepRow)


class Program(NamedTuple):
    """The tables; the row types above declare their columns."""

    type_start: Array  # by type: where its classes begin in type_class
    type_class: Array
    classes: Array
    uses: Array
    groups: Array
    levels: Array  # by group and side: uses, as bits of vectors; see `group_uses`
    alternatives: Array
    elements: Array
    negations: Array
    conditions: Array
    steps: Array
    step_values: Array
