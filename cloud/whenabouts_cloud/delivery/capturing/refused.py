"""Events that a repository refuses: kept beside the results, so that they are not lost and do not stop what follows.

OUT/_refused/batch=00000012-5f2c....jsonl     one a line: {"target", "reason", "event"}
"""

import hashlib
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from whenabouts_cloud.delivery.published import folder_of
from whenabouts_cloud.landing.store import Store

REFUSED = "_refused"


class Refused(NamedTuple):
    """An event, or the row that could be made none, and what the far side has said about it."""

    event: dict[str, Any]
    reason: str


def keep(out: Store, number: int, target: str, refused: Sequence[Refused]) -> str:
    """Write them durably and return the file's path. Its name is a digest of them: a repeated batch writes the same."""
    lines = [json.dumps({"target": target, "reason": one.reason, "event": one.event}) + "\n" for one in refused]
    content = "".join(lines).encode()
    path = f"{REFUSED}/{folder_of(number)}-{hashlib.blake2b(content, digest_size=6).hexdigest()}.jsonl"
    out.write(path, content)
    return path
