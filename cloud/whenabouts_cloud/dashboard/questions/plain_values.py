"""Values of rows as JSON that a browser reads without loss: it holds whole numbers exactly up to 2^53 only."""

import math
from typing import Any

SAFE = 1 << 53
AS_TEXT = (
    "boot",
    "seq",
    "a_boot",
    "a_seq",
    "b_boot",
    "b_seq",
)  # numbers of readings: always texts, whatever their size


def plain(value: Any, name: str = "") -> Any:
    """A value as JSON: numbers of readings and great ones as texts, bytes in hex, no NaN."""
    if isinstance(value, dict):
        return {str(key): plain(one, str(key)) for key, one in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(one, name) for one in value]
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value) if name in AS_TEXT or abs(value) > SAFE else value
    return value if value is None or isinstance(value, str | bool) else str(value)
