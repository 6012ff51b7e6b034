"""From parse trees to the model: everything about a declaration that a grammar cannot say.

A declaration with a mistake yields no stream or rule, but its name stays known, so that one mistake does not make others.
"""

import difflib
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

from lark import Token, Tree

from whenabouts_cloud.correlation.condition import Condition
from whenabouts_cloud.rules.errors import Mistake
from whenabouts_cloud.rules.model import CorrelateRule, RuleFile, Stream

UNITS_US = {"us": 1, "ms": 1_000, "s": 1_000_000, "min": 60_000_000, "h": 3_600_000_000}
MAX_DURATION_US = 10 * 366 * 24 * UNITS_US["h"]  # ten years: far above any use, far below the limits of int64
MAX_DECIMALS = 12  # of a confidence: keeps the exact comparison in small integers

_LATER_PREDICATES = {
    "deadline": "`@a + d >= @b`",
    "delay_at_least": "`@b - d >= @a`",
    "between": "`@b - @a IN [lo, hi]`",
}


class Checker:
    """Collects mistakes of one file into the list it is given."""

    def __init__(self, mistakes: list[Mistake]) -> None:
        self._mistakes = mistakes
        self._streams: dict[str, Stream | None] = {}  # None: declared with a mistake
        self._rules: dict[str, CorrelateRule | None] = {}

    def check(self, trees: Iterable["Tree[Token]"]) -> RuleFile:
        """Streams first, wherever they stand, then rules."""
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
            made = check(tree)
            if name in known:
                self._mistake(name, f"found {kind} {name} a second time, expected a new name")
                continue
            known[str(name)] = made if len(self._mistakes) == before else None

    def _stream(self, tree: Any) -> Stream | None:
        name, pattern, *clauses = tree.children
        given: dict[str, Any] = {}
        for clause in clauses:
            if clause.data in given:
                self._mistake(clause, f"found a second {clause.data.upper()}, expected one")
            given[clause.data] = clause
        self._pattern(pattern)
        if "delay" not in given:
            self._mistake(
                name,
                f"found stream {name} without DELAY, expected how long a reading may take to land, as in DELAY 2 s",
            )
        delay = self._duration(given["delay"].children[0]) if "delay" in given else 0
        length = self._length(given["length"]) if "length" in given else None
        site = str(given["site"].children[0])[1:-1] if "site" in given else None
        if site == "":
            self._mistake(given["site"].children[0], "found an empty site, expected its name")
        return Stream(str(name), str(pattern)[1:-1], delay or 0, length, site)

    def _pattern(self, token: Token) -> None:
        levels = str(token)[1:-1].split("/")
        if levels == [""]:
            self._mistake(token, 'found an empty pattern, expected a stream name such as "dock/tags"')
        for n, level in enumerate(levels):
            if "#" in level and (level != "#" or n != len(levels) - 1):
                self._mistake(token, f"found # inside {token}, expected it alone as the last level")
            if "+" in level and level != "+":
                self._mistake(token, f"found + inside the level {level!r}, expected it to be a whole level")

    def _length(self, clause: Any) -> tuple[int, int] | None:
        low, high = (self._duration(x) for x in clause.children)
        if low is None or high is None:
            return None
        if low > high:
            self._mistake(clause, f"found LENGTH {low} us .. {high} us, expected the shorter one first")
        return low, high

    def _rule(self, tree: Any) -> CorrelateRule | None:
        name, *rest = tree.children
        body = rest[-1].children[0]
        if len(rest) == 2 and rest[0] == "EDGE":
            self._mistake(rest[0], "found AT EDGE, which is not supported yet; expected AT CLOUD or nothing")
        if isinstance(body, Token):
            word = body.split(None, 1)[0].split("(")[0]
            self._mistake(body, f"found {word}, which is not supported yet; expected CORRELATE")
            return None
        return self._correlate(str(name), body)

    def _correlate(self, name: str, body: Any) -> CorrelateRule | None:
        a, a_alias, b, b_alias, predicate, confidence, *conditions = body.children
        if a_alias == b_alias:
            self._mistake(b_alias, f"found {b_alias} for both streams, expected two names")
        streams = [self._known_stream(x) for x in (a, b)]
        aliases = {str(a_alias), str(b_alias)}
        d_us = self._within(predicate, aliases)
        ct = self._confidence(confidence)
        key_equal = [self._key_equality(x, aliases) for x in conditions]
        if d_us is None or ct is None or streams[0] is None or streams[1] is None:
            return None
        condition = Condition("within", d=d_us, confidence=ct)
        return CorrelateRule(name, streams[0], streams[1], condition, any(key_equal), str(a_alias), str(b_alias))

    def _known_stream(self, token: Token) -> Stream | None:
        if token not in self._streams:
            near = difflib.get_close_matches(token, self._streams, n=1)
            hint = f"; did you mean {near[0]}?" if near else f", which are {', '.join(self._streams) or 'none'}"
            self._mistake(token, f"found {token}, expected one of the declared streams{hint}")
            return None
        return self._streams[str(token)]

    def _within(self, predicate: Any, aliases: set[str]) -> int | None:
        moments = [x.children[0] for x in predicate.children if x.data == "moment"]
        for moment in moments:
            if len(aliases) == 2 and moment not in aliases:
                self._mistake(moment, f"found @{moment}, expected {_either(aliases, '@')}")
        if predicate.data != "within":
            form = _LATER_PREDICATES[predicate.data]
            self._mistake(predicate, f"found the form {form}, which is not supported yet; expected `|@a - @b| <= d`")
            return None
        if len(aliases) == 2 and moments[0] == moments[1] and moments[1] in aliases:
            self._mistake(
                moments[1], f"found @{moments[1]} twice, expected {_either(aliases - {str(moments[0])}, '@')}"
            )
        return self._duration(predicate.children[2])

    def _confidence(self, tree: Any) -> Fraction | None:
        number, percent = tree.children[0], len(tree.children) == 2
        value = Fraction(str(number)) / (100 if percent else 1)
        decimals = len(str(number).partition(".")[2])
        if decimals > MAX_DECIMALS:
            self._mistake(number, f"found {decimals} decimals, expected at most {MAX_DECIMALS}")
        elif value == 0:
            self._mistake(number, "found OVER 0, expected more than 0: at 0 every reading pairs with every other one")
        elif value > 1:
            hint = f"; did you mean {number} %?" if not percent and value <= 100 else ""
            self._mistake(number, f"found OVER {number}{' %' if percent else ''}, expected at most 1 or 100 %{hint}")
        else:
            return value
        return None

    def _key_equality(self, condition: Any, aliases: set[str]) -> bool:
        texts = [str(x) for x in condition.children]
        if len(texts) == 5 and texts[2] == "=" and texts[1] == texts[4] == "key":
            for alias in (condition.children[0], condition.children[3]):
                if alias not in aliases:
                    self._mistake(alias, f"found {alias}, expected {_either(aliases)}")
            if texts[0] != texts[3]:
                return True
        self._mistake(condition, "found a condition that is not supported yet; expected `a.key = b.key` alone")
        return False

    def _duration(self, tree: Any) -> int | None:
        *sign, number, unit = tree.children
        if unit not in UNITS_US:
            near = difflib.get_close_matches(unit.lower(), [*UNITS_US, "sec", "hour"], n=1)
            names = {"sec": "s", "hour": "h"}
            hint = f"; did you mean {names.get(near[0], near[0])}?" if near else ""
            self._mistake(unit, f"found the unit {unit}, expected us, ms, s, min or h{hint}")
            return None
        value = Fraction(str(number)) * UNITS_US[str(unit)]
        if sign:
            self._mistake(sign[0], f"found -{number} {unit}, expected 0 or more")
        elif value.denominator != 1:
            self._mistake(number, f"found {number} {unit}, expected whole microseconds")
        elif value > MAX_DURATION_US:
            self._mistake(number, f"found {number} {unit}, expected at most ten years")
        else:
            return int(value)
        return None

    def _mistake(self, where: Any, text: str) -> None:
        at: Any = where if isinstance(where, Token) else where.meta
        self._mistakes.append(Mistake(at.line, at.column, text))


def _either(names: set[str], sign: str = "") -> str:
    return " or ".join(sign + name for name in sorted(names))
