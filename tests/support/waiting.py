"""Polling for changes that send no notification, such as a file of another process. No other module of the tests polls.

Things that can be waited for directly (an event, a line of output, a descriptor) are; see `threading.Event`, `select`.
"""

import time
from collections.abc import Callable

LOOK_EVERY_S = 0.02


def until(
    condition: Callable[[], object],
    what: str | Callable[[], str],
    timeout_s: float = 60.0,
    every_s: float = LOOK_EVERY_S,
) -> None:
    """Return as soon as the condition holds; it is polled every `every_s`.

    Raises:
        AssertionError: it does not hold within `timeout_s`; `what`, a text or its function, names what was waited for.
    """
    until_s = time.monotonic() + timeout_s
    while not condition():
        text = what if isinstance(what, str) or time.monotonic() <= until_s else what()
        assert time.monotonic() <= until_s, f"waited {timeout_s:g} s for {text}"
        time.sleep(every_s)
