"""Which rules a job runs while its rule file changes: each has a number that no other ever had.

A rule is its text with its streams. One whose text stays keeps its number, and so its state; one that is changed is one
removed and one added. An added rule sees the readings from then on. The state of a removed one is forgotten; its number is
kept in a list for that, of which the newest GONE are known.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from whenabouts_cloud.rules.model import CepRule
from whenabouts_cloud.rules.parse import parse_rules

GONE = 256


@dataclass(frozen=True)
class RunningRules:
    """Rules by number, the number of the next one, and those that are gone."""

    rules: dict[int, CepRule]
    following: int
    gone: tuple[int, ...] = ()

    @staticmethod
    def of(rules: Sequence[CepRule]) -> "RunningRules":
        """Rules to begin with."""
        return RunningRules(dict(enumerate(rules)), len(rules))

    def changed(self, rules: Sequence[CepRule]) -> "RunningRules":
        """These rules instead."""
        left = {rule.text(): number for number, rule in self.rules.items()}
        following, found = self.following, {}
        for rule in rules:
            number = left.pop(rule.text(), following)
            following += number == following
            found[number] = rule
        return RunningRules(found, following, (*self.gone, *left.values())[-GONE:])

    def difference(self, before: "RunningRules") -> str:
        """In words: what runs since then, and what does no longer."""
        names = {rule.name: n for n, rule in before.rules.items()}
        new = [rule.name for n, rule in self.rules.items() if n not in before.rules]
        parts = {
            "added": [name for name in new if name not in names],
            "changed": [name for name in new if name in names],
            "removed": sorted(names.keys() - {rule.name for rule in self.rules.values()}),
        }
        said = "; ".join(f"{what} {', '.join(some)}" for what, some in parts.items() if some)
        return said or "no rule about events changed"

    def as_json(self) -> dict[str, Any]:
        """As JSON values."""
        texts = {str(number): rule.text() for number, rule in self.rules.items()}
        return {"texts": texts, "following": self.following, "gone": list(self.gone)}

    @staticmethod
    def of_json(found: dict[str, Any]) -> "RunningRules":
        """From what `as_json` gave.

        Raises:
            ValueError: it is something else.
        """
        try:
            rules = {int(number): parse_rules(text).cep_rules[0] for number, text in found["texts"].items()}
            return RunningRules(rules, int(found["following"]), tuple(map(int, found["gone"])))
        except (KeyError, TypeError, IndexError, AttributeError) as error:
            raise ValueError(f"found {error!r}, expected rules by number") from None
