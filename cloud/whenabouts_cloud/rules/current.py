"""The rules that a job runs while its rule file changes; each has a number that is never reused.

A rule is identified by its text with its streams. A rule whose text stays keeps its number, and so its state; a changed rule
counts as one removed and one added. An added rule sees the readings from then on. The state of a removed rule is deleted;
for that its number is listed in `gone`, which keeps the newest GONE.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from whenabouts_cloud.rules.model import CepRule
from whenabouts_cloud.rules.parse import parse_rules

GONE = 256


@dataclass(frozen=True)
class RunningRules:
    """Rules by number, the number of the next new rule, and the numbers of removed rules."""

    rules: dict[int, CepRule]
    following: int
    gone: tuple[int, ...] = ()

    @staticmethod
    def of(rules: Sequence[CepRule]) -> "RunningRules":
        """Number the first rules of a job."""
        return RunningRules(dict(enumerate(rules)), len(rules))

    def changed(self, rules: Sequence[CepRule]) -> "RunningRules":
        """Replace the rules by these."""
        left = {rule.text(): number for number, rule in self.rules.items()}
        following, kept = self.following, {}
        for rule in rules:
            number = left.pop(rule.text(), following)
            following += number == following
            kept[number] = rule
        return RunningRules(kept, following, (*self.gone, *left.values())[-GONE:])

    def difference(self, before: "RunningRules") -> str:
        """Describe the rules added, changed and removed since `before`."""
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
        """Return it as JSON values."""
        texts = {str(number): rule.text() for number, rule in self.rules.items()}
        return {"texts": texts, "following": self.following, "gone": list(self.gone)}

    @staticmethod
    def of_json(values: dict[str, Any]) -> "RunningRules":
        """Make it from the values of `as_json`.

        Raises:
            ValueError: the values are not of `as_json`.
        """
        try:
            rules = {int(number): parse_rules(text).cep_rules[0] for number, text in values["texts"].items()}
            return RunningRules(rules, int(values["following"]), tuple(map(int, values["gone"])))
        except (KeyError, TypeError, IndexError, AttributeError) as error:
            raise ValueError(f"found {error!r}, expected rules by number") from None
