"""Growing pauses between attempts, each shortened by a random part."""


class Backoff:
    """Each pause is twice as long as the previous one, from least_us up to most_us.

    Up to half of it is left out, so that clients that lost the same connection together do not return together.

    >>> backoff = Backoff(1_000_000, 3_000_000)
    >>> [backoff.pause_us(chance) for chance in (0, 0, 0, 255)]
    [1000000, 2000000, 3000000, 1505860]
    """

    def __init__(self, least_us: int, most_us: int) -> None:
        self._least_us, self._most_us = least_us, most_us
        self._next_us = least_us

    def pause_us(self, chance: int) -> int:
        """Microseconds to wait before the next attempt. chance: random bits, of which only the lowest eight are used."""
        pause_us = self._next_us
        self._next_us = min(self._most_us, 2 * pause_us)
        return pause_us - pause_us * (chance & 255) // 512

    def reset(self) -> None:
        """An attempt succeeded: begin with the shortest pause again."""
        self._next_us = self._least_us
