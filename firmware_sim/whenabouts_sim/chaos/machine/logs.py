"""The product's log, for the time line of a schedule instead of stderr."""

import contextlib
import logging
from collections.abc import Callable, Iterator


class _Handler(logging.Handler):
    def __init__(self, take: Callable[[logging.LogRecord], None]) -> None:
        super().__init__()
        self._take = take

    def emit(self, record: logging.LogRecord) -> None:
        self._take(record)


@contextlib.contextmanager
def logged(take: Callable[[logging.LogRecord], None]) -> Iterator[None]:
    """Give every record of the level INFO and above to `take`, and to nobody else."""
    root = logging.getLogger()
    before = root.handlers, root.level
    root.handlers = [_Handler(take)]
    root.setLevel(logging.INFO)
    try:
        yield
    finally:
        root.handlers = before[0]
        root.setLevel(before[1])
