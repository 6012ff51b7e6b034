"""Converts parse trees to predicates on the states of a group, their windows, and when verdicts are emitted."""

import difflib
import math
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, cast

from lark import Token

from whenabouts_cloud.language.errors import Mistake, RuleError
from whenabouts_cloud.language.grammar import Part, tree_of
from whenabouts_cloud.language.timing import Notes, UnreadableError
from whenabouts_cloud.rules.state_predicate import (
    TURNED,
    AllOf,
    Alternative,
    AnyOf,
    AtLeast,
    Comparison,
    Not,
    Predicate,
    Sign,
    Value,
    alternatives,
    streams_of,
)

Modality = Literal["definitely", "possibly"]
Emission = Literal["eager", "patient"]

MAX_STATE_STREAMS = 16  # gateways that one rule can name
MAX_WINDOW = 64  # states of a gateway
MAX_NESTED = 32  # depth of nested predicates, as they are written
MAX_BOX_BITS = 26  # global states of all windows, as a power of two: 8 MiB, one bit each
MAX_SLOTS = 64  # states of all windows together where global states are enumerated
_WORDS = {"eager": "EAGER or PATIENT", "patient": "EAGER or PATIENT", "by_clocks": "CAUSAL"}


class GlobalState(NamedTuple):
    """The body of a rule about the states of a group; `windows` are those of `streams`, in the order of the text."""

    modality: Modality
    in_window: bool
    predicate: Predicate
    streams: tuple[str, ...]
    windows: tuple[int, ...]
    group: str
    emit: Emission
    causal: bool


class Verdict(NamedTuple):
    """A question about a whole set of states: needs no windows, no group and no time at which it is answered."""

    modality: Modality
    predicate: Predicate
    causal: bool

    @staticmethod
    def parse(text: str) -> "Verdict":
        """Parse a text such as "DEFINITELY dock.anybody AND door.anybody"; streams may have any names.

        Raises:
            RuleError: the text has mistakes; each with line and column.
        """
        mistakes: list[Mistake] = []
        tree = tree_of(Part(text), "verdict", text, mistakes)
        if tree is not None:
            modality, holds, *causal = cast(Any, tree.children)
            notes = Notes(mistakes)
            predicate = _Reader(notes, lambda _: None).read(holds, 1)
            if predicate is not None:
                verdict = Verdict(cast(Modality, str(modality.data)), predicate, bool(causal))
                _check_streams(streams_of(predicate), holds, notes)
                _check_alternatives(predicate, verdict.modality == "definitely", holds, notes)
                if not mistakes:
                    return verdict
        raise RuleError("verdict", mistakes)


def read_global_state(tree: Any, notes: Notes, check_stream: Callable[[Token], Any]) -> GlobalState | None:
    """Read the body of a tree, or return None with notes; `check_stream` notes mistakes in the name of a stream."""
    before = len(notes.mistakes)
    modality, *rest = tree.children
    in_window = rest.pop(0) if rest[0].data == "in_window" else None
    holds, widths, group, *options = rest
    predicate = _Reader(notes, check_stream).read(holds, 1)
    given: dict[str, Any] = {}
    for option in options:
        kind = _WORDS[option.data]
        if kind in given:
            notes.add(option, f"found a second {kind}, expected one")
        given[kind] = option.data
    certain = modality.data == "definitely"
    if in_window is not None and not certain:
        notes.add(in_window, "found POSSIBLY IN WINDOW, expected only POSSIBLY: it uses the window anyway")
    if str(group)[1:-1] == "" and group.type == "STRING":
        notes.add(group, "found an empty group, expected its name")
    if predicate is None or len(notes.mistakes) > before:
        return None
    streams = streams_of(predicate)
    _check_streams(streams, holds, notes)
    windows = _windows(widths, streams, notes)
    default = "eager" if certain and in_window is None else "patient"
    state = GlobalState(
        cast(Modality, str(modality.data)),
        in_window is not None,
        predicate,
        streams,
        windows,
        str(group)[1:-1] if group.type == "STRING" else str(group),
        cast(Emission, given.get("EAGER or PATIENT", default)),
        "CAUSAL" in given,
    )
    if len(notes.mistakes) == before:
        _check_cost(state, holds, widths, notes)
    return state if len(notes.mistakes) == before else None


def box_of(windows: tuple[int, ...]) -> int:
    """Number of global states of all windows."""
    return math.prod(windows)


