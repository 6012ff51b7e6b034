"""INFA: the automaton that accepts the positive types of a pattern in any order of arrival.

Its state is the set of types that are present. An event can complete a match only in a complete state; only then the hash
table is searched for matches. After Wang, Wang, Cheng and Lu (KSII TIIS 10(9), 2016, Section 3), whose trigger counts
events. Here the set decides: a second event of a present type does not change the state, and negated types are in no state.
A repeated type is one type; the search checks that there are enough events of it.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from whenabouts_cloud.pattern.elements import Event, PatternParts, leaves
from whenabouts_cloud.pattern.unfold import bits, shapes

MAX_STATES = 1 << 16  # states counted one by one: those of 16 types in any order


@dataclass(frozen=True)
class Automaton:
    """`letters` are the kinds of events that elements accept, each one or more types; a state is a set of letters, as bits.

    `moves[type]` are the letters that an event of the type adds; a state is complete if it contains one of `needs`, the
    letters of an alternative. `states` are the reachable states, None if there are more than MAX_STATES.
    """

    letters: tuple[tuple[str, ...], ...]
    moves: dict[str, int]
    needs: tuple[int, ...]
    states: tuple[int, ...] | None

    def is_complete(self, state: int) -> bool:
        """Return True if all types of some alternative are present."""
        return any(need & ~state == 0 for need in self.needs)

    def names(self, state: int) -> tuple[str, ...]:
        """The letters of a state, in the rule language."""
        return tuple("|".join(self.letters[i]) for i in bits(state))

    def transitions(self, state: int) -> Iterator[tuple[str, int]]:
        """(type, next state) for each type that changes the state."""
        for name, brings in self.moves.items():
            if brings & ~state:
                yield name, state | brings

    def layers(self) -> dict[int, tuple[int, int]]:
        """(states, complete states) by number of letters present."""
        total, complete = Counter[int](), Counter[int]()
        for state in self.states or ():
            total[state.bit_count()] += 1
            complete[state.bit_count()] += self.is_complete(state)
        return {n: (total[n], complete[n]) for n in sorted(total)}


def automaton(pattern: PatternParts) -> Automaton:
    """Make the automaton of a pattern, one for all alternatives."""
    elements = list(leaves(pattern.root))
    kinds = [tuple(sorted(leaf.types)) for leaf in elements]
    letters = tuple(dict.fromkeys(kind for leaf, kind in zip(elements, kinds, strict=True) if isinstance(leaf, Event)))
    number = {letter: i for i, letter in enumerate(letters)}
    moves: dict[str, int] = {}
    for letter, i in number.items():
        for name in letter:
            moves[name] = moves.get(name, 0) | 1 << i
    wanted = {sum({1 << number[kinds[p.leaf]] for p in shape.positives}) for shape in shapes(pattern)}
    least = [need for need in wanted if not any(other != need and other & ~need == 0 for other in wanted)]
    return Automaton(letters, moves, tuple(sorted(least)), _reachable(set(moves.values())))


def _reachable(moves: set[int]) -> tuple[int, ...] | None:
    known, edge = {0}, [0]
    while edge:
        edge = list({state | move for state in edge for move in moves} - known)
        known.update(edge)
        if len(known) > MAX_STATES:
            return None
    return tuple(sorted(known, key=lambda state: (state.bit_count(), [*bits(state)])))
