"""Compiled rules for a gateway: integers and stream names, so that a board never parses text. Layout in `wire.cddl`.

One message holds all rules of one gateway and replaces the previous rules. It is retained on the gateway's topic
`rules`. An empty message removes the rules and clears the topic, but an offline gateway does not receive it: to reach
an offline gateway, send a retained message with an empty list of rules. Decoding applies the limits of all messages and
fails only with WireError, whatever the bytes.
"""

from whenabouts_protocol.cbor import dumps
from whenabouts_protocol.errors import WireError
from whenabouts_protocol.layout import K_GATEWAY, K_RULES, K_SCHEMA, K_SITE, SCHEMA, read_head
from whenabouts_protocol.reading import MAX_TEXT_BYTES, check_origin, is_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_RULES = 32  # of one gateway
MAX_RULE_STREAMS = 32  # of one side of a rule
MAX_SPAN_US = 1 << 50  # for limits and lengths, 35 years: doubled middles and their sums stay far within 64 bits
MAX_DENOMINATOR = 10**12  # of a confidence
MAX_READINGS = 1_000_000  # kept by a gateway for one rule
DERIVED_PREFIX = (
    "$rule/"  # of derived streams; as with topics, a leading wildcard does not match names that begin with $
)

_RULE_FIELDS = 8
_SIDE_FIELDS = 3


class RuleSide:
    """One side of a rule: its input streams, and the shortest and longest stamp expected in them."""

    __slots__ = ("longest_us", "shortest_us", "streams")

    def __init__(self, streams: "list[str]", shortest_us: int, longest_us: int) -> None:
        self.streams, self.shortest_us, self.longest_us = list(streams), shortest_us, longest_us

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RuleSide) and _side_row(self) == _side_row(other)

    def __repr__(self) -> str:
        return f"RuleSide({self.streams!r}, {self.shortest_us}, {self.longest_us})"


class CompiledRule:
    """Pairs of a reading of side a and one of side b with P(lo_us <= b - a <= hi_us) >= p/q, of equal keys if
    key_equal.

    At most `limit` readings are kept for matching. Each result is a reading of the stream `derived`.
    """

    __slots__ = ("a", "b", "derived", "hi_us", "key_equal", "limit", "lo_us", "p", "q")

    def __init__(
        self,
        derived: str,
        lo_us: int,
        hi_us: int,
        p: int,
        q: int,
        key_equal: bool,
        limit: int,
        a: RuleSide,
        b: RuleSide,
    ) -> None:
        self.derived, self.lo_us, self.hi_us, self.p, self.q = derived, lo_us, hi_us, p, q
        self.key_equal, self.limit, self.a, self.b = key_equal, limit, a, b

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CompiledRule) and _rule_row(self) == _rule_row(other)

    def __repr__(self) -> str:
        return (
            f"CompiledRule({self.derived!r}, {self.lo_us}, {self.hi_us}, {self.p}, {self.q}, "
            f"{self.key_equal}, {self.limit}, {self.a!r}, {self.b!r})"
        )


def encode_rules(site: str, gateway: str, rules: "list[CompiledRule]") -> bytes:
    """Encode the message that gives a gateway these rules.

    Raises:
        WireError: a field is out of its range, or two rules have the same derived stream.
    """
    rows = [_rule_row(rule) for rule in rules]
    data = dumps({K_SCHEMA: SCHEMA, K_SITE: site, K_GATEWAY: gateway, K_RULES: rows})
    decode_rules(data)  # never send what a decoder would refuse
    return data


def decode_rules(data: bytes) -> "tuple[str, str, list[CompiledRule]]":
    """Decode the message in data as (site, gateway, rules). Raises WireError for anything else."""
    head = read_head(data)
    rows = head.get(K_RULES)
    try:
        check_origin(head.get(K_SITE), head.get(K_GATEWAY), 0)
    except ValueError as error:
        raise WireError(str(error)) from None
    if type(rows) is not list or len(rows) > MAX_RULES:
        raise WireError(f"rules: found no array of at most {MAX_RULES} entries")
    rules = [_rule(row) for row in rows]
    for n, rule in enumerate(rules):
        for other in rules[:n]:
            if rule.derived == other.derived:
                raise WireError(f"rules: found the derived stream {rule.derived!r} twice")
    return head[K_SITE], head[K_GATEWAY], rules


def _rule_row(rule: CompiledRule) -> "list[Any]":
    return [
        rule.derived, rule.lo_us, rule.hi_us, [rule.p, rule.q], rule.key_equal, rule.limit,
        _side_row(rule.a), _side_row(rule.b),
    ]  # fmt: skip


def _side_row(side: RuleSide) -> "list[Any]":
    return [side.streams, side.shortest_us, side.longest_us]


def _rule(row: "Any") -> CompiledRule:
    if type(row) is not list or len(row) < _RULE_FIELDS:
        raise WireError(f"rule: found no array of at least {_RULE_FIELDS} entries")
    derived, lo_us, hi_us, ct, key_equal, limit, a, b = row[:_RULE_FIELDS]
    if not is_text(derived) or not derived.startswith(DERIVED_PREFIX):
        raise WireError(f"rule: found no derived stream of at most {MAX_TEXT_BYTES} bytes that begins {DERIVED_PREFIX}")
    _int(lo_us, -MAX_SPAN_US, MAX_SPAN_US, "lower limit")
    _int(hi_us, lo_us, MAX_SPAN_US, "upper limit")
    if type(ct) is not list or len(ct) != 2:
        raise WireError("rule: found a confidence that is not [p, q]")
    q = _int(ct[1], 1, MAX_DENOMINATOR, "denominator of the confidence")
    p = _int(ct[0], 1, q, "numerator of the confidence")
    if type(key_equal) is not bool:
        raise WireError("rule: found a key flag that is neither true nor false")
    _int(limit, 1, MAX_READINGS, "limit of readings")
    return CompiledRule(derived, lo_us, hi_us, p, q, key_equal, limit, _side(a), _side(b))


def _side(row: "Any") -> RuleSide:
    if type(row) is not list or len(row) < _SIDE_FIELDS:
        raise WireError("rule side: found no array of streams, shortest and longest stamp")
    streams, shortest_us, longest_us = row[:_SIDE_FIELDS]
    if type(streams) is not list or not 0 < len(streams) <= MAX_RULE_STREAMS or not all(is_text(s) for s in streams):
        raise WireError(f"rule side: found no array of 1 to {MAX_RULE_STREAMS} stream names")
    if len(set(streams)) != len(streams):
        raise WireError("rule side: found a stream twice")
    for stream in streams:
        if stream.startswith(DERIVED_PREFIX):
            raise WireError("rule side: found a derived stream, expected streams of readers")
    _int(longest_us, 0, MAX_SPAN_US, "longest stamp")
    _int(shortest_us, 0, longest_us, "shortest stamp")
    return RuleSide(streams, shortest_us, longest_us)


def _int(value: "Any", low: int, high: int, what: str) -> int:
    if type(value) is not int or not low <= value <= high:
        shown = value if type(value) is int else type(value).__name__
        raise WireError(f"rule: found {shown} as {what}, expected {low}..{high}")
    return value
