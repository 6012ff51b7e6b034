"""Which simulated process runs now."""

from contextvars import ContextVar
from typing import Any, Protocol


class Killed(BaseException):
    """The process that runs now has just been killed."""


class Running(Protocol):
    """What others need of the process that runs. alive: not yet killed. opened: its open files and databases."""

    alive: bool
    opened: list[Any]

    def delay_s(self, disk: bool) -> float:
        """How long its disk, or one of its threads, lets it wait now."""

    def about_to_write(self) -> None:
        """Count a write.

        Raises:
            Killed: this was one too many, or it is dead already.
        """

    def about_to_sync_folder(self) -> None:
        """Count a sync of a folder.

        Raises:
            Killed: this was one too many.
        """


RUNNING: "ContextVar[Running | None]" = ContextVar("running", default=None)


def running() -> Running | None:
    """The process whose code runs now; None for the world."""
    return RUNNING.get()
