"""Pauses between attempts that grow, with a part of each left out by chance."""


class Backoff:
    """Each pause is twice as long as the one before, from least_us up to most_us.

    Up to half of it is left out: those who lost the same thing together come back one by one.

    >>> backoff = Backoff(1_000_000, 3_000_000)
    >>> [backoff.pause_us(chance) for chance in (0, 0, 0, 255)]
    [1000000, 2000000, 3000000, 1505860]
    """

    def __init__(self, least_us: int, most_us: int) -> None:
        self._least_us, self._most_us = least_us, most_us
        self._next_us = least_us

    def pause_us(self, chance: int) -> int:
        """Microseconds to wait before the next attempt; chance: random bits, of which the lowest eight count."""
        pause_us = self._next_us
        self._next_us = min(self._most_us, 2 * pause_us)
        return pause_us - pause_us * (chance & 255) // 512

    def reset(self) -> None:
        """An attempt held: begin with the shortest pause again."""
        self._next_us = self._least_us
