"""Converts parse trees to the model: checks everything about a declaration that a grammar cannot express.

A declaration with a mistake yields no stream or rule, but its name stays known, so that one mistake causes no others.
"""

import difflib
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, cast

from lark import Token, Tree

from whenabouts_cloud.epc.rule_words import WORDS, mistake_in
from whenabouts_cloud.language.errors import Mistake
from whenabouts_cloud.language.grammar import TOO_DEEP
from whenabouts_cloud.language.pattern import read_pattern
from whenabouts_cloud.language.timing import Notes, condition, confidence, duration, either
from whenabouts_cloud.rules.counts import read_count
from whenabouts_cloud.rules.model import (
    CepRule,
    CorrelateRule,
    Into,
    LatwinRule,
    Place,
    ResultKind,
    Rule,
    RuleFile,
    Stream,
    TagIs,
)
from whenabouts_cloud.rules.states import read_global_state
from whenabouts_protocol.topics import is_name

MAX_NAME = 64  # letters of a rule's name, which becomes part of a stream name
MAX_HINTS = 100  # mistakes of a file after which none gets the names that might be meant: each hint reads all names
FOLDER = "parquet"  # the kind of target that needs no URI
MAX_TOP = 1000  # partners of a reading that a rule can ask for


class Checker:
    """Checks the declarations of one file; appends its mistakes to the given list."""

    def __init__(self, mistakes: list[Mistake]) -> None:
        self._mistakes = mistakes
        self._notes = Notes(mistakes)
        self._streams: dict[str, Stream | None] = {}  # None: declared with a mistake
        self._rules: dict[str, Rule | None] = {}

    def check(self, trees: Iterable["Tree[Token]"]) -> RuleFile:
        """Check streams first, wherever they are in the file, then rules."""
        declarations: list[Any] = [tree.children[0] for tree in trees]
        for kind, known, check in (("stream", self._streams, self._stream), ("rule", self._rules, self._rule)):
            self._declare(kind, known, check, [x for x in declarations if x.data == kind])
        return RuleFile(
            tuple(s for s in self._streams.values() if s is not None),
            tuple(r for r in self._rules.values() if r is not None),
        )

    def _declare(self, kind: str, known: dict[str, Any], check: Callable[[Any], Any], trees: list[Any]) -> None:
        for tree in trees:
            name = tree.children[0]
            before = len(self._mistakes)
            try:
                made = check(tree)
            except RecursionError:
                made = None
                self._notes.add(name, f"found {kind} {name} with {TOO_DEEP}")
            if name in known:
                self._notes.add(name, f"found {kind} {name} a second time, expected a new name")
                continue
            known[str(name)] = made if len(self._mistakes) == before else None

    def _stream(self, tree: Any) -> Stream | None:
        name, pattern, *clauses = tree.children
        given: dict[str, Any] = {}
        for clause in clauses:
            if clause.data in given:
                self._notes.add(clause, f"found a second {clause.data.upper()}, expected one")
            given[clause.data] = clause
        self._pattern(pattern)
        if "delay" not in given:
            self._notes.add(
                name,
                f"found stream {name} without DELAY, expected how long a reading may take to land, as in DELAY 2 s",
            )
        delay = duration(given["delay"].children[0], self._notes) if "delay" in given else 0
        length = self._length(given["length"]) if "length" in given else None
        offset = duration(given["offset"].children[0], self._notes, signed=True) if "offset" in given else 0
        site, gateway = (self._name(clause, given) for clause in ("site", "gateway"))
        if gateway is not None and site is None:
            self._notes.add(
                given["gateway"],
                f'found GATEWAY "{gateway}" without a site, expected AT SITE "..." GATEWAY "{gateway}": '
                "names of gateways are unique within a site only",
            )
        return Stream(str(name), str(pattern)[1:-1], delay or 0, length, site, offset or 0, gateway)

    def _name(self, clause: str, given: dict[str, Any]) -> str | None:
        """The name in a clause about the owner of a stream, if it is given."""
        if clause not in given:
            return None
        token = given[clause].children[0]
        name = str(token)[1:-1]
        if name == "":
            self._notes.add(token, f"found an empty {clause}, expected its name")
        elif clause == "gateway" and not is_name(name):
            self._notes.add(token, f'found gateway {token}, expected a name such as "dock-1"')
        return name

    def _pattern(self, token: Token) -> None:
        levels = str(token)[1:-1].split("/")
        if levels == [""]:
            self._notes.add(token, 'found an empty pattern, expected a stream name such as "dock/tags"')
        for n, level in enumerate(levels):
            if "#" in level and (level != "#" or n != len(levels) - 1):
                self._notes.add(token, f"found # inside {token}, expected # only as the last level")
            if "+" in level and level != "+":
                self._notes.add(token, f"found + inside the level {level!r}, expected it to be a whole level")

    def _length(self, clause: Any) -> tuple[int, int] | None:
        low, high = (duration(x, self._notes) for x in clause.children)
        if low is None or high is None:
            return None
        if low > high:
            self._notes.add(clause, f"found LENGTH {low} us .. {high} us, expected the shorter one first")
        return low, high

    def _rule(self, tree: Any) -> Rule | None:
        name, *rest = tree.children
        targets = [x for x in rest if getattr(x, "data", None) == "into"]
        rest = rest[: len(rest) - len(targets)]
        if len(name) > MAX_NAME:
            self._notes.add(name, f"found a name of {len(name)} letters, expected at most {MAX_NAME}")
        body, place = rest[-1].children[0], rest[0] if len(rest) == 2 else None
        into = tuple(self._into(one) for one in targets)
        rule: Rule | None
        if body.data == "pattern":
            rule = self._cep(str(name), place, body, *rest[-1].children[1:])
        elif body.data == "global_state":
            rule = self._latwin(str(name), place, body)
        else:
            rule = self._correlate(str(name), place, body)
        return rule if rule is None or not into else replace(rule, into=into)

    def _into(self, tree: Any) -> Into:
        kind, uri = tree.children[0], str(tree.children[1])[1:-1] if len(tree.children) == 2 else ""
        if not uri and kind != FOLDER:
            self._notes.add(kind, f'found INTO {kind} without a target, expected one such as INTO {kind} "URI"')
        return Into(str(kind), uri)

    def _correlate(self, name: str, place: Token | None, body: Any) -> CorrelateRule | None:
        a, a_alias, b, b_alias, predicate, *rest = body.children
        window = rest.pop(0) if rest[0].data == "window" else None
        conditions = [x for x in rest[1:] if x.data == "condition"]
        if a_alias == b_alias:
            self._notes.add(b_alias, f"found {b_alias} for both streams, expected two names")
        streams = [self._known_stream(x) for x in (a, b)]
        aliases = str(a_alias), str(b_alias)
        timing = condition(predicate, window, confidence(rest[0], self._notes), aliases, self._notes)
        key_equal, tags = self._tags(conditions, aliases)
        kind, top_k = self._results([x for x in rest[1:] if x.data != "condition"], aliases)
        if place == "EDGE" and (kind != "inner" or top_k is not None):
            self._notes.add(
                place, "found AT EDGE, expected AT CLOUD or nothing: a gateway finds all pairs, nothing else"
            )
        if place == "EDGE" and any(tags.values()):
            self._notes.add(
                place,
                "found AT EDGE, expected AT CLOUD or nothing: a gateway compares keys with each other only, and does not "
                "know the names in them",
            )
        if timing is None or streams[0] is None or streams[1] is None:
            return None
        return CorrelateRule(
            name,
            streams[0],
            streams[1],
            timing,
            key_equal,
            *aliases,
            kind=kind,
            top_k=top_k,
            place=cast(Place, "auto" if place is None else place.lower()),
            a_tags=tags[aliases[0]],
            b_tags=tags[aliases[1]],
        )

    def _cep(self, name: str, place: Token | None, body: Any, counted: Any = None) -> CepRule | None:
        pattern = read_pattern(body, self._notes, self._known_stream, None)
        count = None if pattern is None or counted is None else read_count(counted, pattern, self._notes)
        if place == "EDGE":
            self._notes.add(place, "found AT EDGE, expected AT CLOUD or nothing: a gateway runs CORRELATE rules only")
        streams = [] if pattern is None else [self._streams.get(x) for x in pattern.types]
        if pattern is None or None in streams:
            return None
        known = tuple(stream for stream in streams if stream is not None)
        return CepRule(name, known, pattern, "auto" if place is None else "cloud", count)

    def _latwin(self, name: str, place: Token | None, body: Any) -> LatwinRule | None:
        state = read_global_state(body, self._notes, self._known_stream)
        if place == "EDGE":
            self._notes.add(place, "found AT EDGE, expected AT CLOUD or nothing: a gateway runs CORRELATE rules only")
        streams = [] if state is None else [self._streams.get(x) for x in state.streams]
        if state is None or None in streams:
            return None
        known = tuple(stream for stream in streams if stream is not None)
        return LatwinRule(
            name,
            known,
            state.modality,
            state.predicate,
            state.windows,
            state.group,
            state.in_window,
            state.emit,
            state.causal,
            "auto" if place is None else "cloud",
        )

    def _results(self, clauses: list[Any], aliases: tuple[str, str]) -> tuple[ResultKind, int | None]:
        kind: ResultKind = "inner"
        top_k: int | None = None
        for clause in clauses:
            if clause.data in ("top", "nearest"):
                if top_k is not None:
                    self._notes.add(clause, "found a second TOP or NEAREST, expected one")
                top_k = 1 if clause.data == "nearest" else self._top(clause.children[0])
                continue
            words = "KEEP ALL" if clause.data == "keep_all" else "ONLY UNMATCHED"
            if kind != "inner":
                self._notes.add(clause, "found a second KEEP ALL or ONLY UNMATCHED, expected one")
            kind = "left" if clause.data == "keep_all" else "anti"
            of = clause.children[0]
            if of != aliases[0]:
                hint = ": the stream that is named first; exchange the two" if of == aliases[1] else ""
                self._notes.add(of, f"found {words} {of}, expected {words} {aliases[0]}{hint}")
        if kind == "anti" and top_k is not None:
            self._notes.add(
                clauses[0], "found TOP or NEAREST with ONLY UNMATCHED, expected one of them: no pairs come out"
            )
        return kind, top_k

    def _top(self, number: Token) -> int:
        if "." in number or not 1 <= int(number) <= MAX_TOP:
            self._notes.add(number, f"found TOP {number}, expected a whole number from 1 to {MAX_TOP}")
            return 1
        return int(number)

    def _streams_like(self, token: Token) -> str:
        near = difflib.get_close_matches(token, self._streams, n=1)
        return f"; did you mean {near[0]}?" if near else f", which are {', '.join(self._streams) or 'none'}"

    def _known_stream(self, token: Token) -> Stream | None:
        if token not in self._streams:
            hint = self._streams_like(token) if len(self._mistakes) < MAX_HINTS else ""
            self._notes.add(token, f"found {token}, expected one of the declared streams{hint}")
            return None
        return self._streams[str(token)]

    def _tags(self, conditions: list[Any], aliases: tuple[str, str]) -> tuple[bool, dict[str, tuple[TagIs, ...]]]:
        """Whether both keys must be equal, and the conditions on the key of each reading, by alias."""
        key_equal = False
        tags: dict[str, dict[TagIs, None]] = {alias: {} for alias in aliases}
        for tree in conditions:
            alias, word, sign, *other = tree.children
            unknown = [name for name in (alias, *other[:-1]) if name not in aliases]
            for name in unknown:
                self._notes.add(name, f"found {name}, expected {either(set(aliases))}")
            if (mistake := _tag_mistake(tree)) is not None:
                self._notes.add(tree, mistake)
            elif len(other) == 2:
                key_equal = True
            elif not unknown:
                tags[str(alias)][TagIs(str(word), str(other[0])[1:-1], sign == "=")] = None
        return key_equal, {alias: tuple(some) for alias, some in tags.items()}


def _tag_mistake(tree: Any) -> str | None:
    """What is wrong with a condition on keys of a CORRELATE rule, beside its aliases."""
    alias, word, sign, *other = tree.children
    written = f"{alias}.{word} {sign} {'.'.join(other)}"
    if len(other) == 2:
        if word == "key" and sign == "=" and other[1] == "key" and other[0] != alias:
            return None
        return (
            f"found {written}, expected `a.key = b.key`: pairs are found by keys; AND(...) ACROSS KEYS compares others"
        )
    if word not in ("key", *WORDS):
        return (
            f"found {written}, expected a condition on key, {', '.join(WORDS)}: readings in pairs have no other "
            "attributes; SEQ and AND compare them"
        )
    if other[0].type == "NUMBER":
        return f'found {written}, expected a text in quotes: "{other[0]}"'
    if sign not in ("=", "!="):
        return f"found {written}, expected = or !=: text has no order here"
    return None if word == "key" else mistake_in(str(word), str(other[0])[1:-1])
