"""The compiled rules of one gateway: readings in, derived readings out. Pure integers; also runs on boards.

A derived reading reports that a pair happened. Its stamp is the interval of the later of the two events, which completes
the pair: this event lies certainly in [max of both t_min, max of both t_max]. The hull of both stamps would also be
correct, but longer by up to the whole distance; their intersection is empty for most pairs. Its value is the probability
of the pair in millionths, rounded down, so a tie with a confidence of up to six decimals reads as that confidence; floats
differ between machines.

All state is in memory: after a restart a pair is found only when both of its readings are new.
"""

from whenabouts_protocol.messages.compiled_rule import CompiledRule
from whenabouts_protocol.probability import ratio_between
from whenabouts_protocol.reading import CLOCK_STATES
from whenabouts_protocol.streaming_join import StreamingJoin

PPM = 1_000_000
UNIT = "[ppm]"  # UCUM
KIND = "measure"
MAX_DERIVED = 256  # derived readings of one reading and rule; further pairs are counted, and need a narrower rule


class Source:
    """The fields that rules keep of a reading; boot and seq are filled in when it is numbered, and are None until then.

    view: a number that grows with each view of its group; clocks of different views cannot be compared.
    """

    __slots__ = ("boot", "clock_state", "key", "seq", "t_max", "t_min", "vclock", "view")

    def __init__(
        self, t_min: int, t_max: int, key: "str | None", clock_state: str, vclock: "tuple[int, ...]", view: int = 0
    ) -> None:
        self.t_min, self.t_max, self.key, self.clock_state, self.vclock = t_min, t_max, key, clock_state, vclock
        self.view = view
        self.boot: int | None = None
        self.seq: int | None = None


class Derived:
    """A pair that a rule found: the fields of its reading but for the number, and both sources in the order of the rule."""

    __slots__ = ("a", "b", "clock_state", "key", "ppm", "stream", "t_max", "t_min", "vclock")

    def __init__(self, rule: CompiledRule, a: Source, b: Source) -> None:
        num, den = ratio_between(a.t_min, a.t_max, b.t_min, b.t_max, rule.lo_us, rule.hi_us)
        self.stream = rule.derived
        self.key = a.key if a.key == b.key else None
        self.ppm = num * PPM // den
        self.t_min, self.t_max = max(a.t_min, b.t_min), max(a.t_max, b.t_max)
        self.clock_state = a.clock_state if _rank(a) >= _rank(b) else b.clock_state
        self.vclock = merged(a.vclock, b.vclock) if a.view == b.view else (a if a.view > b.view else b).vclock
        self.a, self.b = a, b

    def attrs(self) -> "dict[str, int]":
        """The identities of both readings, which are of this gateway; one that was refused has none and is left out."""
        named: dict[str, int] = {}
        for side, source in (("a", self.a), ("b", self.b)):
            if source.boot is not None and source.seq is not None:
                named[side + "_boot"] = source.boot
                named[side + "_seq"] = source.seq
        return named


class EdgeRules:
    """All rules of a gateway. limit: most readings that each rule keeps, if the rule itself allows more. derived_max: most
    derived readings of one reading and rule. Boards have less room.

    A rule that was running before with the same definition keeps its readings.
    """

    def __init__(
        self,
        rules: "list[CompiledRule]",
        before: "EdgeRules | None" = None,
        limit: "int | None" = None,
        derived_max: int = MAX_DERIVED,
    ) -> None:
        self._derived_max = derived_max
        self.rules = list(rules)
        self.pairs_dropped = {
            rule.derived: 0 for rule in self.rules
        }  # pairs beyond `derived_max`, which made no reading
        self.running = [(rule, _started(rule, before, limit)) for rule in self.rules]
        self._sides: dict[str, list[tuple[CompiledRule, StreamingJoin, int]]] = {}
        for rule, join in self.running:
            for side, streams in ((0, rule.a.streams), (1, rule.b.streams)):
                for stream in streams:
                    self._sides.setdefault(stream, []).append((rule, join, side))

    def wants(self, stream: str) -> bool:
        """True if some rule takes readings of this stream."""
        return stream in self._sides

    def push(self, stream: str, source: Source) -> "list[Derived]":
        """Take in a reading; returns the pairs that it completes."""
        pairs = []
        for rule, join, side in self._sides.get(stream, ()):
            others = join.push(side, source, source.t_min, source.t_max, source.key)
            if len(others) > self._derived_max:
                self.pairs_dropped[rule.derived] += len(others) - self._derived_max
                others = others[-self._derived_max :]
            for other in others:
                if other is not source:  # a stream that is on both sides of a rule
                    a, b = (source, other) if side == 0 else (other, source)
                    pairs.append(Derived(rule, a, b))
        return pairs

    def advance(self, frontier_us: "int | None") -> None:
        """Forget the readings that none with t_max at or after the frontier can match. None: the frontier is not known."""
        for _, join in self.running:
            join.advance(frontier_us, frontier_us)

    def counters(self) -> "dict[str, dict[str, int]]":
        """The counters of each rule by its derived stream; all but `pairs_dropped` are those of the streaming join."""
        return {
            rule.derived: {
                "pairs": join.pairs,
                "pairs_dropped": self.pairs_dropped[rule.derived],
                "evaluations": join.evaluations,
                "kept": join.kept,
                "late": join.late,
                "overflow": join.overflow,
                "too_long": join.too_long,
                "keyless": join.keyless,
                "beyond_length": join.beyond_length,
            }
            for rule, join in self.running
        }


def merged(a: "tuple[int, ...]", b: "tuple[int, ...]") -> "tuple[int, ...]":
    """The clock after both: the component-wise maximum, or the longer clock if the lengths differ."""
    if len(a) != len(b):
        return a if len(a) > len(b) else b
    return tuple([max(a[n], b[n]) for n in range(len(a))])


def _rank(source: Source) -> int:
    return CLOCK_STATES.index(source.clock_state)


def _started(rule: CompiledRule, before: "EdgeRules | None", limit: "int | None") -> StreamingJoin:
    if before is not None:
        for old, join in before.running:
            if old == rule:
                return join
    kept = rule.limit if limit is None else min(limit, rule.limit)
    lengths_a, lengths_b = [(side.shortest_us, side.longest_us) for side in (rule.a, rule.b)]
    return StreamingJoin(rule.lo_us, rule.hi_us, rule.p, rule.q, lengths_a, lengths_b, rule.key_equal, kept)
