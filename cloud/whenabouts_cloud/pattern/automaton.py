"""INFA: the automaton that takes the positive types of a pattern in any order of arrival.

Its state is the set of types that are present, so that it knows when an event can complete something; only then is the hash
table searched for what it completes. After Wang, Wang, Cheng and Lu (KSII TIIS 10(9), 2016, Section 3), whose trigger counts
events: here it is the set that counts, so a second event of a type that is present leaves the state as it is, and negated
types are in no state. A repeated type is one type; whether enough events of it are there is for the search to find.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from whenabouts_cloud.pattern.elements import Event, PatternParts, leaves
from whenabouts_cloud.pattern.unfold import bits, shapes

MAX_STATES = 1 << 16  # that are counted one by one, those of 16 types in any order


@dataclass(frozen=True)
class Automaton:
    """`letters` are the kinds of events that elements want, each one or more types; a state is a set of them, as bits.

    `moves[type]` are the letters that an event of the type brings; a state is complete when it holds one of `needs`, the
    letters of a variant. `states` are those that can be reached, None if there are more than MAX_STATES.
    """

    letters: tuple[tuple[str, ...], ...]
    moves: dict[str, int]
    needs: tuple[int, ...]
    states: tuple[int, ...] | None

    def is_complete(self, state: int) -> bool:
        """Whether some variant has every type that it needs."""
        return any(need & ~state == 0 for need in self.needs)

    def names(self, state: int) -> tuple[str, ...]:
        """The letters of a state as they are written."""
        return tuple("|".join(self.letters[i]) for i in bits(state))

    def transitions(self, state: int) -> Iterator[tuple[str, int]]:
        """(type, next state) for each type that changes the state."""
        for name, brings in self.moves.items():
            if brings & ~state:
                yield name, state | brings

    def layers(self) -> dict[int, tuple[int, int]]:
        """By number of letters present: how many states there are, and how many of them are complete."""
        found, complete = Counter[int](), Counter[int]()
        for state in self.states or ():
            found[state.bit_count()] += 1
            complete[state.bit_count()] += self.is_complete(state)
        return {n: (found[n], complete[n]) for n in sorted(found)}


def automaton(pattern: PatternParts) -> Automaton:
    """The automaton of a pattern, all variants in one."""
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
