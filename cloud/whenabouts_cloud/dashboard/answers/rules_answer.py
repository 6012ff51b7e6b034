"""The answer about rules: the file with its explanations, and the figures of each rule."""

from collections.abc import Mapping
from typing import Any


def rules(book: Mapping[str, Any], figures: Mapping[str, Any]) -> dict[str, Any]:
    """The answer to /api/rules: the value of a rule book, with the figures of each rule, null where nothing was published.

    Rules that have published results but are not in the file come last, with figures only.
    """
    named = [{**rule, "figures": figures.get(rule["name"])} for rule in book["rules"]]
    known = {rule["name"] for rule in book["rules"]}
    others = [
        {"name": name, "kind": None, "text": None, "explanation": [], "svg": None, "figures": value}
        for name, value in sorted(figures.items())
        if name not in known
    ]
    return {**book, "rules": [*named, *others]}
