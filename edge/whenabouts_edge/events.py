"""Waiting for an event of asyncio for a limited time."""

import asyncio


async def set_within(event: asyncio.Event, timeout_s: float | None) -> bool:
    """Wait until the event is set, at most timeout_s; True if it is set.

    With `asyncio.wait`: `wait_for` of Python 3.11 drops a cancellation that comes with the result, and a task asked to end
    would go on (python/cpython#86296).
    """
    waiting = asyncio.ensure_future(event.wait())
    try:
        await asyncio.wait([waiting], timeout=timeout_s)
    finally:
        waiting.cancel()
    return event.is_set()
