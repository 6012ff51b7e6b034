"""The local state of a gateway: the values of all its conditions, and their changes in an order that is certain.

Readings of several readers arrive in another order than they happened, since readers are late by different times. They
are put in the order of their earliest moments, up to the moment to which all ports are clear. A change is emitted when
everything up to its latest moment is known.

    change of x    [------]                           separate: each begins a state
    change of y                 [-----]
    change of z                    [------]           y and z: their order is unknown

Changes whose intervals touch begin one state together, on the hull of their intervals, which contains the first and the
last of their moments. Between those moments the values that changed are unknown. So a state without these values is
emitted before it, on the same hull: no rule can find true there a value that may have been false.

What a reader did not scan for is unknown: while its port is closed, values of its stream that silence would change are left
out of the state.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_WAITING = 2000  # readings that wait for their order; beyond it the oldest is taken at once and counted
MAX_OPEN = 32  # groups of changes that wait to be certain; beyond it the newest two become one, with their hull
_LOST = object()  # the value of what is no reading: between its two moments reads may have been lost


class Detection:
    """Takes readings, returns beginnings of states: (earliest, latest, values by name). Conditions as in `conditions`.

    waiting: most readings that wait for their order.
    """

    def __init__(self, conditions: "list[Any]", waiting: int = MAX_WAITING) -> None:
        self._conditions, self._most = conditions, waiting
        self._waiting: list[tuple[int, int, Any, Any, Any]] = []  # in the order of earliest moments
        self._scans: list[tuple[Any, str, int, int | None]] = []  # port, stream, since_us, sure_us
        self._open: list[list[Any]] = []  # [earliest, latest, values by name, count of changes], disjoint, by time
        self.clear_us: int | None = None  # the newest moment of `advance`
        self.values: dict[str, bool] = {}
        self.hurried = 0
        self.late = 0  # readings that may have happened before an earlier clear_us
        self.unsure = 0  # states emitted without the values that changed

    def observe(
        self, stream: str, key: "str | None", value: "Any", attrs: "dict[str, Any]", earliest_us: int, latest_us: int
    ) -> None:
        """Take in a reading of this gateway, its stamp in host time."""
        if self.clear_us is not None and earliest_us < self.clear_us:
            self.late += 1
        for condition in self._conditions:
            if condition.wants(stream, key):
                self._insert(earliest_us, latest_us, condition, value, attrs)

    def scanned(self, port: "Any", stream: str, since_us: int, sure_us: "int | None" = None) -> None:
        """Note how long the reader at a port, which feeds this stream, has scanned without a pause: from since_us (if it
        does not scan: the moment to which its port is clear) to sure_us at least (None: to the moment that is clear). What
        it read before since_us may be lost.
        """
        if sure_us is not None:
            sure_us = max(sure_us, since_us)
        before = [scan for scan in self._scans if scan[0] == port]
        self._scans = [scan for scan in self._scans if scan[0] != port]
        self._scans.append((port, stream, since_us, sure_us))
        for condition in self._conditions:
            if condition.stream == stream:
                if self.clear_us is not None and before and since_us > before[0][2]:
                    self._lost(condition, before[0], since_us)
                condition.sure_us = self._sure(stream)
                condition.is_shared = len([scan for scan in self._scans if scan[1] == stream]) > 1

    def advance(self, clear_us: int) -> "list[tuple[int, int, dict[str, bool]]]":
        """The states that certainly began before clear_us; every later reading must happen at clear_us or after."""
        for condition in self._conditions:  # a read of one reader of a stream may follow one that another reader lost
            if condition.is_shared and condition.sure_us is not None:
                clear_us = min(clear_us, condition.sure_us)
        if self.clear_us is None:
            for condition in self._conditions:  # reads may have waited for the first moment that is clear
                moments = [read[0] for read in self._waiting if read[2] is condition]
                moments.append(clear_us)
                condition.start(min(moments), self._since(condition.stream, min(moments)))
        elif clear_us < self.clear_us:
            clear_us = self.clear_us
        self.clear_us = clear_us
        count = 0
        while count < len(self._waiting) and self._waiting[count][0] < clear_us:
            count += 1
        self._take(count)
        for condition in self._conditions:
            self._changed(condition, condition.advance(clear_us))
        return self._certain(clear_us)

    def sure_until(self) -> "int | None":
        """The moment up to which `values` certainly hold; None before the first advance."""
        sure_us = self.clear_us
        for earliest_us in self._undecided():
            if sure_us is not None and earliest_us < sure_us:
                sure_us = earliest_us
        if self._open and sure_us is not None:
            sure_us = min(sure_us, self._open[0][0])
        return sure_us

    def _sure(self, stream: str) -> "int | None":
        """The moment up to which all readers of a stream have scanned; None: to the moment that is clear."""
        least_us = None
        for _, one, _, sure_us in self._scans:
            if one == stream and sure_us is not None:
                least_us = sure_us if least_us is None else min(least_us, sure_us)
        return least_us

    def _since(self, stream: str, since_us: int) -> int:
        """The moment from which on all readers of a stream have scanned, or since_us if that is later."""
        for _, one, begun_us, _ in self._scans:
            if one == stream:
                since_us = max(since_us, begun_us)
        return since_us

    def _lost(self, condition: "Any", before: "tuple[Any, str, int, int | None]", since_us: int) -> None:
        """Reads may be lost from the end of a port's scan before until since_us; if it had not scanned, for longer now."""
        port, _, last_us, from_us = before
        if from_us == last_us:
            for at, (earliest_us, latest_us, one, value, place) in enumerate(self._waiting):
                if one is condition and value is _LOST and place == port and latest_us == last_us:
                    self._waiting[at] = earliest_us, since_us, one, value, place
                    return
        self._insert(last_us if from_us is None else from_us, since_us, condition, _LOST, port)

    def _insert(self, earliest_us: int, latest_us: int, condition: "Any", value: "Any", attrs: "Any") -> None:
        at = len(self._waiting)
        while at and self._waiting[at - 1][0] > earliest_us:
            at -= 1
        self._waiting.insert(at, (earliest_us, latest_us, condition, value, attrs))
        if len(self._waiting) > self._most:
            self.hurried += 1
            self._take(1)

    def _take(self, count: int) -> None:
        taken, self._waiting = self._waiting[:count], self._waiting[count:]
        for earliest_us, latest_us, condition, value, attrs in taken:
            if value is _LOST:
                self._changed(condition, condition.lost(earliest_us, latest_us))
            else:
                self._changed(condition, condition.feed(earliest_us, latest_us, value, attrs))

    def _changed(self, condition: "Any", changes: "list[tuple[int, int, bool | None]]") -> None:
        for earliest_us, latest_us, value in changes:
            before = [group for group in self._open if group[1] < earliest_us]
            after = [group for group in self._open if group[0] > latest_us]
            touched = self._open[len(before) : len(self._open) - len(after)]
            touched.append([earliest_us, latest_us, {condition.name: value}, 1])
            for group in touched[1:]:
                _unite(touched[0], group)
            before.append(touched[0])
            before.extend(after)
            self._open = before
            if len(self._open) > MAX_OPEN:
                _unite(self._open[-2], self._open.pop())

    def _certain(self, clear_us: int) -> "list[tuple[int, int, dict[str, bool]]]":
        """The states of the groups of changes that no later change can touch."""
        for earliest_us in self._undecided():
            clear_us = min(clear_us, earliest_us)
        begun = []
        while self._open and self._open[0][1] < clear_us:
            earliest_us, latest_us, values, count = self._open.pop(0)
            known = {name: self.values[name] for name in self.values if name not in values}
            values = {name: values[name] for name in values if values[name] is not None}
            if count > 1 and values:
                self.unsure += 1
                begun.append((earliest_us, latest_us, known))
            self.values = dict(known)
            self.values.update(values)
            begun.append((earliest_us, latest_us, self.values))
        return begun

    def _undecided(self) -> "list[int]":
        moments = [condition.earliest() for condition in self._conditions]
        return [earliest_us for earliest_us in moments if earliest_us is not None]


def _unite(group: "list[Any]", later: "list[Any]") -> None:
    """Merge a later group of changes into another one; each condition keeps the value that it changed to last."""
    group[0], group[1] = min(group[0], later[0]), max(group[1], later[1])
    group[2].update(later[2])
    group[3] += later[3]
