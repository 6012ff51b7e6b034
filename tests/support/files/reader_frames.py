"""The published frames of all readers: hardware/vectors, described in hardware/README.md."""

import json
from dataclasses import dataclass
from typing import Any

from support.paths import REPOSITORY

VECTORS = REPOSITORY / "hardware" / "vectors"


@dataclass(frozen=True)
class PublishedFrame:
    """What a source says of a frame: `fields` are the ones that it names, `ok` is false for one that is damaged."""

    reader: str
    name: str
    raw: bytes
    ok: bool
    fields: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.reader}, {self.name}"


def published() -> list[PublishedFrame]:
    """All of them, reader by reader."""
    tables = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(VECTORS.glob("*.json"))]
    return [
        PublishedFrame(table["reader"], row["name"], bytes.fromhex(row["hex"]), row["ok"], row["fields"])
        for table in tables
        for row in table["frames"]
    ]
