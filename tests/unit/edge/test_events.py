"""Waiting for an event for a limited time (`whenabouts_edge.events`)."""

import asyncio

import pytest

from whenabouts_edge.events import set_within


def test_an_event_is_waited_for_up_to_the_limit():
    """True if it is set, before or meanwhile; False after the time."""

    async def main() -> None:
        event = asyncio.Event()
        assert not await set_within(event, 0.01)
        asyncio.get_running_loop().call_later(0.01, event.set)
        assert await set_within(event, None)
        assert await set_within(event, 0.0)

    asyncio.run(main())


def test_a_cancellation_that_comes_with_the_event_is_not_lost():
    """The event is set, and before the task goes on it is cancelled."""

    async def main() -> None:
        event = asyncio.Event()
        task = asyncio.create_task(set_within(event, 60.0))
        for _ in range(3):  # until it waits
            await asyncio.sleep(0)
        event.set()
        await asyncio.sleep(0)  # the inner waiting has ended
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
