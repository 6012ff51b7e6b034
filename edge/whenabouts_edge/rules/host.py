"""The agent's side of the rules: which run, and how drafts of readings go through them before they have numbers.

A derived reading names its sources by their numbers, which the spool gives. Since it stands behind both in the spool's order
they have theirs when it gets its own; a source that the full spool refused stays without one and is not named.
"""

import logging
from collections.abc import Sequence
from pathlib import Path

from whenabouts_edge.rules.evaluate import KIND, UNIT, Derived, EdgeRules, Source
from whenabouts_edge.store.spool import Draft
from whenabouts_protocol import Reading, WireError
from whenabouts_protocol.compiled_rule import CompiledRule, decode_rules

log = logging.getLogger("whenabouts.edge")


class RulesFileError(Exception):
    """The file of rules in the configuration cannot be used."""


class RuleHost:
    """The rules of one gateway: from a file at the start, then as the cloud sends them.

    Raises:
        RulesFileError: the file cannot be read or holds no rules of this gateway.
    """

    def __init__(self, site: str, gateway: str, file: str | None) -> None:
        self._site, self._gateway = site, gateway
        self.refused = 0
        self.view = 0  # of the group, counted; set by the agent
        self._from_file = [] if file is None else self._load(Path(file))
        self.running = EdgeRules(self._from_file)

    @property
    def streams(self) -> list[str]:
        """Names of the derived streams."""
        return [rule.derived for rule in self.running.rules]

    def received(self, payload: bytes) -> bool:
        """Run what a message says from now on; whether that changed anything. Empty: only those of the file run.

        What is no message of rules for this gateway is counted, and the rules go on as they are.
        """
        try:
            rules = self._decode(payload) if payload else self._from_file
        except WireError as error:
            self.refused += 1
            log.warning("rules refused: %s", error)
            return False
        if rules == self.running.rules:
            return False
        self.running = EdgeRules(rules, before=self.running)
        log.info("rules: %s", ", ".join(self.streams) or "none")
        return True

    def through(self, drafts: Sequence[Draft]) -> tuple[list[Draft], list[Draft]]:
        """The drafts, ready to tell rules their numbers, and the derived ones, which must be stored behind them."""
        if not self.running.rules:
            return list(drafts), []
        passed: list[Draft] = []
        derived: list[Draft] = []
        for draft in drafts:
            r = draft(0, 0)
            if not self.running.wants(r.stream):
                passed.append(draft)
                continue
            source = Source(r.t_min, r.t_max, r.key, r.clock_state, r.vclock, self.view)
            passed.append(_telling(draft, source))
            derived += [self._draft(pair) for pair in self.running.push(r.stream, source)]
        return passed, derived

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

    def _draft(self, pair: Derived) -> Draft:
        site, gateway = self._site, self._gateway

        def numbered(boot: int, seq: int) -> Reading:
            return Reading(
                site=site,
                gateway=gateway,
                boot=boot,
                seq=seq,
                stream=pair.stream,
                kind=KIND,
                key=pair.key,
                value=pair.ppm,
                unit=UNIT,
                attrs=dict(pair.attrs()),
                t_min=pair.t_min,
                t_max=pair.t_max,
                clock_state=pair.clock_state,
                vclock=pair.vclock,
            )

        return numbered


def _telling(draft: Draft, source: Source) -> Draft:
    """The draft, which writes its number down; boot 0, which no spool has, is a look at a reading that is refused."""

    def numbered(boot: int, seq: int) -> Reading:
        source.boot, source.seq = (boot, seq) if boot else (None, None)
        return draft(boot, seq)

    return numbered
