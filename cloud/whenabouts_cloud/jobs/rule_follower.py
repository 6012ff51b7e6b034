"""Follows a rule file about events that may change while a job runs its rules.

The file is checked between micro-batches. A valid change takes effect when no micro-batch is unfinished, because Spark would
repeat an unfinished one with the new rules. A file with mistakes is reported, and the running rules stay. The running rules
are stored in the output folder: a restart continues with them and then applies the file as a change.
"""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from whenabouts_cloud.file_version import file_version
from whenabouts_cloud.rules import CepRule, RuleError, load_rules
from whenabouts_cloud.rules.current import RunningRules
from whenabouts_protocol.logs import Log

if TYPE_CHECKING:
    from whenabouts_cloud.jobs.output.output_place import Place

log = Log(__name__)

LOOK_S, STEP_S = 0.5, 0.01  # between two micro-batches Spark lists files, some hundredths of a second
TOGETHER = "rules with COUNT and without need different outputs: choose with --rule-name"


def rules_of(file: Path) -> list[CepRule]:
    """Return the rules about events of a file; all can run together.

    Raises:
        click.UsageError: the file has mistakes, no such rules, or rules that cannot run together.
    """
    try:
        rules = list(load_rules(file).cep_rules)
    except RuleError as error:
        raise click.UsageError(str(error)) from None
    if len({rule.count is None for rule in rules}) > 1:
        raise click.UsageError(f"{file}: found {', '.join(rule.name for rule in rules)}, expected one kind: {TOGETHER}")
    return rules


class RuleFollower:
    """The running rules, and the rules that the file asks for since."""

    def __init__(self, file: Path, out: "Place", rules: Sequence[CepRule], shards: int) -> None:
        self._file, self._out, self._shards = file, out, shards
        self._first = list(rules)
        self._wanted: list[CepRule] | None = None
        self._seen = file_version(self._file)
        self.running = RunningRules.of(rules)

    def claim(self) -> None:
        """Bind the output folder to a job that follows its rule file, and continue with the rules that it ran.

        Raises:
            WrongOutputError: the folder belongs to another job.
        """
        from whenabouts_cloud.jobs.output.sink import WrongOutputError, claimed

        bound = claimed(self._out, self._mine(), {"rules": self.running.as_json()})
        try:
            self.running = RunningRules.of_json(bound["rules"])
        except (KeyError, ValueError) as error:
            raise WrongOutputError(
                f"output {self._out}: found no rules of the job ({error}), expected those it ran; take another --out"
            ) from None
        self._want(self._first)

    def changed(self) -> bool:
        """Return True if other rules are to run now; checks the file and logs the mistakes of each version once."""
        stamp = file_version(self._file)
        if stamp is not None and stamp != self._seen:
            self._seen = stamp
            try:
                rules = rules_of(self._file)
                if any(rule.count and rule.count.every_us is None for rule in rules):
                    raise click.UsageError(
                        f"{self._file}: found COUNT without EVERY, expected EVERY as in COUNT EVERY 1 h"
                    )
                self._want(rules)
            except click.UsageError as error:
                for mistake in error.message.splitlines():
                    log.error("rules.invalid", mistake, file=self._file)
                log.warning("rules.kept", "The running rules stay", file=self._file)
        return self._wanted is not None and self._between()

    def adopt(self) -> RunningRules:
        """Return the rules to run: those of the file, unless a micro-batch must be repeated with the running rules."""
        from whenabouts_cloud.jobs.output.checkpoint import unfinished
        from whenabouts_cloud.jobs.output.sink import MARKER_VERSION, rewrite

        if self._wanted is not None and not unfinished(self._out):  # a micro-batch may have begun since
            before, self.running = self.running, self.running.changed(self._wanted)
            rewrite(self._out, {"version": MARKER_VERSION, **self._mine(), "rules": self.running.as_json()})
            self._wanted = None
            log.info("rules.changed", f"Rules of {self._file}: {self.running.difference(before)}", file=self._file)
        return self.running

    def _between(self) -> bool:
        """Return True if no micro-batch is unfinished now or within LOOK_S; under load they follow without a pause."""
        from whenabouts_cloud.jobs.output.checkpoint import unfinished

        until = time.monotonic() + LOOK_S
        while unfinished(self._out):
            if time.monotonic() > until:
                return False
            time.sleep(STEP_S)
        return True

    def _mine(self) -> dict[str, object]:
        kind = "counts" if any(rule.count for rule in self._first) else "matches"
        return {"mode": f"following, {kind}", "shards": self._shards}

    def _want(self, rules: Sequence[CepRule]) -> None:
        if rules and (rules[0].count is None) != (self._first[0].count is None):
            raise click.UsageError(
                f"{self._file}: found rules of another kind than those that run, expected the same: {TOGETHER}"
            )
        same = {rule.text() for rule in rules} == {rule.text() for rule in self.running.rules.values()}
        self._wanted = None if same else list(rules)
