"""An event loop on virtual time: its clock jumps to the next timer, and work for other threads is a callback.

There are no files and no threads, so the same callbacks run in the same order each time. How late a thread is, the process
says whose callback runs; what one thread is given stays in order.
"""

import asyncio
from collections.abc import Callable
from heapq import heappop
from typing import Any
from weakref import WeakKeyDictionary

from whenabouts_sim.chaos.machine.running import RUNNING, running

MOST_TASKS = 1000
TICK_S = 1e-6


class VirtualLoop(asyncio.BaseEventLoop):
    """now_ns: the true time, nanoseconds since an arbitrary moment."""

    _timer_cancelled_count = 0

    def __init__(self, now_ns: int = 0) -> None:
        super().__init__()
        self.now_ns = now_ns
        self._tasks: list[asyncio.Task[Any]] = []  # a task of a killed process is never done, and must stay
        self._busy_s: WeakKeyDictionary[Any, float] = (
            WeakKeyDictionary()
        )  # until when an executor, or a process, is busy

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

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., Any], *args: Any, context: Any = None
    ) -> asyncio.TimerHandle:
        """As ever; a timer of a process may be late."""
        process = running()
        late_s = process.delay_s(disk=False) if process is not None and context is None else 0.0
        return super().call_at(when + late_s, callback, *args, context=context)

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> "asyncio.Future[Any]":
        """Do the work, at once or after a delay; whoever waits for it goes on in a later turn of the loop."""
        done: asyncio.Future[Any] = self.create_future()

        def work() -> None:
            if done.cancelled():
                return
            try:
                result = func(*args)
            except Exception as error:
                done.set_exception(error)
            else:
                done.set_result(result)

        process = running()
        delay_s = process.delay_s(executor is not None) if process is not None else 0.0
        self._in_order(executor if executor is not None else done, delay_s, work)
        return done

    def call_soon_threadsafe(  # type: ignore[override]
        self, callback: Callable[..., Any], *args: Any, context: Any = None
    ) -> asyncio.Handle:
        return self.call_soon(callback, *args, context=context)

    def _in_order(self, owner: Any, delay_s: float, work: Callable[[], None]) -> None:
        """Do the work after a delay, and after what the owner was given before; at once if there is neither."""
        at_s = max(self.time() + delay_s, self._busy_s.get(owner, 0.0))
        if at_s <= self.time():
            work()
            return
        self._busy_s[owner] = at_s + TICK_S  # the loop keeps no order of timers for one moment
        super().call_at(at_s, work)

    def _run_once(self) -> None:
        """Run what is ready; if nothing is, the clock jumps to the next timer. As in `BaseEventLoop`, without files.

        Nothing of a killed process is run, also what it has left while the kill's exception went through its code.
        """
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
            process = handle._context.get(RUNNING)
            if not handle._cancelled and (process is None or process.alive):
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
