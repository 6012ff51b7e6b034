"""Delivers the batches of one folder to one target, in a thread of its own.

    waiting ---- published --> delivering --> cursor moved --> waiting
                                   | any error
                                   v
                            closed; again after 1, 2, 4 ... 60 s

Nothing is given up: while the far side is down, batches wait in the output folder. The only memory that grows with them is
their numbers. A batch whose folder was deleted before it was delivered is reported and passed over.
"""

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from whenabouts_cloud.delivery.cursor import Cursor
from whenabouts_cloud.delivery.published import Batch, folder_of, numbers_after
from whenabouts_cloud.delivery.target import Target
from whenabouts_cloud.landing.store import Store
from whenabouts_protocol.logs import Log

log = Log(__name__)

LONGEST_WAIT_S = 60.0
LAGGING_S = 60.0  # a target whose oldest batch has waited this long is reported
IDLE_S = 1.0


@dataclass(frozen=True)
class Progress:
    """What a target was given since the start, and what waits for it; `waiting_since_s` is of the oldest, unix seconds."""

    target: str
    batches: int = 0
    results: int = 0
    failures: int = 0
    waiting: int = 0
    waiting_since_s: float | None = None

    def lag_s(self, now_s: float) -> float:
        """How long the oldest batch that is not delivered has been waiting, in seconds."""
        return 0.0 if self.waiting_since_s is None else max(0.0, now_s - self.waiting_since_s)


def pause_s(failures: int) -> float:
    """Seconds before the next attempt, after this many failures in a row.

    >>> [pause_s(n) for n in (1, 2, 3, 99)]
    [1.0, 2.0, 4.0, 60.0]
    """
    return min(LONGEST_WAIT_S, 2.0 ** min(failures - 1, 10))


class Courier:
    """Delivers batches of `out` after the cursor: those there at `start`, then those that are `published`."""

    def __init__(
        self,
        out: Path | Store,
        series: str,
        target: Target,
        cursor: Cursor,
        rules: frozenset[str] | None = None,
        pause_s: Callable[[int], float] = pause_s,
    ) -> None:
        self._out, self._series, self._target, self._cursor, self._rules = Store.at(out), series, target, cursor, rules
        self._pause_s = pause_s
        self._news = threading.Condition()
        self._numbers: deque[int] = deque()
        self._ending = False
        self._failed_in_row, self._failing_since_s, self._lagging = 0, 0.0, False
        self.last_error = ""
        self.progress = Progress(cursor.shown)
        self._thread = threading.Thread(target=self._run, name=f"delivery to {cursor.shown}", daemon=True)

    def start(self) -> None:
        """Begin with the batches that are in the folder and not delivered.

        Raises:
            DamagedCursorError: the file of the cursor cannot be read.
        """
        self._numbers.extend(numbers_after(self._out, self._cursor.read(self._series)))
        self._note()
        self._thread.start()

    def published(self, number: int) -> None:
        """Tell of a published batch; returns at once."""
        with self._news:
            if not self._numbers or self._numbers[-1] < number:
                self._numbers.append(number)
            self._note()
            self._news.notify_all()

    def wait(self, until: Callable[[], bool], patience_s: float) -> bool:
        """Wait for all batches; False if `until` holds or the target has failed for patience_s before that."""
        while self._numbers and not until():
            with self._news:
                self._news.wait(0.1)
            if self._failed_in_row and time.monotonic() - self._failing_since_s > patience_s:
                break
        return not self._numbers

    def end(self) -> None:
        """Begin no further attempt."""
        with self._news:
            self._ending = True
            self._news.notify_all()

    def _run(self) -> None:
        while True:
            with self._news:
                while not self._numbers and not self._ending:
                    self._news.wait(IDLE_S)
                if self._ending:
                    break
                number = self._numbers[0]
            try:
                self._deliver(number)
            except Exception as error:  # whatever a client library or the far side does must not end the delivery
                self._fail(number, error)
        self._target.close()

    def _deliver(self, number: int) -> None:
        folder = self._out.at_folder(folder_of(number))
        results = 0
        if folder.exists():
            results = self._target.deliver(Batch(folder, self._series, number, self._rules))
        else:
            text = "its folder was deleted before it was delivered; passed over"
            log.error("delivery.missing", text, target=self._cursor.shown, batch=number)
        self._cursor.write(self._series, number)
        if self._failed_in_row:
            log.info("delivery.resumed", "The target takes results again", target=self._cursor.shown, batch=number)
        self._failed_in_row = 0
        with self._news:
            self._numbers.popleft()
            self.progress = replace(
                self.progress, batches=self.progress.batches + 1, results=self.progress.results + results
            )
            self._note()
            self._news.notify_all()

    def _fail(self, number: int, error: Exception) -> None:
        """Report the first of several failures, and wait before the next attempt."""
        try:
            self._target.close()
        except Exception as closing:  # the connection is given up anyway
            log.debug("delivery.close", str(closing), target=self._cursor.shown)
        self.last_error = f"{type(error).__name__}: {error}"
        self.progress = replace(self.progress, failures=self.progress.failures + 1)
        if not self._failed_in_row:
            self._failing_since_s = time.monotonic()
            text = "the batch stays in the output folder; tried again"
            log.warning("delivery.failed", text, target=self._cursor.shown, batch=number, error=self.last_error)
        self._failed_in_row += 1
        again_s = time.monotonic() + self._pause_s(self._failed_in_row)
        with self._news:
            while not self._ending and time.monotonic() < again_s:
                self._note()
                self._news.wait(min(IDLE_S, max(0.0, again_s - time.monotonic())))

    def _note(self) -> None:
        """Renew what waits; report a target once each time that it lags."""
        since_s = None
        if self._numbers:
            changed_ns = self._out.changed_ns(folder_of(self._numbers[0]))
            since_s = self.progress.waiting_since_s or time.time() if changed_ns is None else changed_ns / 1e9
        self.progress = replace(self.progress, waiting=len(self._numbers), waiting_since_s=since_s)
        if not self._numbers:
            self._lagging = False
        elif self.progress.lag_s(time.time()) > LAGGING_S and not self._lagging and self._thread.is_alive():
            self._lagging = True
            text = f"results have been waiting for more than {LAGGING_S:.0f} s"
            log.warning("delivery.lagging", text, target=self._cursor.shown, waiting=len(self._numbers))
