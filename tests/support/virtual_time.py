"""An event loop whose clock jumps to the next event: no test waits for a period, and none depends on how fast it runs.

Only for tests without threads: while a thread works, the clock would run ahead of it.
"""

import asyncio
import selectors


class _Selector(selectors.DefaultSelector):
    """Never waits for a timeout: the loop's clock advances by it."""

    now_s = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            return super().select(None)
        events = super().select(0)
        if not events:
            self.now_s += max(0.0, timeout)
        return events


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock begins at 0 s."""

    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)

    def time(self) -> float:
        return self._virtual.now_s
