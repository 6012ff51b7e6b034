"""The agent's side of the rules: which rules run, and how pending readings pass through them.

A derived reading names its sources by their numbers, which the spool gives. It stands behind both in the spool's order,
so they have their numbers when it gets its own. A source that the full spool refused has no number and is not named.
"""

from collections.abc import Sequence
from pathlib import Path

from whenabouts_edge.readers.pending import PendingReading
from whenabouts_edge.rules.evaluate import KIND, UNIT, Derived, EdgeRules, Source
from whenabouts_protocol import Reading, WireError
from whenabouts_protocol.logs import Log
from whenabouts_protocol.messages.compiled_rule import CompiledRule, decode_rules
from whenabouts_protocol.reading import NO_EVENT_KINDS

log = Log(__name__)


class RulesFileError(Exception):
    """The file of rules in the configuration cannot be used."""


class DerivedReading(PendingReading):
    """A pair, in the window of the reading that completed it; its attributes name both sources by their numbers."""

    def __init__(self, site: str, gateway: str, pair: Derived, last: PendingReading) -> None:
        super().__init__(pair.stream, KIND, last.earliest_us, last.latest_us, pair.key, pair.ppm, UNIT)
        self.site, self.gateway, self._pair = site, gateway, pair
        self.stamp = pair.t_min, pair.t_max, pair.clock_state
        self.vclock = pair.vclock

    def numbered(self, boot: int, seq: int) -> Reading:
        self.attrs = self._pair.attrs()
        return super().numbered(boot, seq)


class RuleHost:
    """The rules of one gateway: first those of a file, then those that the cloud sends.

    Raises:
        RulesFileError: the file cannot be read or holds no rules of this gateway.
    """

    def __init__(self, site: str, gateway: str, file: str | None) -> None:
        self._site, self._gateway = site, gateway
        self.refused = 0
        self._from_file = [] if file is None else self._load(Path(file))
        self.running = EdgeRules(self._from_file)

    @property
    def streams(self) -> list[str]:
        """Names of the derived streams."""
        return [rule.derived for rule in self.running.rules]

    def received(self, payload: bytes) -> bool:
        """Run the rules of a message from now on, those of the file if it is empty. Returns True if the rules changed.

        A message that holds no rules for this gateway is counted, and the rules go on as they are.
        """
        try:
            rules = self._decode(payload) if payload else self._from_file
        except WireError as error:
            self.refused += 1
            log.error("rules.invalid", str(error))
            return False
        if rules == self.running.rules:
            return False
        self.running = EdgeRules(rules, before=self.running)
        log.info("rules.changed", streams=",".join(self.streams))
        return True

    def through(self, readings: Sequence[PendingReading]) -> list[PendingReading]:
        """The readings that rules derive from these; they must be stored behind these."""
        derived: list[PendingReading] = []
        for one in readings:
            if one.stamp is None or one.kind in NO_EVENT_KINDS or not self.running.wants(one.stream):
                continue
            t_min, t_max, clock_state = one.stamp
            one.source = Source(t_min, t_max, one.key, clock_state, one.vclock, one.view)
            derived += [
                DerivedReading(self._site, self._gateway, pair, one)
                for pair in self.running.push(one.stream, one.source)
            ]
        return derived

    def _load(self, path: Path) -> list[CompiledRule]:
        try:
            return self._decode(path.read_bytes())
        except (OSError, WireError) as error:
            raise RulesFileError(
                f"rules_file {path}: cannot use it ({error}); write it with `whenabouts-cloud explain RULES --compiled DIR`"
            ) from None

    def _decode(self, payload: bytes) -> list[CompiledRule]:
        site, gateway, rules = decode_rules(payload)
        if (site, gateway) != (self._site, self._gateway):
            raise WireError(f"found rules of {site}/{gateway}, expected those of {self._site}/{self._gateway}")
        return rules
