"""Pending readings for tests of the spool, the intake and the parts before them: a key and a stamp each."""

from collections.abc import Sequence

from whenabouts_edge.readers.pending import PendingReading


def pending(
    key: str | None,
    t_min: int = 0,
    t_max: int | None = None,
    stream: str = "dock/tags",
    clock_state: str = "bounded",
    size: int = 0,
    window: tuple[int, int] = (0, 0),
    origin: tuple[str, str] = ("bench", "gw"),
) -> PendingReading:
    """A dated reading that waits for its number; size bytes of text make it large."""
    one = PendingReading(stream, "tag", *window, key, attrs={"note": "x" * size} if size else None)
    one.site, one.gateway = origin
    one.stamp = t_min, t_min + 10 if t_max is None else t_max, clock_state
    return one


def undated(key: str | None, *window: int, stream: str = "dock/tags") -> PendingReading:
    """A pending reading of which only its window of host time is known."""
    return pending(key, 0, 9, stream, "unbounded", window=(window[0], window[1]), origin=("hall", "gw"))


def several(keys: Sequence[str], size: int = 0) -> list[PendingReading]:
    """One pending reading per key."""
    return [pending(key, i, size=size) for i, key in enumerate(keys)]
