"""The log of the frames that readers really put on their lines: ground truth from the air to the host's port.

One JSON object a line, so that other processes and people can read it while it grows.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class EmittedFrame:
    """A frame that reports sighting (reader, number) and left the reader; times are true microseconds.

    `last_byte_us`: taken just before the last byte was handed over, so the host cannot have had it earlier.
    `damaged`: why the host may not have got the reading (a fault's name, "overrun" or "late"), or "".
    """

    reader: str
    number: int
    key: str
    true_us: int
    last_byte_us: int
    damaged: str = ""

    @property
    def id(self) -> tuple[str, int]:
        """The sighting's identity."""
        return self.reader, self.number

    def to_json(self) -> str:
        """One line without its end."""
        return json.dumps(asdict(self), separators=(",", ":"))

    @classmethod
    def from_json(cls, line: str) -> EmittedFrame:
        """The inverse of `to_json`."""
        return cls(**json.loads(line))


def read_emitted(paths: Iterable[Path]) -> list[EmittedFrame]:
    """All entries of these logs in order of true time."""
    entries = [EmittedFrame.from_json(line) for path in paths for line in path.read_text().splitlines()]
    return sorted(entries, key=lambda entry: (entry.true_us, entry.id))
