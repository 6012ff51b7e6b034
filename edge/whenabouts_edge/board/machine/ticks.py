"""A counter that never wraps, made from a board's `ticks_us`, which wraps after 17.9 minutes.

A look at the counter gives its place within the period; the unwrapped value is the nearest one to the last look. So looks
must be less than half a period apart, 8.9 minutes on boards, and a moment that was taken a little before the last look is
placed before it, not a whole period later.
"""


class Ticks:
    """Unwraps a counter of `period` values, a power of two; counts from 0 at the first look.

    On boards period is `time.ticks_add(0, -1) + 1`.

    Raises:
        ValueError: period is no power of two above 1.

    >>> ticks = Ticks(256)
    >>> ticks.at(250), ticks.at(4), ticks.at(2)
    (0, 10, 8)
    """

    def __init__(self, period: int) -> None:
        if period < 2 or period & (period - 1):
            raise ValueError(f"ticks period: found {period}, expected a power of two above 1")
        self._mask = period - 1
        self._half = period // 2
        self._raw: int | None = None
        self._value = 0

    def at(self, raw: int) -> int:
        """The unwrapped value of the counter's value raw, which is less than half a period away from the last look."""
        if self._raw is None:
            self._raw = raw
        ahead = (raw - self._raw) & self._mask
        if ahead >= self._half:
            return self._value + ahead - self._mask - 1
        self._raw = raw
        self._value += ahead
        return self._value
