"""An event loop whose clock jumps to what is due next: no test waits for a period, and none depends on how fast it runs.

For tests without threads: while one works, time would run away.
"""

import asyncio
import selectors


class _Selector(selectors.DefaultSelector):
    """Never waits for a timeout: the loop's clock is put forward by it."""

    now_s = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            return super().select(None)
        found = super().select(0)
        if not found:
            self.now_s += max(0.0, timeout)
        return found


class VirtualLoop(asyncio.SelectorEventLoop):
    """Begins at 0 s."""

    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)

    def time(self) -> float:
        return self._virtual.now_s
