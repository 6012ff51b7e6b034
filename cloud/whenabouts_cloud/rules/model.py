"""Model of a rule file, checked and exact: streams and rules as values for the engines.

Durations are integer microseconds; a confidence threshold is the written decimal as an exact fraction.
"""

import re
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal, NamedTuple

from whenabouts_cloud.language.pattern import Pattern
from whenabouts_cloud.pattern.condition import Condition
from whenabouts_cloud.pattern.plan import Plan
from whenabouts_cloud.rules.state_predicate import Alternative, Predicate, alternatives

ResultKind = Literal["inner", "left", "anti"]
Place = Literal["auto", "edge", "cloud"]
Function = Literal["sum", "min", "max", "avg"]


class Into(NamedTuple):
    """A target that a rule's results are delivered to (`delivery`): its kind, and its URI, which may hold a password.

    It is no part of what a rule is: rules that differ in it alone are equal, and `text` does not have it.
    """

    kind: str
    uri: str


@dataclass(frozen=True)
class Stream:
    """A named source of readings: stream names that match `pattern`, of one site or gateway if that is given.

    `gateway` comes with `site`, as names of gateways are unique within a site only. The watermarks of others do not count.
    `delay_us` is how long after its t_max a reading may land and is still waited for. `length_us` declares the shortest and
    longest stamp; without it any length is expected.
    """

    name: str
    pattern: str
    delay_us: int
    length_us: tuple[int, int] | None = None
    site: str | None = None
    offset_us: int = 0
    gateway: str | None = None

    def matches(self, site: str, gateway: str, stream: str) -> bool:
        """Return True if a reading of this site, gateway and stream name belongs to the stream."""
        owned = self.site in (None, site) and self.gateway in (None, gateway)
        return owned and re.fullmatch(name_regex(self.pattern), stream) is not None

    @property
    def owner(self) -> str:
        """Whose readings it takes, as explanations write it: " at site S", " at gateway S/G", or nothing."""
        if self.gateway is not None:
            return f" at gateway {self.site}/{self.gateway}"
        return "" if self.site is None else f" at site {self.site}"

    def text(self) -> str:
        """The declaration in the rule language."""
        at_site = f' AT SITE "{self.site}"' if self.site is not None else ""
        at_site += f' GATEWAY "{self.gateway}"' if self.gateway is not None else ""
        length = f" LENGTH {self.length_us[0]} us .. {self.length_us[1]} us" if self.length_us else ""
        offset = f" OFFSET {self.offset_us} us" if self.offset_us else ""
        return f'STREAM {self.name} FROM "{self.pattern}"{at_site} DELAY {self.delay_us} us{length}{offset}'


class TagIs(NamedTuple):
    """Condition on the key of one reading: `word` of it ("key" or one of `epc.rule_words.WORDS`) is, or is not, this text.

    It does not hold for a key that holds no such name, nor for a reading without a key.
    """

    word: str
    text: str
    equal: bool = True

    def said(self, alias: str) -> str:
        """The condition in the rule language."""
        return f'{alias}.{self.word} {"=" if self.equal else "!="} "{self.text}"'


@dataclass(frozen=True)
class CorrelateRule:
    """Pairs of a reading of `a` and one of `b` that satisfy a timing condition; a tie with its confidence is a pair.

    With `key_equal` both must have the same key; a reading without a key is then in no pair. Readings of `a` that do not
    satisfy all of `a_tags` take no part in the rule, as if they were not of its stream; likewise those of `b`.

    `top_k` keeps for each reading of `a` only the pairs with its k best readings of `b`: the most probable first, then those
    whose middles lie nearest to each other, then by the identity of b. `kind` selects the results: `inner` the pairs; `left`
    the pairs and each reading of `a` in no pair; `anti` only the readings of `a` in no pair. `place` is where the rule must
    run; `auto` leaves it to the planner.
    """

    name: str
    a: Stream
    b: Stream
    condition: Condition
    key_equal: bool
    a_alias: str = "a"
    b_alias: str = "b"
    kind: ResultKind = "inner"
    top_k: int | None = None
    place: Place = "auto"
    into: tuple[Into, ...] = field(default=(), compare=False, repr=False)
    a_tags: tuple[TagIs, ...] = ()
    b_tags: tuple[TagIs, ...] = ()

    @property
    def tags(self) -> tuple[tuple[TagIs, ...], tuple[TagIs, ...]]:
        """The conditions on the keys of readings of a, and of b."""
        return self.a_tags, self.b_tags

    @property
    def tag_texts(self) -> list[str]:
        """The same in the rule language."""
        return [
            one.said(alias) for alias, some in zip((self.a_alias, self.b_alias), self.tags, strict=True) for one in some
        ]

    def text(self) -> str:
        """The rule with its streams in canonical text: equal texts are equal rules."""
        place = "" if self.place == "auto" else f" AT {self.place.upper()}"
        keys = f" AND {self.a_alias}.key = {self.b_alias}.key" if self.key_equal else ""
        keys += "".join(f" AND {text}" for text in self.tag_texts)
        nearest = "" if self.top_k is None else f" TOP {self.top_k}"
        kept = {"inner": "", "left": f" KEEP ALL {self.a_alias}", "anti": f" ONLY UNMATCHED {self.a_alias}"}[self.kind]
        streams = "\n".join(dict.fromkeys((self.a.text(), self.b.text())))
        pair = f"{self.a.name} AS {self.a_alias}, {self.b.name} AS {self.b_alias}"
        return (
            f"{streams}\nRULE {self.name}{place} CORRELATE {pair}\n"
            f"  WHERE {self.predicate_text()} OVER {decimal_text(self.condition.ct)}{keys}{nearest}{kept}"
        )

    def predicate_text(self) -> str:
        """The timing predicate: as `within` when its limits are symmetric, else as `between`."""
        lo, hi = self.condition.lo_us, self.condition.hi_us
        if lo == -hi:
            return f"|@{self.a_alias} - @{self.b_alias}| <= {hi} us"
        return f"@{self.b_alias} - @{self.a_alias} IN [{lo} us, {hi} us]"


