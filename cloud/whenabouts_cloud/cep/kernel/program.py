"""Tables that the machine code reads instead of plans: classes shared among patterns, uses of a class, elements, negations.

A use of a class is in vain as long as another class that the pattern needs is not there. So a class with many uses has for
each the sets of classes, as bits, that must have an event before this one, and after it; an event is compared with all of
them in one pass, and uses that need nothing after it come first, since most events come in order.
"""

from typing import NamedTuple

from whenabouts_cloud.jit import Array, columns

CERTAIN, POSSIBLE, UNORDERED = 0, 1, 2  # what the search asks of an order: certain, possible, nothing
MANY, BITS = 8, 62  # uses of a class from which on they are many; bits of a set: classes 62 apart share one


class Class(NamedTuple):
    """What an event must be, to have a chain and uses."""

    true: int  # row of Block.true, or -1
    keyed: int
    use: int  # its uses as a positive: [use, use_end)
    use_end: int
    negations: int  # how many there are of it
    use_last: int  # [use, use_last) need nothing after it
    many: int  # whether its uses are many
    window: int  # the widest of their windows


class Use(NamedTuple):
    """A class at a position of a variant. One row tells of most uses that they are in vain."""

    alternative: int
    position: int
    before: int  # in a plain variant the class before it in the chain, else -1
    after: int
    window: int


class Need(NamedTuple):
    """By use: the classes that must have an event before this one, and after it, in certain order."""

    before: int
    after: int


class Alternative(NamedTuple):
    """A variant of a pattern."""

    plan: int
    window: int
    order: int  # CERTAIN, POSSIBLE or UNORDERED
    refined: int  # whether its order and negations are decided outside of the machine code
    offered: int  # whether its matches go to `candidates`, as it is refined or has an after-match skip
    plain: int  # whether it is a chain of certain order, without conditions across events, and not offered
    width: int
    element: int  # its elements: [element, element + width)
    negation: int
    negation_end: int
    condition: int
    condition_end: int


class Element(NamedTuple):
    """A positive of a variant."""

    event_class: int
    column: int  # of a match
    before: int  # the positives before it, as bits
    after: int


class Negation(NamedTuple):
    """A class of events that a variant forbids between the positives of `left` and those of `right`, as bits."""

    event_class: int
    left: int
    right: int
    mask: int  # the positives that must be bound to decide it
    step: int  # of its condition
    step_end: int
    level: int  # in a chain, if it lies between two positives, the later one, else -1
    lower: int  # and the earlier one


class Condition(NamedTuple):
    """A condition across positives."""

    mask: int  # the positives that it names
    step: int
    step_end: int


class Step(NamedTuple):
    """A step of a condition, see `conditions`."""

    code: int
    element: int
    column: int


CLASS, USE, NEED, ALTERNATIVE = columns(Class), columns(Use), columns(Need), columns(Alternative)
ELEMENT, NEGATION, CONDITION, STEP = columns(Element), columns(Negation), columns(Condition), columns(Step)


class Program(NamedTuple):
    """The tables, a row per thing; the row types above declare their columns."""

    type_start: Array  # by type: where its classes begin in type_class
    type_class: Array
    classes: Array
    uses: Array
    needs: Array
    alternatives: Array
    elements: Array
    negations: Array
    conditions: Array
    steps: Array
    step_values: Array
