"""An event loop on virtual time: its clock jumps to the next timer, and work for other threads is done at once.

There are no files and no threads, so the same callbacks run in the same order each time.
"""

import asyncio
from collections.abc import Callable
from heapq import heappop
from typing import Any

MOST_TASKS = 1000


class VirtualLoop(asyncio.BaseEventLoop):
    """now_ns: the true time, nanoseconds since an arbitrary moment."""

    _timer_cancelled_count = 0

    def __init__(self, now_ns: int = 0) -> None:
        super().__init__()
        self.now_ns = now_ns
        self._tasks: list[asyncio.Task[Any]] = []  # a task of a killed process is never done, and must stay

    def time(self) -> float:
        return self.now_ns / 1e9

    def create_task(self, coro: Any, *, name: object = None, context: Any = None) -> "asyncio.Task[Any]":
        task = super().create_task(coro, name=name, context=context)
        self._tasks.append(task)
        if len(self._tasks) > MOST_TASKS:
            self._tasks = [one for one in self._tasks if not one.done()]
        return task

    def end_tasks(self) -> None:
        """Throw away all tasks that are not done, without going on with them."""
        for task in self._tasks:
            if not task.done():
                task._log_destroy_pending = False  # type: ignore[attr-defined]
                _close(task.get_coro())

    def run_in_executor(  # type: ignore[override]
        self, _executor: Any, func: Callable[..., Any], *args: Any
    ) -> "asyncio.Future[Any]":
        """Do the work now; whoever waits for it goes on in a later turn of the loop."""
        done: asyncio.Future[Any] = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:
            done.set_exception(error)
        return done

    def call_soon_threadsafe(  # type: ignore[override]
        self, callback: Callable[..., Any], *args: Any, context: Any = None
    ) -> asyncio.Handle:
        return self.call_soon(callback, *args, context=context)

    def cancel_of(self, belongs: Callable[[Any], bool]) -> None:
        """Cancel all callbacks whose context belongs."""
        for handle in (*self._ready, *self._scheduled):  # type: ignore[attr-defined]
            if belongs(handle._context):
                handle.cancel()

    def _run_once(self) -> None:
        """Run what is ready; if nothing is, the clock jumps to the next timer. As in `BaseEventLoop`, without files."""
        ready, scheduled = self._ready, self._scheduled  # type: ignore[attr-defined]
        while scheduled and scheduled[0]._cancelled:
            heappop(scheduled)._scheduled = False
            self._timer_cancelled_count -= 1
        if not ready:
            if not scheduled:
                raise RuntimeError("nothing is left to happen, and the schedule waits for something")
            self.now_ns = max(self.now_ns, int(scheduled[0]._when * 1e9) + 1)
        now_s = self.now_ns / 1e9
        while scheduled and scheduled[0]._when <= now_s:
            handle = heappop(scheduled)
            handle._scheduled = False
            ready.append(handle)
        for _ in range(len(ready)):
            handle = ready.popleft()
            if not handle._cancelled:
                handle._run()

    def _write_to_self(self) -> None:
        pass


def _close(coroutine: Any) -> None:
    """End a suspended coroutine, which may wait again in a `finally`."""
    for _ in range(9):
        try:
            coroutine.close()
        except RuntimeError:
            continue
        return
