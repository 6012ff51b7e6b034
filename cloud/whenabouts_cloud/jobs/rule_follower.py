"""The rules about events of a file that may change while a job runs them.

The file is looked at between micro-batches. One that checks clean takes effect when no micro-batch is unfinished, for Spark
would repeat that with the new rules; one with mistakes is reported, and the rules from before stay. Which rules run is kept
in the output folder, so that a start goes on with them and then finds the file changed like any other time.
"""

import time
from collections.abc import Sequence
from pathlib import Path

import click

from whenabouts_cloud.rules import CepRule, RuleError, load_rules
from whenabouts_cloud.rules.current import RunningRules
from whenabouts_protocol.logs import Log

log = Log(__name__)

LOOK_S, STEP_S = 0.5, 0.01  # between two micro-batches Spark lists files, some hundredths of a second
TOGETHER = "rules with COUNT and without are told in different files: choose with --rule-name"


def rules_of(file: Path) -> list[CepRule]:
    """The rules about events of a file, which can run together.

    Raises:
        click.UsageError: the file has mistakes, none of these, or rules that cannot.
    """
    try:
        rules = list(load_rules(file).cep_rules)
    except RuleError as error:
        raise click.UsageError(str(error)) from None
    if len({rule.count is None for rule in rules}) > 1:
        raise click.UsageError(f"{file}: found {', '.join(rule.name for rule in rules)}, expected one kind: {TOGETHER}")
    return rules


class RuleFollower:
    """The rules that run, and what the file says since."""

    def __init__(self, file: Path, out: Path, rules: Sequence[CepRule], shards: int) -> None:
        self._file, self._out, self._shards = file, out, shards
        self._first = list(rules)
        self._wanted: list[CepRule] | None = None
        self._seen = self._stamp()
        self.running = RunningRules.of(rules)

    def claim(self) -> None:
        """Bind the output folder to a job that follows its rule file, and go on with the rules that it ran.

        Raises:
            WrongOutputError: the folder belongs to another job.
        """
        from whenabouts_cloud.jobs.output.sink import WrongOutputError, claimed

        found = claimed(self._out, self._mine(), {"rules": self.running.as_json()})
        try:
            self.running = RunningRules.of_json(found["rules"])
        except (KeyError, ValueError) as error:
            raise WrongOutputError(
                f"output {self._out}: found no rules of the job there ({error}), expected those it ran; take another --out"
            ) from None
        self._want(self._first)

    def changed(self) -> bool:
        """Whether other rules are to run; looks at the file and says what is wrong with it, once."""
        stamp = self._stamp()
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
                log.warning("rules.kept", "The rules from before stay", file=self._file)
        return self._wanted is not None and self._between()

    def adopt(self) -> RunningRules:
        """The rules to run: those of the file, if a micro-batch need not be repeated with those from before."""
        from whenabouts_cloud.jobs.output.sink import MARKER_VERSION, rewrite, unfinished

        if self._wanted is not None and not unfinished(self._out):  # another one may have begun since
            before, self.running = self.running, self.running.changed(self._wanted)
            rewrite(self._out, {"version": MARKER_VERSION, **self._mine(), "rules": self.running.as_json()})
            self._wanted = None
            log.info("rules.changed", f"Rules of {self._file}: {self.running.difference(before)}", file=self._file)
        return self.running

    def _between(self) -> bool:
        """Whether no micro-batch is unfinished, now or soon: with much to do one follows the other."""
        from whenabouts_cloud.jobs.output.sink import unfinished

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

    def _stamp(self) -> tuple[int, int, int] | None:
        """None while there is no such file, as between two steps of an editor."""
        try:
            found = self._file.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino
