"""Room for a number of things, in place of a semaphore for which threads wait: who would have to wait is told, and comes
again later on virtual time.
"""

import threading
from types import SimpleNamespace


class Full(Exception):
    """There is no room, and a thread would wait for some. What it has got already is given back."""


class Room:
    """As `threading.Semaphore`, as far as the product uses it."""

    got = 0  # by whoever tries now, of any room

    def __init__(self, value: int) -> None:
        self._value = value

    def acquire(self, blocking: bool = True) -> bool:
        """Take one.

        Raises:
            Full: there is none, and the thread would wait.
        """
        if not self._value:
            if not blocking:
                return False
            self._value += Room.got
            raise Full
        self._value -= 1
        Room.got += 1
        return True

    def release(self, n: int = 1) -> None:
        """Give some back."""
        self._value += n


THREADING = SimpleNamespace(Semaphore=Room, Lock=threading.Lock)
"""In place of the module `threading`, for code that needs no more of it."""
