"""Errors of a rule file.

RuleError (ValueError)      all mistakes of a file; each is a Mistake with its place
"""

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Mistake:
    """One mistake; line and column count from 1."""

    line: int
    column: int
    text: str


class RuleError(ValueError):
    """A rule file with mistakes: one line each, `file:line:column: found ..., expected ...`."""

    def __init__(self, file: str, mistakes: list[Mistake]) -> None:
        self.file = file
        self.mistakes = tuple(sorted(mistakes))
        super().__init__("\n".join(f"{file}:{m.line}:{m.column}: {m.text}" for m in self.mistakes))
