"""The predicates that make a gateway's local state, each a small machine with hysteresis over the readings of one stream.

A condition is a function of the true times of its readings. Each of its changes has a moment, and comes with an interval
[earliest, latest] that certainly contains this moment. Where the stamps leave open whether there was a change, there was
none: a tag has left when it certainly was not read for the set time, a threshold was passed when certainly no reading
contradicts.

Silence of a reader that does not scan says nothing, so a value that it would change is unknown (None): absence and a measure
from the moment at which readings may be lost, presence from leave_us after the last read. At first all values are unknown.

Readings, and the times for which they may be lost, must be passed in the order of their earliest moments; `advance` declares
that every later one begins at a moment or after it. The caller sets sure_us (until then the readers of the stream have
scanned; None: until the moment of `advance`) and is_shared (the stream has several). Integer microseconds of the host's
clock; also runs on boards.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Change = tuple[int, int, bool | None]  # earliest, latest, the new value

MAX_READS = 1000  # upper limit of `reads`, the reads before a tag counts as present


class Presence:
    """Presence of a tag: from the reads-th read without a pause until leave_us after the last one.

    key: the tag, or None for any. A pause is a time of more than leave_us without a read.

    Raises:
        ValueError: reads or leave_us out of range.
    """

    def __init__(
        self, name: str, stream: str, key: "str | None", reads: int, leave_us: int, started_us: int = 0
    ) -> None:
        if not 1 <= reads <= MAX_READS or leave_us < 1:
            raise ValueError(
                f"presence {name}: found {reads} reads and {leave_us} us, expected 1..{MAX_READS} and 1 or more"
            )
        self.name, self.stream = name, stream
        self._key, self._reads, self._leave_us = key, reads, leave_us
        self._value: bool | None = None
        self._last = started_us, started_us  # bounds of the last read
        self._since_us = started_us  # what was read before may be lost
        self.sure_us: int | None = None
        self.is_shared = False
        self._count = 0  # of reads without a pause
        self._counted_us = 0  # by when all of them had certainly happened

    def start(self, now_us: int, since_us: int) -> None:
        """Begin: no read was observed before now_us, and until since_us reads may have been lost."""
        self._last, self._since_us = (now_us, now_us), since_us

    def wants(self, stream: str, key: "str | None") -> bool:
        """Return True if this reading counts."""
        return stream == self.stream and (self._key is None or key == self._key)

    def feed(self, earliest_us: int, latest_us: int, _value: "Any", _attrs: "dict[str, Any]") -> "list[Change]":
        """Take in a read; returns the changes that it makes certain and the one that it causes."""
        changes = self.advance(earliest_us)
        if earliest_us > self._last[1] + self._leave_us:
            self._count = 0
        self._last = max(self._last[0], earliest_us), max(self._last[1], latest_us)
        if self._value is not True:
            self._counted_us = max(self._counted_us, latest_us) if self._count else latest_us
            self._count += 1
            if self._count >= self._reads:
                self._value = True
                changes.append((earliest_us, self._counted_us, True))
        return changes

    def advance(self, clear_us: int) -> "list[Change]":
        """The changes that are certain when every later read happens at clear_us or after."""
        changes: list[Change] = []
        earliest_us, over_us = self._over()
        if self._value is True and self._since_us > self._last[1] and clear_us > self._last[1] + self._leave_us:
            self._value, self._count = None, 0
            changes.append((self._last[0] + self._leave_us, self._last[1] + self._leave_us, None))
        if self._value is not False and _least(clear_us, self.sure_us) > over_us:
            self._value, self._count = False, 0
            changes.append((earliest_us, over_us, False))
        return changes

    def lost(self, from_us: int, since_us: int) -> "list[Change]":
        """Reads between from_us and since_us may be lost; returns the changes that are certain by then, and the one to
        unknown.
        """
        changes = self.advance(from_us)
        self._since_us = max(self._since_us, since_us)
        if self._value is False:
            self._value = None
            changes.append((from_us, from_us, None))
        return changes

    def earliest(self) -> "int | None":
        """Earliest moment of a change that may have happened already without another read, at the latest sure_us if the
        value would be unknown from then on; None if there is none.
        """
        if self._value is False:
            return self.sure_us
        return self._last[0] + self._leave_us if self._value else self._over()[0]

    def _over(self) -> "tuple[int, int]":
        """The interval in which the tag has left unless it is read again; one moment if it may have left before."""
        if self._since_us > self._last[1]:
            return self._since_us + self._leave_us, self._since_us + self._leave_us
        return self._last[0] + self._leave_us, self._last[1] + self._leave_us


class Threshold:
    """A measure against thresholds: on when it has been at or beyond on_at for hold_us, off when at or beyond off_at for
    as long. With on_at above off_at, on is high; else on is low.

    attr: the attribute that is compared, None for the reading's own value. Values that are not numbers are counted in
    `unusable`.

    Raises:
        ValueError: equal thresholds, or a negative hold_us.
    """

    def __init__(
        self,
        name: str,
        stream: str,
        key: "str | None",
        attr: "str | None",
        on_at: "int | float",
        off_at: "int | float",
        hold_us: int,
    ) -> None:
        if on_at == off_at or hold_us < 0:
            raise ValueError(
                f"threshold {name}: found on_at {on_at}, off_at {off_at}, hold {hold_us} us, expected two thresholds"
            )
        self.name, self.stream = name, stream
        self._key, self._attr, self._on_at, self._off_at, self._hold_us = key, attr, on_at, off_at, hold_us
        self._value: bool | None = None
        self._crossed: Change | None = None  # bounds and new value of the first reading beyond the other threshold
        self._against_us: list[int | None] = [None, None]  # latest moment of the last reading against off, against on
        self._since_us = 0  # what came before may have been followed by a reading that was lost
        self._is_new = True  # nothing was lost since the start
        self.sure_us: int | None = None
        self.is_shared = False
        self.unusable = 0

    def start(self, now_us: int, since_us: int) -> None:
        """Begin: no reading was observed before now_us, and until since_us readings may have been lost."""
        self._since_us = since_us

    def wants(self, stream: str, key: "str | None") -> bool:
        """Return True if this reading counts."""
        return stream == self.stream and (self._key is None or key == self._key)

    def feed(self, earliest_us: int, latest_us: int, value: "Any", attrs: "dict[str, Any]") -> "list[Change]":
        """Take in a reading; returns the changes that it makes certain."""
        measured = value if self._attr is None else attrs.get(self._attr)
        if type(measured) is not int and type(measured) is not float:
            self.unusable += 1
            return []
        changes = self.advance(earliest_us)
        side = self._side(measured)
        for other in (False, True):
            if side is not other:
                over_us = self._against_us[other]
                self._against_us[other] = latest_us if over_us is None else max(over_us, latest_us)
                if self._crossed is not None and self._crossed[2] is other:
                    self._crossed = None
        # What a single reader tells after a loss comes after all that was lost.
        told_us = earliest_us if self.is_shared else latest_us
        if side is not None and side is not self._value and told_us >= self._since_us:
            self._beyond(earliest_us, latest_us, side)
        return changes

    def advance(self, clear_us: int) -> "list[Change]":
        """The change that is certain when every later reading happens at clear_us or after."""
        if self._crossed is None:
            return []
        earliest_us, latest_us, value = self._crossed
        if _least(clear_us, self.sure_us) <= latest_us + self._hold_us:
            return []
        self._crossed, self._value = None, value
        return [(earliest_us + self._hold_us, latest_us + self._hold_us, self._value)]

    def lost(self, from_us: int, since_us: int) -> "list[Change]":
        """Readings between from_us and since_us may be lost; returns the changes that are certain by then, and the one to
        unknown.
        """
        changes = self.advance(from_us)
        earliest_us = from_us if self._crossed is None else min(from_us, self._crossed[0] + self._hold_us)
        self._crossed, self._since_us, self._is_new = None, max(self._since_us, since_us), False
        if self._value is not None:
            self._value = None
            changes.append((earliest_us, from_us, None))
        return changes

    def earliest(self) -> "int | None":
        """Earliest moment of a change that may have happened already without another reading, at the latest sure_us if the
        value would be unknown from then on; None if there is none.
        """
        due_us = None if self._crossed is None else self._crossed[0] + self._hold_us
        if self._value is None or self.sure_us is None:
            return due_us
        return self.sure_us if due_us is None else min(due_us, self.sure_us)

    def _beyond(self, earliest_us: int, latest_us: int, side: bool) -> None:
        """Note a reading beyond the other threshold. The first that certainly follows all readings against it counts."""
        over_us = self._against_us[side]
        if over_us is not None and earliest_us <= over_us:
            return
        if self._crossed is None:
            self._crossed = earliest_us, latest_us, side
        else:
            self._crossed = self._crossed[0], min(self._crossed[1], latest_us), side

    def _side(self, measured: "int | float") -> "bool | None":
        """True for on, False for off, None for neither; a measure that is between the thresholds at the start is off."""
        high = self._on_at > self._off_at
        if measured >= self._on_at if high else measured <= self._on_at:
            return True
        begins = self._value is None and self._is_new
        if begins or (measured <= self._off_at if high else measured >= self._off_at):
            return False
        return None


def _least(clear_us: int, sure_us: "int | None") -> int:
    return clear_us if sure_us is None else min(clear_us, sure_us)
