"""A reading on its way to the store: without its number, and as a rule without its UTC stamp.

Many of them wait in memory until the time is known: what most do not have is kept once, in the class.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_NONE: "dict[str, Any]" = {}  # of all drafts without attributes: never written to


class Draft:
    """What was observed, and the window of host time that it lies in, earliest_us and width_us.

    stamp: t_min, t_max and clock state of what is dated already; its window then says nothing. vclock: the clock of the
    group that it carries. tell: a state that the peers are told once it is stored.
    """

    kind = "tag"
    key: "str | None" = None
    value: "Any" = None
    unit: "str | None" = None
    attrs: "dict[str, Any]" = _NONE
    stamp: "tuple[int, int, str] | None" = None
    vclock: "tuple[int, ...]" = (0,)
    tell = False

    def __init__(
        self,
        stream: str,
        kind: str,
        earliest_us: int,
        latest_us: int,
        key: "str | None" = None,
        value: "Any" = None,
        unit: "str | None" = None,
        attrs: "dict[str, Any] | None" = None,
    ) -> None:
        self.stream = stream
        self.earliest_us, self.width_us = earliest_us, latest_us - earliest_us
        if kind != "tag":
            self.kind = kind
        if key is not None:
            self.key = key
        if value is not None:
            self.value = value
        if unit is not None:
            self.unit = unit
        if attrs:
            self.attrs = attrs

    @property
    def latest_us(self) -> int:
        """The end of the window."""
        return self.earliest_us + self.width_us
