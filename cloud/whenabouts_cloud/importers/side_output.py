"""Side output of an importer: lines of a log file that are not readings, with their place and the reason."""

from dataclasses import dataclass


@dataclass(frozen=True)
class SideOutput:
    """A line that is not a reading: its number from 1, a one-word reason, the value found, and the line itself."""

    line: int
    reason: str
    text: str
    row: str


class NoLogError(ValueError):
    """The file is not a log of this kind of reader."""


class BadRow(ValueError):
    """A row that cannot be a reading: a one-word reason, and the value found."""

    def __init__(self, reason: str, text: str) -> None:
        super().__init__(text)
        self.reason = reason
