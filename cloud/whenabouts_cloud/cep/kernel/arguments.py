"""Groups of kernel arguments, and table rows with named columns; neither costs anything in machine code."""

from typing import NamedTuple

from whenabouts_cloud.cep.kernel.layout import Results, Scratch, State
from whenabouts_cloud.cep.kernel.program import ALTERNATIVE, NEGATION, AlternativeRow, Negation, Program
from whenabouts_cloud.jit import Array, compiled_inline, u


class Machine(NamedTuple):
    """The tables and arrays of an engine, as arguments of the kernels."""

    program: Program
    state: State
    out: Results
    scratch: Scratch


class Setting(NamedTuple):
    """Settings of an engine; times in ticks."""

    hold: int  # how long events are stored after the frontier has passed them
    longest: int  # longest stamp
    k: int  # disorder bound of order kbound
    on_arrival: bool  # True: emit matches on arrival, before they are final
    by_source: bool  # order source, not kbound


class Event(NamedTuple):
    """The event of a block that is being processed."""

    row: int  # in the block
    arrival: int  # its index among all events
    t: int
    t_max: int
    first: int  # its classes are [first, last) of `type_class`
    last: int


class Site(NamedTuple):
    """Place of a search: an alternative, the event's position in it or -1, and the row of the per-key event list."""

    alternative: int
    position: int
    node: int


class Goal(NamedTuple):
    """Goal of a search."""

    kind: int  # EMIT, ADD or REMOVE, see `emit`
    oldest: int  # events with t_max before this are not used for a late event's changes
    event_class: int  # of a late event, for REMOVE


class Plain(NamedTuple):
    """Arrays that a search for points in a chain needs. Few, since a call passes each array as seven to nine numbers."""

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


@compiled_inline
def plain_of(machine: Machine) -> Plain:
    """The arrays of an engine that a search for points in a chain needs."""
    program, state, out = machine.program, machine.state, machine.out
    return Plain(
        program.alternatives, program.elements, program.negations, state.nodes, state.pool, state.meta, state.pending,
        out.emitted, out.emitted_which, machine.scratch.bound,
    )  # fmt: skip


@compiled_inline
def alternative_of(alternatives: Array, v: int) -> AlternativeRow:
    """Row v of the alternatives; the compiler drops the loads of unused columns."""
    return AlternativeRow(
        alternatives[u(v), ALTERNATIVE.plan], alternatives[u(v), ALTERNATIVE.window],
        alternatives[u(v), ALTERNATIVE.order], alternatives[u(v), ALTERNATIVE.refined],
        alternatives[u(v), ALTERNATIVE.decided_outside], alternatives[u(v), ALTERNATIVE.width],
        alternatives[u(v), ALTERNATIVE.element],
        alternatives[u(v), ALTERNATIVE.negation], alternatives[u(v), ALTERNATIVE.negation_end],
        alternatives[u(v), ALTERNATIVE.condition], alternatives[u(v), ALTERNATIVE.condition_end],
    )  # fmt: skip


@compiled_inline
def negation_of(negations: Array, k: int) -> Negation:
    """Row k of the negations; the compiler drops the loads of unused columns."""
    return Negation(
        negations[u(k), NEGATION.event_class], negations[u(k), NEGATION.left], negations[u(k), NEGATION.right],
        negations[u(k), NEGATION.mask], negations[u(k), NEGATION.step], negations[u(k), NEGATION.step_end],
        negations[u(k), NEGATION.level], negations[u(k), NEGATION.lower],
    )  # fmt: skip
