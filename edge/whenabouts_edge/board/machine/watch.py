"""Whether the watchdog may be fed: while steps return, the flash works, and readings that are due get stored or refused.

A broker, a network or a time server that is away is no reason to begin anew; a full ring is none either. What is left is
what a new start may cure: flash that has failed for STUCK_US, or a store that makes no progress for as long.
"""

STUCK_US = 60_000_000


class Watch:
    """Asked after every step; a step that never returns asks no more."""

    def __init__(self, now_us: int) -> None:
        self._well_us = now_us
        self._settled = -1

    def feeds(self, now_us: int, works: bool, is_due: bool, settled: int) -> bool:
        """works: the step ended without a fault of flash. is_due, settled: of the store."""
        if works and (not is_due or settled != self._settled):
            self._well_us = now_us
        self._settled = settled
        return now_us - self._well_us < STUCK_US
