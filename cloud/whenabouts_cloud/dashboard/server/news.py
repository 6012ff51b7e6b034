"""Server-sent events: tell the page that an index has a new version, so that it asks again.

At most one event in EVERY_S, and a comment every QUIET_S, by which both sides notice a dead connection. A stream ends when
the server does. Cost: a stream looks at four numbers each EVERY_S.
"""

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Callable

EVERY_S = 0.25
QUIET_S = 15.0
MAX_STREAMS = 32
RETRY_MS = 1000  # that a browser waits before it connects again


class News:
    """The streams of a server. version: the versions to tell."""

    def __init__(
        self, version: Callable[[], dict[str, int]], monotonic_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._version, self._monotonic_s = version, monotonic_s
        self.open = 0
        self.ended = asyncio.Event()

    async def stream(self) -> AsyncIterator[str]:
        """Events, beginning with the present versions; ends when `ended` is set."""
        self.open += 1
        try:
            yield f"retry: {RETRY_MS}\n\n"
            told: dict[str, int] | None = None
            told_s = self._monotonic_s()
            while not self.ended.is_set():
                version, now_s = self._version(), self._monotonic_s()
                if version != told:
                    told, told_s = version, now_s
                    yield f"event: news\ndata: {json.dumps(version)}\n\n"
                elif now_s - told_s >= QUIET_S:
                    told_s = now_s
                    yield ": still here\n\n"
                await _wait(self.ended, EVERY_S)
        finally:
            self.open -= 1


async def _wait(ended: asyncio.Event, seconds: float) -> None:
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(ended.wait(), seconds)
