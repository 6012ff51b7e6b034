"""Stamps: closed intervals of integer microseconds since 1970 UTC that contain the moment of an event.

A stamp is an interval because clocks, wires and readers all delay an event by unknown but bounded amounts. This module
has the operations that both ends need; probabilities within intervals are in `probability`.
"""


class Interval:
    """Closed interval [t_min, t_max] in microseconds since 1970 UTC; length 0 is allowed.

    Raises:
        ValueError: t_min is later than t_max.

    >>> Interval(100, 140).widened(before_us=10, after_us=5)
    Interval(90, 145)
    """

    __slots__ = ("t_max", "t_min")

    def __init__(self, t_min: int, t_max: int) -> None:
        if t_min > t_max:
            raise ValueError(f"interval: found t_min {t_min} later than t_max {t_max}, expected t_min <= t_max")
        self.t_min = t_min
        self.t_max = t_max

    @property
    def width_us(self) -> int:
        """Length in microseconds, 0 for a point."""
        return self.t_max - self.t_min

    @property
    def doubled_middle(self) -> int:
        """Twice the middle: an integer without rounding."""
        return self.t_min + self.t_max

    def widened(self, before_us: int = 0, after_us: int = 0) -> "Interval":
        """The interval with its ends moved outwards by these amounts."""
        return Interval(self.t_min - before_us, self.t_max + after_us)

    def contains(self, t: int) -> bool:
        """True if instant t lies inside; both ends are included."""
        return self.t_min <= t <= self.t_max

    def overlaps(self, other: "Interval") -> bool:
        """True if the two share an instant; touching ends count."""
        return self.t_min <= other.t_max and other.t_min <= self.t_max

    def certainly_before(self, other: "Interval") -> bool:
        """True if every instant of this one is earlier than every instant of the other."""
        return self.t_max < other.t_min

    def intersection(self, other: "Interval") -> "Interval | None":
        """The instants in both intervals, or None if there are none."""
        t_min = max(self.t_min, other.t_min)
        t_max = min(self.t_max, other.t_max)
        return Interval(t_min, t_max) if t_min <= t_max else None

    def hull(self, other: "Interval") -> "Interval":
        """The smallest interval that covers both."""
        return Interval(min(self.t_min, other.t_min), max(self.t_max, other.t_max))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Interval) and self.t_min == other.t_min and self.t_max == other.t_max

    def __hash__(self) -> int:
        return hash((self.t_min, self.t_max))

    def __repr__(self) -> str:
        return f"Interval({self.t_min}, {self.t_max})"
