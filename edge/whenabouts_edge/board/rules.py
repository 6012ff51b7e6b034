"""The rules of a board, as streaming joins: stored readings with their numbers and stamps in, derived readings out.

The same rules as on a PC, with limits for a board's memory: RULES_LIMIT_MAX readings kept by all rules together,
MAX_RULES rules, and MAX_DERIVED derived readings of one reading and rule; any excess is counted. A reading that was refused
derives nothing here. Loaded only when configured.
"""

from whenabouts_edge.readers.pending import PendingReading
from whenabouts_edge.rules.evaluate import KIND, UNIT, EdgeRules, Source
from whenabouts_protocol.errors import WireError
from whenabouts_protocol.messages.compiled_rule import decode_rules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from whenabouts_protocol.messages.compiled_rule import CompiledRule
    from whenabouts_protocol.reading import Reading

MAX_RULES = 4
MAX_DERIVED = 8


class BoardRules:
    """The rules of one board: first those of the configuration, then those that the cloud sends. refused: messages.

    Raises:
        WireError: the configured message holds no rules of this gateway.
    """

    def __init__(self, site: str, gateway: str, limit: int, first: bytes = b"") -> None:
        self._site, self._gateway, self._limit = site, gateway, limit
        self._first = self._decode(first) if first else []
        self.running = self._run(self._first, None)
        self.refused = 0

    @property
    def streams(self) -> "list[str]":
        """Names of the derived streams."""
        return [rule.derived for rule in self.running.rules]

    def received(self, payload: bytes) -> bool:
        """Run the rules of a message from now on, the configured ones if it is empty. Returns True if the rules changed."""
        try:
            rules = self._decode(payload) if payload else self._first
        except WireError:
            self.refused += 1
            return False
        if rules == self.running.rules:
            return False
        self.running = self._run(rules, self.running)
        return True

    def wants(self, pending: PendingReading) -> bool:
        """Return True if some rule takes this reading."""
        return pending.kind != "gap" and self.running.wants(pending.stream)

    def stored(self, pending: PendingReading, r: "Reading") -> "list[PendingReading]":
        """The readings derived from a reading that some rule wants and that is stored now."""
        source = Source(r.t_min, r.t_max, r.key, r.clock_state, r.vclock, pending.view)
        source.boot, source.seq = r.boot, r.seq
        derived = []
        for pair in self.running.push(r.stream, source):
            attrs: dict[str, Any] = dict(pair.attrs())
            made = PendingReading(
                pair.stream, KIND, pending.earliest_us, pending.latest_us, pair.key, pair.ppm, UNIT, attrs
            )
            made.stamp = pair.t_min, pair.t_max, pair.clock_state
            made.vclock = pair.vclock
            derived.append(made)
        return derived

    def _decode(self, payload: bytes) -> "list[CompiledRule]":
        site, gateway, rules = decode_rules(payload)
        if (site, gateway) != (self._site, self._gateway):
            raise WireError(f"found rules of {site}/{gateway}, expected those of {self._site}/{self._gateway}")
        if len(rules) > MAX_RULES:
            raise WireError(f"found {len(rules)} rules, expected at most {MAX_RULES} on a board")
        return rules

    def _run(self, rules: "list[CompiledRule]", before: "EdgeRules | None") -> EdgeRules:
        return EdgeRules(rules, before, self._limit // max(1, len(rules)), MAX_DERIVED)
