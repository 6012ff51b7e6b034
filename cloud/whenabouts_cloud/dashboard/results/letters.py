"""The newest dead letters of a landing, with their content as text where it is one, else in hexadecimal digits."""

import base64
import json
from typing import Any

from whenabouts_cloud.landing.layout import parts_of
from whenabouts_cloud.landing.store import Store

DEAD = "_dead"
MOST = 100
TAIL_BYTES = 512 << 10  # of a file
SHOWN_BYTES = 2048  # of a message


def newest_letters(landing: Store, most: int = MOST) -> list[dict[str, Any]]:
    """The newest letters of all parts, the newest first: at_us, topic, reason, text, size, content, binary.

    Raises:
        OSError: the landing cannot be read.
    """
    found: list[dict[str, Any]] = []
    for part in parts_of(landing):
        folder = f"{part}/{DEAD}" if part else DEAD
        names = sorted(one.name for one in landing.entries(folder) if one.name.endswith(".jsonl"))
        for name in names[-2:]:
            found += [one for line in _tail(landing, f"{folder}/{name}") if (one := _letter(line)) is not None]
    return sorted(found, key=lambda one: -one["at_us"])[:most]


def _tail(landing: Store, path: str) -> list[bytes]:
    [size] = landing.sizes([path])
    if not size:
        return []
    with landing.open(path) as file:
        file.seek(max(0, size - TAIL_BYTES))
        lines = file.read(TAIL_BYTES).split(b"\n")
    return list(lines[1:] if size > TAIL_BYTES else lines)


def _letter(line: bytes) -> dict[str, Any] | None:
    try:
        one = json.loads(line)
        payload = base64.b64decode(one["payload"])
        content, binary = _content(payload[:SHOWN_BYTES])
        return {
            "at_us": int(one["landed_us"]), "topic": str(one["topic"]), "reason": str(one["reason"]),
            "text": str(one["text"]), "size": int(one["bytes"]), "content": content, "binary": binary,
        }  # fmt: skip
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def _content(payload: bytes) -> tuple[str, bool]:
    try:
        text = payload.decode("utf-8")
    except UnicodeDecodeError:
        return payload.hex(" "), True
    return (text, False) if text.isprintable() else (payload.hex(" "), True)
