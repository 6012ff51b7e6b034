"""The published frames of all readers: hardware/vectors, described in hardware/README.md."""

import json
from dataclasses import dataclass
from typing import Any

from support.paths import REPOSITORY

VECTORS = REPOSITORY / "hardware" / "vectors"


@dataclass(frozen=True)
class PublishedFrame:
    """A frame as its source describes it: `fields` are the ones that it names, `ok` is false for a damaged frame."""

    reader: str
    name: str
    raw: bytes
    ok: bool
    fields: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.reader}, {self.name}"


def published() -> list[PublishedFrame]:
    """All published frames, reader by reader."""
    tables = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(VECTORS.glob("*.json"))]
    return [
        PublishedFrame(table["reader"], row["name"], bytes.fromhex(row["hex"]), row["ok"], row["fields"])
        for table in tables
        for row in table["frames"]
    ]
