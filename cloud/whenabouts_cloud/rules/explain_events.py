"""Predicts a rule about an order of events: its automaton, its negations and when each is final, how long events are kept.

Pure; times in microseconds. With f the frontier (everything that ended before f has arrived), L the longest stamp and w the
window: a gap that ends at an event is final when f >= its time + L, one that ends with the window when f > the first event's
time + w + L. Under the K-bound f = M - K, M the latest end of all events so far; per source f is the time that every source
has passed. An event can still join a match until f - L - w has passed its end.
"""

from dataclasses import dataclass

from whenabouts_cloud.language.pattern import Pattern
from whenabouts_cloud.pattern.automaton import Automaton, automaton
from whenabouts_cloud.pattern.automaton_svg import MAX_DRAWN, svg
from whenabouts_cloud.pattern.compile import alternative_shapes
from whenabouts_cloud.pattern.elements import leaves
from whenabouts_cloud.pattern.expressions import words_of
from whenabouts_cloud.pattern.unfold import Between, Shape, bits
from whenabouts_cloud.rules.model import CepRule


@dataclass(frozen=True)
class GapExplained:
    """A gap in which no event of an element may be; final when the time of `final_by` + `after_us` has passed."""

    element: str
    where: str
    final_by: str
    after_us: int


@dataclass(frozen=True)
class StateExplained:
    """A state of the automaton: the types present, `complete` if a search follows, and (type, number of the next state)."""

    present: tuple[str, ...]
    complete: bool
    moves: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class EventsExplained:
    """All predictions about a rule before it runs; `states` is empty if `state_count` is above 32.

    `layers`: (types present, states, complete ones); `state_count` None: too many to count. `owned`: the streams of one
    site or gateway, with it. `words`: what conditions read of the names in keys.
    """

    name: str
    text: str
    where: str
    reason: str
    places: tuple[str, ...]
    window_us: int
    strict_window: bool
    lateness_us: int
    longest_us: int
    keep_us: int
    alternatives: int
    emit: str
    count: str | None
    gaps: tuple[GapExplained, ...]
    state_count: int | None
    states: tuple[StateExplained, ...]
    layers: tuple[tuple[int, int, int], ...]
    owned: tuple[str, ...]
    words: tuple[str, ...] = ()


def explain_events(rule: CepRule, reason: str = "a gateway runs CORRELATE rules only") -> EventsExplained:
    """Explain a rule that runs in the cloud for this reason."""
    pattern, graph = rule.pattern, automaton(rule.pattern)
    return EventsExplained(
        rule.name,
        rule.text(),
        "cloud",
        reason,
        pattern.names,
        pattern.window_us,
        pattern.strict_window,
        rule.lateness_us,
        rule.longest_us,
        pattern.window_us + rule.longest_us + rule.lateness_us,
        len(alternative_shapes(pattern)),
        pattern.emit,
        None if rule.count is None else rule.count.text(),
        gaps(rule),
        None if graph.states is None else len(graph.states),
        _states(graph),
        tuple((n, *counts) for n, counts in graph.layers().items()),
        tuple(f"{stream.name}{stream.owner}" for stream in rule.streams if stream.owner),
        words_of(rule.plan()),
    )


def picture(rule: CepRule) -> str:
    """Draw the automaton of a rule as the text of an SVG file, with its negations below."""
    notes = [f"no {gap.element} {gap.where}" for gap in gaps(rule)]
    return svg(automaton(rule.pattern), f"{rule.name}: {rule.pattern.root.text()}", notes)


def gaps(rule: CepRule) -> tuple[GapExplained, ...]:
    """Gaps of all alternatives, each once, in the order of the text."""
    explained = [_gap(rule, shape, gap) for shape in _shapes(rule.pattern) for gap in shape.gaps]
    return tuple(dict.fromkeys(explained))


def _shapes(pattern: Pattern) -> list[Shape]:
    return list(dict.fromkeys(shape for shape, _ in alternative_shapes(pattern)))


def _gap(rule: CepRule, shape: Shape, gap: Between) -> GapExplained:
    element = list(leaves(rule.pattern.root))[gap.leaf].text()[1:]
    left, right = (_names(rule.pattern, shape, *border) for border in ((gap.left, True), (gap.right, False)))
    if left and right:
        where = f"after {left} and before {right}"
    elif right:
        where = f"before {right}, back to the last event less the window"
    elif left:
        where = f"after {left}, up to the first event plus the window"
    else:
        where = "from the last event less the window up to the first event plus the window"
    after_us = rule.lateness_us + rule.longest_us + (0 if right else rule.pattern.window_us)
    return GapExplained(element, where, right or "the first event", after_us)


def _names(pattern: Pattern, shape: Shape, mask: int, begins: bool) -> str:
    """Names of the positives at a border of a gap; a gap that begins after a repetition names its last copy."""
    first: list[int] = []
    place = 0
    for leaf in leaves(pattern.root):
        first.append(place)
        place += getattr(leaf, "most", 0)
    names = []
    for p in (shape.positives[i] for i in bits(mask)):
        name = pattern.names[first[p.leaf] + p.copy - 1]
        copies = sum(other.leaf == p.leaf for other in shape.positives)
        is_last = begins and p.copy == copies and name.endswith("]")
        names.append(f"{name.rpartition('[')[0]}[LAST]" if is_last else name)
    return " and ".join(names)


def _states(graph: Automaton) -> tuple[StateExplained, ...]:
    if graph.states is None or len(graph.states) > MAX_DRAWN:
        return ()
    number = {state: n for n, state in enumerate(graph.states)}
    return tuple(
        StateExplained(
            graph.names(state),
            graph.is_complete(state),
            tuple((name, number[after]) for name, after in graph.transitions(state)),
        )
        for state in graph.states
    )
