"""Events that a repository refuses: kept beside the results, so that they are not lost and do not stop what follows.

    OUT/_refused/batch=00000012-5f2c....jsonl     one a line: {"target", "reason", "event"}

A file is of one batch. At MOST_FILES the delivery stops: so much that nobody looks at would be a loss.
"""

import hashlib
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from whenabouts_cloud.delivery.published import folder_of
from whenabouts_cloud.landing.store import Store

REFUSED = "_refused"
MOST_FILES = 1000


class FullError(Exception):
    """There are MOST_FILES files already; the text says where and what to do."""


class Refused(NamedTuple):
    """An event, or the row that could be made none, and what the far side has said about it."""

    event: dict[str, Any]
    reason: str


def keep(out: Store, number: int, target: str, refused: Sequence[Refused]) -> str:
    """Write them durably and return the file's path. Its name is a digest of them: a repeated batch writes the same.

    Raises:
        FullError: nothing is written.
    """
    lines = [json.dumps({"target": target, "reason": one.reason, "event": one.event}) + "\n" for one in refused]
    content = "".join(lines).encode()
    name = f"{folder_of(number)}-{hashlib.blake2b(content, digest_size=6).hexdigest()}.jsonl"
    present = {one.name for one in out.entries(REFUSED)}
    if name not in present and len(present) >= MOST_FILES:
        raise FullError(
            f"{out.uri}/{REFUSED}: found {len(present)} files of refused events, expected fewer than {MOST_FILES}; find out "
            "why they are refused, then move the files away, and the delivery goes on"
        )
    out.write(f"{REFUSED}/{name}", content)
    return f"{REFUSED}/{name}"
