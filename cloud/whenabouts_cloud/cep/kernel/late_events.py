"""Late events: not stored, but noted with the matches that they would have added or removed."""

from typing import Any

from whenabouts_cloud.cep.kernel.arguments import Event, Goal, Machine, Setting, Site
from whenabouts_cloud.cep.kernel.emit import ADD, NO_CLASS, NO_POSITION, REMOVE, negates
from whenabouts_cloud.cep.kernel.hts import find
from whenabouts_cloud.cep.kernel.layout import DONE, EMPTY_NODE, EVENT_PLACE, META, MORE_LATE, Block
from whenabouts_cloud.cep.kernel.program import ALTERNATIVE, CLASS, USE
from whenabouts_cloud.cep.kernel.search import search
from whenabouts_cloud.jit import compiled_noref, inlined


@compiled_noref
def note_late(machine: Machine, block: Block, event: Event, setting: Setting) -> Any:
    """Notes a late event, with the matches of stored events that it would have added or removed."""
    program, state, out, scratch = machine
    meta, classes = state.meta, program.classes
    begun = (meta[META.added], meta[META.removed], meta[META.candidates], meta[META.negated_events])
    if meta[META.late] >= len(out.late):
        return MORE_LATE
    for column in range(state.attrs.shape[1]):
        scratch.attrs[EVENT_PLACE, column] = block.attrs[event.row, column]
    oldest = max(meta[META.frontier] - setting.longest - setting.hold, meta[META.forgotten])
    for place in range(event.first, event.last):
        c = program.type_class[place]
        if classes[c, CLASS.true] >= 0 and not block.true[classes[c, CLASS.true], event.row]:
            continue
        node = 0
        if classes[c, CLASS.keyed]:
            node = find(state.slots, state.nodes, block.key[event.row])
            if node == 0:
                node = EMPTY_NODE
        status = _search_class(machine, c, node, event, oldest, setting)
        if status != DONE:
            # The next call notes all of them again.
            meta[META.added], meta[META.removed], meta[META.candidates], meta[META.negated_events] = begun
            return status
    out.late[meta[META.late]] = event.arrival
    meta[META.late] += 1
    meta[META.late_total] += 1
    return DONE


@inlined
def _search_class(machine: Machine, c: int, node: int, event: Event, oldest: int, setting: Setting) -> Any:
    """Searches for the matches that the late event would have added or removed as one of a class, and notes them."""
    program = machine.program
    for use in range(program.classes[c, CLASS.use], program.classes[c, CLASS.use_end]):
        site = Site(program.uses[use, USE.alternative], program.uses[use, USE.position], node)
        status = search(machine, site, event, Goal(ADD, oldest, NO_CLASS), setting)
        if status != DONE:
            return status
    if program.classes[c, CLASS.negations] == 0:
        return DONE
    for v in range(len(program.alternatives)):
        if program.alternatives[v, ALTERNATIVE.window] >= 0 and negates(program, v, c):
            status = search(machine, Site(v, NO_POSITION, node), event, Goal(REMOVE, oldest, c), setting)
            if status != DONE:
                return status
    return DONE
