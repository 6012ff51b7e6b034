"""A reading on its way to the store: without its number, and as a rule without its UTC stamp."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Draft:
    """What was observed, and the window of host time that it lies in.

    stamp: t_min, t_max and clock state of what is dated already; its window then says nothing. vclock: the clock of the
    group that it carries. tell: a state that the peers are told once it is stored.
    """

    __slots__ = (
        "attrs", "earliest_us", "key", "kind", "latest_us", "stamp", "stream", "tell", "unit", "value", "vclock",
    )  # fmt: skip

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
        self.stream, self.kind, self.key, self.value, self.unit = stream, kind, key, value, unit
        self.earliest_us, self.latest_us = earliest_us, latest_us
        self.attrs = attrs or {}
        self.stamp: tuple[int, int, str] | None = None
        self.vclock: tuple[int, ...] = (0,)
        self.tell = False
