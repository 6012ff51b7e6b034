"""Lines of a log file that are no readings: kept with their place and the reason, never dropped."""

from dataclasses import dataclass


@dataclass(frozen=True)
class SideOutput:
    """A line that is no reading: its number from 1, one word of reason, what was found, and the line itself."""

    line: int
    reason: str
    text: str
    row: str


class NoLogError(ValueError):
    """The file is no log of this kind of reader."""


class BadRow(ValueError):
    """A row that cannot be a reading: one word of reason, and what was found."""

    def __init__(self, reason: str, text: str) -> None:
        super().__init__(text)
        self.reason = reason
