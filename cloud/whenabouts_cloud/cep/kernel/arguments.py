"""Arguments that the kernels hand on together, and rows of tables by name; they cost nothing in machine code."""

from typing import NamedTuple

from whenabouts_cloud.cep.kernel.layout import Results, Scratch, State
from whenabouts_cloud.cep.kernel.program import ALTERNATIVE, NEGATION, Alternative, Negation, Program
from whenabouts_cloud.jit import Array, woven


class Machine(NamedTuple):
    """An engine as the kernels see it."""

    program: Program
    state: State
    out: Results
    scratch: Scratch


class Setting(NamedTuple):
    """How an engine runs; times in ticks."""

    hold: int  # behind the frontier, events are held so long
    longest: int  # stamp
    k: int  # of order kbound
    on_arrival: bool  # whether matches are emitted on arrival
    by_source: bool  # order source, not kbound


class Event(NamedTuple):
    """The event of a block that is taken in."""

    row: int  # in the block
    arrival: int  # its index among all events
    t: int
    t_max: int
    first: int  # its classes are [first, last) of `type_class`
    last: int


class Site(NamedTuple):
    """Where a match is looked for: a variant, the position of the event in it or -1, and the main node."""

    alternative: int
    position: int
    node: int


class Goal(NamedTuple):
    """What a search is for."""

    kind: int  # TELL, ADD or REMOVE, see `emit`
    oldest: int  # a late event's changes rest on no event before this
    event_class: int  # of a late event, for REMOVE


class Plain(NamedTuple):
    """The arrays that a search for points in a chain needs: few, for a call hands over each in seven to nine parts."""

    alternatives: Array
    elements: Array
    negations: Array
    nodes: Array
    pool: Array
    meta: Array
    pending: Array
    emitted: Array
    emitted_which: Array
    bound: Array


@woven
def plain_of(machine: Machine) -> Plain:
    """These arrays of an engine."""
    program, state, out = machine.program, machine.state, machine.out
    return Plain(
        program.alternatives, program.elements, program.negations, state.nodes, state.pool, state.meta, state.pending,
        out.emitted, out.emitted_which, machine.scratch.bound,
    )  # fmt: skip


@woven
def alternative_of(alternatives: Array, v: int) -> Alternative:
    """A row of the variants; what is not read of it is not loaded."""
    return Alternative(
        alternatives[v, ALTERNATIVE.plan], alternatives[v, ALTERNATIVE.window], alternatives[v, ALTERNATIVE.order],
        alternatives[v, ALTERNATIVE.refined], alternatives[v, ALTERNATIVE.offered], alternatives[v, ALTERNATIVE.plain],
        alternatives[v, ALTERNATIVE.width], alternatives[v, ALTERNATIVE.element], alternatives[v, ALTERNATIVE.negation],
        alternatives[v, ALTERNATIVE.negation_end], alternatives[v, ALTERNATIVE.condition], alternatives[v,
        ALTERNATIVE.condition_end],
    )  # fmt: skip


@woven
def negation_of(negations: Array, k: int) -> Negation:
    """A row of the negations; what is not read of it is not loaded."""
    return Negation(
        negations[k, NEGATION.event_class], negations[k, NEGATION.left], negations[k, NEGATION.right],
        negations[k, NEGATION.mask], negations[k, NEGATION.step], negations[k, NEGATION.step_end],
        negations[k, NEGATION.level], negations[k, NEGATION.lower],
    )  # fmt: skip
