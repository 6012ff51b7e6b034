"""Errors of a rule file.

RuleError (ValueError)      all mistakes of a file; each is a Mistake with its place
"""

import json
from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Mistake:
    """One mistake; line and column count from 1. Characters of the text that do not print are escaped as in JSON."""

    line: int
    column: int
    text: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", printable(self.text))


class RuleError(ValueError):
    """A rule file with mistakes: one line each, `file:line:column: found ..., expected ...`."""

    def __init__(self, file: str, mistakes: list[Mistake]) -> None:
        self.file = file
        self.mistakes = tuple(sorted(mistakes))
        super().__init__("\n".join(f"{printable(file)}:{m.line}:{m.column}: {m.text}" for m in self.mistakes))


def printable(text: str) -> str:
    r"""The text with control characters, and those that change the direction of text, escaped as in JSON.

    >>> printable("a\x00b")
    'a\\u0000b'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text)