@dataclass(frozen=True)
class Count:
    """Number of matches of each key and aggregates over them, for each period of `every_us`, by the last event.

    `aggregates` are (function, element, column), such as ("sum", "d", "value"), over a numeric column of this element.
    """

    aggregates: tuple[tuple[Function, str, str], ...] = ()
    every_us: int | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Name of each aggregate, as it is written."""
        return tuple(f"{function.upper()}({name}.{column})" for function, name, column in self.aggregates)

    def text(self) -> str:
        """The count in the rule language."""
        every = "" if self.every_us is None else f" EVERY {self.every_us} us"
        return ", ".join(["COUNT", *self.names]) + every


@dataclass(frozen=True)
class CepRule:
    """Events in an order; the types of the pattern are the names of `streams`, each once, in the pattern's order.

    With `count` the matches are counted, not emitted. A reading is an event of every stream that covers it: of streams that
    overlap it is several events, which may even be in one match.
    """

    name: str
    streams: tuple[Stream, ...]
    pattern: Pattern
    place: Place = "auto"
    count: Count | None = None
    into: tuple[Into, ...] = field(default=(), compare=False, repr=False)

    @property
    def type_names(self) -> tuple[str, ...]:
        """Names of the streams; a type code is an index."""
        return tuple(stream.name for stream in self.streams)

    @property
    def lateness_us(self) -> int:
        """K of the K-bound that the streams' DELAY implies, in the absence of watermarks.

        Once an event with t_max = M has arrived the clock shows at least M, so every event that ended before M - DELAY has
        arrived; with OFFSETs, which move stamps but not the clock, the widest pair of streams decides.
        """
        return max(s.delay_us - s.offset_us for s in self.streams) + max(s.offset_us for s in self.streams)

    @property
    def longest_us(self) -> int:
        """The longest stamp to expect: from the streams' LENGTH, the window for a stream without one.

        A longer event is in no match whose order and window are certain. A longer event of a negated stream might still
        forbid a match that has been emitted, so a stream whose stamps may exceed the window needs a LENGTH.
        """
        return max(self.pattern.window_us if s.length_us is None else s.length_us[1] for s in self.streams)

    def plan(self) -> Plan:
        """The plan, for events whose type codes are indices of `type_names`."""
        return self.pattern.plan(self.type_names, self.longest_us)

    def text(self) -> str:
        """The rule with its streams in canonical text: equal texts are equal rules."""
        place = "" if self.place == "auto" else f" AT {self.place.upper()}"
        streams = "\n".join(stream.text() for stream in self.streams)
        count = "" if self.count is None else f" {self.count.text()}"
        return f"{streams}\nRULE {self.name}{place}\n  {self.pattern.text()}{count}"


@dataclass(frozen=True)
class LatwinRule:
    """A predicate on simultaneous states of the gateways of one group.

    Each of `streams` denotes the states of one gateway of the group; `windows` are the numbers of its latest states that
    count. `group` names the groups, each treated separately: `+` in it is any text without a slash, `#` at its end any text.
    "definitely" is sound and uses runs of states, not windows; `in_window` is the verdict of Yang and others (2011, section
    3) over the windows, which may report what never happened. With `causal` only the vector clocks order states.
    """

    name: str
    streams: tuple[Stream, ...]
    modality: Literal["definitely", "possibly"]
    predicate: Predicate
    windows: tuple[int, ...]
    group: str
    in_window: bool = False
    emit: Literal["eager", "patient"] = "eager"
    causal: bool = False
    place: Place = "auto"
    into: tuple[Into, ...] = field(default=(), compare=False, repr=False)

    @property
    def by_runs(self) -> bool:
        """True if runs of states decide, not windows."""
        return self.modality == "definitely" and not self.in_window

    @property
    def alternatives(self) -> list[Alternative] | None:
        """The predicate as a disjunction of conjunctions of local predicates; None if it has no such form."""
        return alternatives(self.predicate)

    @property
    def engine(self) -> Literal["runs", "conjunction", "lattice"]:
        """Algorithm: runs of states, the detector of conjunctions in the windows, or the lattice of global states."""
        if self.by_runs:
            return "runs"
        parts = self.alternatives
        return "conjunction" if parts is not None and len(parts) == 1 else "lattice"

    def covers(self, group: str) -> bool:
        """Return True if the rule applies to this group."""
        return re.fullmatch(group_regex(self.group), group) is not None

    def text(self) -> str:
        """The rule with its streams in canonical text: equal texts are equal rules."""
        place = "" if self.place == "auto" else f" AT {self.place.upper()}"
        streams = "\n".join(stream.text() for stream in self.streams)
        modality = self.modality.upper() + (" IN WINDOW" if self.in_window else "")
        own = [f"{s.name} {w}" for s, w in zip(self.streams[1:], self.windows[1:], strict=True) if w != self.windows[0]]
        window = ", ".join([str(self.windows[0]), *own])
        order = " CAUSAL" if self.causal else ""
        return (
            f"{streams}\nRULE {self.name}{place}\n  {modality} {self.predicate.text()}\n"
            f'  WINDOW {window} IN GROUP "{self.group}" {self.emit.upper()}{order}'
        )


Rule = CorrelateRule | CepRule | LatwinRule


@dataclass(frozen=True)
class RuleFile:
    """All declarations of one file, in its order."""

    streams: tuple[Stream, ...]
    rules: tuple[Rule, ...]

    def one(self, name: str | None) -> Rule:
        """The rule of this name, or the only one.

        Raises:
            LookupError: there is no such rule, or there are several and no name.
        """
        names = ", ".join(rule.name for rule in self.rules)
        if name is None and len(self.rules) != 1:
            wanted = "one" if not self.rules else "the name of one of them"
            raise LookupError(f"found {f'the rules {names}' if self.rules else 'no RULE'}, expected {wanted}")
        for rule in self.rules:
            if name in (None, rule.name):
                return rule
        raise LookupError(f"found {name}, expected one of {names or 'no rules'}")

    @property
    def correlate_rules(self) -> tuple[CorrelateRule, ...]:
        """Rules that find pairs."""
        return tuple(rule for rule in self.rules if isinstance(rule, CorrelateRule))

    @property
    def cep_rules(self) -> tuple[CepRule, ...]:
        """Rules that find events in an order."""
        return tuple(rule for rule in self.rules if isinstance(rule, CepRule))

    @property
    def latwin_rules(self) -> tuple[LatwinRule, ...]:
        """Rules about the states of a group."""
        return tuple(rule for rule in self.rules if isinstance(rule, LatwinRule))


def name_regex(pattern: str) -> str:
    """Regular expression, for both Python and Java, that matches the whole names that an MQTT topic filter covers.

    `+` is one level, `#` the rest with its parent: "dock/#" covers "dock" and "dock/tags/left". As with topics, a leading
    wildcard does not cover names that begin with `$`, which are streams derived by rules (MQTT 3.1.1, section 4.7.2).

    >>> name_regex("dock/+")
    'dock/[^/]*'
    """
    levels = pattern.split("/")
    if levels[0] in ("+", "#"):
        return r"(?!\$)" + _regex(levels)
    return _regex(levels)


def group_regex(pattern: str) -> str:
    """Regular expression that matches the group names that a pattern covers.

    >>> group_regex("office-+")
    'office\\\\-[^/]*'
    """
    rest = pattern.endswith("#")
    fixed = "[^/]*".join(re.escape(part) for part in pattern[: len(pattern) - rest].split("+"))
    return f"{fixed}[^\\n]*" if rest else fixed


def _regex(levels: list[str]) -> str:
    rest = levels[-1] == "#"
    fixed = "/".join("[^/]*" if x == "+" else re.escape(x) for x in levels[: len(levels) - rest])
    if not rest:
        return fixed
    return f"{fixed}(/[^\\n]*)?" if fixed else "[^\\n]*"


def decimal_text(value: Fraction) -> str:
    """Decimal text of a fraction whose denominator divides a power of ten."""
    digits = 0
    while (value * 10**digits).denominator != 1:
        digits += 1
    whole, rest = divmod(int(value * 10**digits), 10**digits)
    return f"{whole}.{rest:0{digits}d}" if digits else str(whole)
