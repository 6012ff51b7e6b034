"""Decides whether to feed the watchdog: while steps return, the flash works, and due readings get stored or refused.

An absent broker, network or time server is no reason to restart, nor is a full flash log. A restart may cure only two
faults: flash that has failed for STUCK_US, or a store that makes no progress for as long.
"""

STUCK_US = 60_000_000


class Watch:
    """The caller asks after every step; a step that never returns lets the watchdog run out."""

    def __init__(self, now_us: int) -> None:
        self._well_us = now_us
        self._settled = -1

    def feeds(self, now_us: int, works: bool, is_due: bool, settled: int) -> bool:
        """Return True to feed the watchdog. works: the step ended without a fault of flash. is_due, settled: of `Store`."""
        if works and (not is_due or settled != self._settled):
            self._well_us = now_us
        self._settled = settled
        return now_us - self._well_us < STUCK_US
