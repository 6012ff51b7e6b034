"""Arguments that the kernels hand on together, and rows of tables by name; they cost nothing in machine code."""

from typing import NamedTuple

from whenabouts_cloud.cep.kernel.layout import Results, Scratch, State
from whenabouts_cloud.cep.kernel.program import NEGATION, VARIANT, Negation, Program, Variant
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
    eager: bool  # whether matches are emitted on arrival
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

    variant: int
    position: int
    node: int


class Goal(NamedTuple):
    """What a search is for."""

    kind: int  # TELL, ADD or REMOVE, see `emit`
    oldest: int  # a late event's changes rest on no event before this
    event_class: int  # of a late event, for REMOVE


class Plain(NamedTuple):
    """The arrays that a search for points in a chain needs: few, for a call hands over each in seven to nine parts."""

    variants: Array
    elements: Array
    negations: Array
    nodes: Array
    pool: Array
    meta: Array
    pending: Array
    told: Array
    told_which: Array
    bound: Array


@woven
def plain_of(machine: Machine) -> Plain:
    """These arrays of an engine."""
    program, state, out = machine.program, machine.state, machine.out
    return Plain(
        program.variants, program.elements, program.negations, state.nodes, state.pool, state.meta, state.pending,
        out.told, out.told_which, machine.scratch.bound,
    )  # fmt: skip


@woven
def variant_of(variants: Array, v: int) -> Variant:
    """A row of the variants; what is not read of it is not loaded."""
    return Variant(
        variants[v, VARIANT.plan], variants[v, VARIANT.window], variants[v, VARIANT.order], variants[v, VARIANT.refined],
        variants[v, VARIANT.offered], variants[v, VARIANT.plain], variants[v, VARIANT.width], variants[v, VARIANT.element],
        variants[v, VARIANT.negation], variants[v, VARIANT.negation_end], variants[v, VARIANT.condition],
        variants[v, VARIANT.condition_end],
    )  # fmt: skip


@woven
def negation_of(negations: Array, k: int) -> Negation:
    """A row of the negations; what is not read of it is not loaded."""
    return Negation(
        negations[k, NEGATION.event_class], negations[k, NEGATION.left], negations[k, NEGATION.right],
        negations[k, NEGATION.mask], negations[k, NEGATION.step], negations[k, NEGATION.step_end],
        negations[k, NEGATION.level], negations[k, NEGATION.lower],
    )  # fmt: skip