def _windows(tree: Any, streams: tuple[str, ...], notes: Notes) -> tuple[int, ...]:
    common, *own = tree.children
    widths = dict.fromkeys(streams, _width(common, notes))
    named = set()
    for name, number in zip(own[::2], own[1::2], strict=True):
        if name not in widths:
            near = difflib.get_close_matches(name, streams, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            notes.add(name, f"found a window of {name}, expected one of {', '.join(streams)}{hint}")
        elif name in named:
            notes.add(name, f"found a second window of {name}, expected one")
        named.add(name)
        widths[str(name)] = _width(number, notes)
    return tuple(widths[name] for name in streams)


def _width(number: Token, notes: Notes) -> int:
    if "." in number or not 1 <= int(number) <= MAX_WINDOW:
        notes.add(number, f"found WINDOW {number}, expected a whole number of states from 1 to {MAX_WINDOW}")
        return 1
    return int(number)


def _check_streams(streams: tuple[str, ...], holds: Any, notes: Notes) -> None:
    if len(streams) > MAX_STATE_STREAMS:
        notes.add(holds, f"found {len(streams)} streams, expected at most {MAX_STATE_STREAMS}")


def _check_alternatives(predicate: Predicate, by_runs: bool, holds: Any, notes: Notes) -> list[Alternative] | None:
    try:
        parts = alternatives(predicate)
    except ValueError as error:
        notes.add(holds, str(error))
        return []
    if by_runs and parts is None:
        notes.add(
            holds,
            "found DEFINITELY of streams compared with each other, expected POSSIBLY, or DEFINITELY IN WINDOW, which "
            "may report what never happened: only local predicates of single gateways can be definite",
        )
    return parts


def _check_cost(state: GlobalState, holds: Any, widths: Any, notes: Notes) -> None:
    by_runs = state.modality == "definitely" and not state.in_window
    parts = _check_alternatives(state.predicate, by_runs, holds, notes)
    if by_runs:
        return
    if parts is None or len(parts) > 1:
        box, slots = box_of(state.windows), sum(state.windows)
        if box > 1 << MAX_BOX_BITS or slots > MAX_SLOTS:
            notes.add(
                widths,
                f"found windows of {slots} states and {box} global states, expected at most {MAX_SLOTS} and "
                f"{1 << MAX_BOX_BITS} where the predicate is no conjunction: narrow WINDOW or name fewer streams",
            )


class _Reader:
    """Reads the predicate of one rule."""

    def __init__(self, notes: Notes, check_stream: Callable[[Token], Any]) -> None:
        self._notes, self._check_stream = notes, check_stream
        self._checked: set[str] = set()

    def read(self, tree: Any, depth: int) -> Predicate | None:
        """Read a predicate, or return None with a note."""
        try:
            return self._predicate(tree, depth)
        except UnreadableError:
            return None

    def _predicate(self, tree: Any, depth: int) -> Predicate:
        if depth > MAX_NESTED:
            raise self._notes.unreadable(
                tree, f"found a predicate nested more than {MAX_NESTED} deep, expected no more"
            )
        match tree.data:
            case "any_holds":
                return AnyOf(self._parts(tree.children, depth))
            case "all_hold":
                return AllOf(self._parts(tree.children, depth))
            case "denied":
                return Not(self._predicate(tree.children[0], depth + 1))
            case "at_least":
                return self._at_least(tree, depth)
            case "compared":
                return self._compared(tree)
        value = self._side(tree.children[0])
        if isinstance(value, Value):
            return value
        raise self._notes.unreadable(
            tree, f"found {_describe(value)}, expected a name or a comparison as in phone.room = 2"
        )

    def _parts(self, trees: Any, depth: int) -> tuple[Predicate, ...]:
        """Read all parts before failing, so that a mistake in one hides no other."""
        predicates = [self.read(tree, depth + 1) for tree in trees]
        if None in predicates:
            raise UnreadableError
        return tuple(part for part in predicates if part is not None)

    def _at_least(self, tree: Any, depth: int) -> AtLeast:
        number, *parts = tree.children
        holds = self._parts(parts, depth)
        if "." in number or not 1 <= int(number) <= len(holds):
            raise self._notes.unreadable(
                number, f"found {number} OF {len(holds)}, expected a whole number from 1 to {len(holds)}"
            )
        return AtLeast(int(number), holds)

    def _compared(self, tree: Any) -> Comparison:
        left, token, right = tree.children
        sign = cast(Sign, str(token))
        sides = self._side(left), self._side(right)
        if not isinstance(sides[0], Value):
            sides, sign = (sides[1], sides[0]), TURNED[sign]
        value, other = sides
        if not isinstance(value, Value):
            raise self._notes.unreadable(
                tree, f"found {_describe(value)} compared with {_describe(other)}, expected a name"
            )
        if isinstance(other, str) and sign not in ("=", "!="):
            raise self._notes.unreadable(token, f'found {token} "{other}", expected = or !=: text has no order here')
        return Comparison(sign, value, other)

    def _side(self, tree: Any) -> Value | float | str:
        first = tree.children[0]
        match tree.data:
            case "local":
                if first not in self._checked:
                    self._checked.add(str(first))
                    self._check_stream(first)
                return Value(*map(str, tree.children))
            case "text":
                return str(first)[1:-1]
        number = float(first)
        if not math.isfinite(number):
            raise self._notes.unreadable(first, f"found a number of {len(first)} digits, expected one below 1e308")
        return -number if tree.data == "negative" else number


def _describe(x: Value | float | str) -> str:
    return f'the text "{x}"' if isinstance(x, str) else f"the number {x:g}" if isinstance(x, float) else x.text()
