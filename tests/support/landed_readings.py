"""Readings as the laws of schedules find them in a landing."""

from typing import Any

from whenabouts_sim.chaos.checks.landed import LandedReading
from whenabouts_sim.chaos.parts.landing_files import FileId


def landed(stream: str, seq: int, t_min: int, t_max: int, file: int = 1, **more: Any) -> LandedReading:
    """A reading of a tag, of gateway hall/gw-1. more: other columns."""
    one = LandedReading(
        FileId(0, file), "hall", "gw-1", 7, seq, stream, "tag", "K", t_min, t_max, None, None, None
    )  # fmt: skip
    return one._replace(**more)
