"""Results as JSON arrays in POST requests, at least once.

    https://USER@HOST/PATH    http://...

A request has at most 1000 results and MAX_BYTES, or one result that is longer. Its header `Idempotency-Key` is made of
series, batch, part and content: a repeated request has the same one. An answer other than 2xx counts as a failure, and the
batch is repeated. USER is sent by basic authentication, with the password of the URI, else that of ~/.netrc for the host.
"""

import hashlib
import json
from collections.abc import Iterator
from typing import Any

from whenabouts_cloud.delivery.http_connection import HttpConnection
from whenabouts_cloud.delivery.published import Batch

MAX_BYTES = 1 << 20  # of a request


class Webhook:
    """One URL. A connection is kept from request to request while the server allows it."""

    def __init__(self, uri: str, unit: str) -> None:
        self._server = HttpConnection(uri, {"Content-Type": "application/json"})

    def deliver(self, batch: Batch) -> int:
        sent = 0
        for number, part in enumerate(batch.parts()):
            for body in bodies(part):
                digest = hashlib.blake2b(body, digest_size=8).hexdigest()
                key = f"{batch.series}-{batch.number}-{number}-{digest}"
                answer = self._server.ask("POST", self._server.path, body, {"Idempotency-Key": key})
                if not answer.succeeded:
                    raise answer.error()
            sent += len(part)
        return sent

    def close(self) -> None:
        self._server.close()


def bodies(rows: list[dict[str, Any]]) -> Iterator[bytes]:
    """Yield JSON arrays of the rows in their order, each of at most MAX_BYTES unless it holds one row."""
    texts: list[bytes] = []
    size = 0
    for row in rows:
        text = json.dumps(row, separators=(",", ":")).encode()
        if texts and size + len(text) + 2 > MAX_BYTES:
            yield b"[" + b",".join(texts) + b"]"
            texts, size = [], 0
        texts.append(text)
        size += len(text) + 1
    if texts:
        yield b"[" + b",".join(texts) + b"]"
