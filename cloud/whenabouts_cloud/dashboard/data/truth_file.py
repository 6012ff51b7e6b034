"""The true times of readings, where a simulator has written them into LANDING/_truth.jsonl.

An object a line: site, gateway, boot, seq, true_us. The file may grow; only what is new is read. Lines that are none of
this are left out, and so is what lies beyond MAX_LINES.
"""

import json
from typing import Any

from whenabouts_cloud.landing.store import Store

NAME = "_truth.jsonl"
MAX_LINES = 200_000
MAX_BYTES = 64 << 20

Identity = tuple[str, str, int, int]


class TruthFile:
    """True times by (site, gateway, boot, seq)."""

    def __init__(self, landing: Store) -> None:
        self._landing, self._read = landing, 0
        self._known: dict[Identity, int] = {}

    def __len__(self) -> int:
        return len(self._known)

    def follow(self) -> bool:
        """Read what is new; True if there was something."""
        [size] = self._landing.sizes([NAME])
        if size is None or size <= self._read or self._read >= MAX_BYTES:
            return False
        with self._landing.open(NAME) as file:
            file.seek(self._read)
            content = file.read(min(size, MAX_BYTES) - self._read)
        whole = content[: content.rfind(b"\n") + 1]
        self._read += len(whole)
        for line in whole.splitlines():
            if len(self._known) < MAX_LINES and (found := _parsed(line)):
                self._known[found[0]] = found[1]
        return bool(whole)

    def of(self, site: Any, gateway: Any, boot: Any, seq: Any) -> int | None:
        """The true time of a reading, us since 1970 UTC."""
        return self._known.get((site, gateway, boot, seq))


def _parsed(line: bytes) -> tuple[Identity, int] | None:
    try:
        one = json.loads(line)
        identity = (one["site"], one["gateway"], one["boot"], one["seq"])
        known = all(isinstance(x, str) for x in identity[:2]) and all(
            type(x) is int for x in (*identity[2:], one["true_us"])
        )
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return (identity, one["true_us"]) if known else None
