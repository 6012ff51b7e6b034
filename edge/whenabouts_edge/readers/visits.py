"""Visits of tags at one reader: a tag enters at its first read and leaves at an uncertain moment after its last one.

The operator must guarantee this assumption: a tag that is present is read at least once in every leave_us during which
the reader scans. Then a tag that was not read for that long has left, and both ends of a visit have an interval:

    reads      [--1--]   [--2--]        [--n--]
    entered    [-----]                                       the stamp of the first read
    left                                [--------------------]  from the last read to the moment its absence is certain
                                               |<- leave_us ->|

An unplugged or dead reader scans nothing: its silence proves nothing. So leave_us counts from the last read or from the
start of the uninterrupted scan, whichever is later, and only while the reader is known to scan. If stamps leave open
whether there was a pause, the visit continues.

A tag that is expected and was not read since the scan began is reported absent, once, with the interval of that scan.

Reads may come in any order as long as they are not earlier than the clear_us of `advance`; they are processed in the
order of their earliest moments. A change is reported as soon as it is certain, and its latest moment is never before a
moment that was already clear, so a watermark based on clear moments covers it.

Limits: `tags_max` tags are remembered. While that many are present, reads of others make no visit and are counted in
`untracked`; a visit that begins within leave_us of such reads may have begun with the first of them, and the last of them
may be later than its own reads, so its intervals include them. MAX_WAITING reads wait for their order; beyond that the
oldest are processed at once, counted in `hurried`. `late` counts reads before a clear moment.

Integer microseconds of the host's clock; the same on boards. Cost: one map lookup a read; all tags are visited when the
first may have left, at most once a leave_us for tags that stay.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

TAGS_MAX = 4096
MAX_WAITING = 2000

ENTER, LEAVE, ABSENT = "enter", "leave", "absent"


class Change:
    """One end of a visit, or the absence of an expected tag; its moment lies in [earliest_us, latest_us].

    visit: its number, from 0 (None for absent). reads: number of reads so far. stay_us: (least, most) time between
    enter and leave, None before the leave. mark: the caller's value for the read that caused the change.
    """

    __slots__ = ("earliest_us", "event", "key", "latest_us", "mark", "reads", "stay_us", "visit")

    def __init__(
        self,
        event: str,
        key: str,
        earliest_us: int,
        latest_us: int,
        visit: "int | None" = None,
        reads: int = 0,
        stay_us: "tuple[int, int] | None" = None,
        mark: "Any" = None,
    ) -> None:
        self.event, self.key, self.earliest_us, self.latest_us = event, key, earliest_us, latest_us
        self.visit, self.reads, self.stay_us, self.mark = visit, reads, stay_us, mark


class _Tag:
    """A tag that is present: bounds of its first and its last read."""

    __slots__ = ("first_us", "last_us", "mark", "reads", "visit")

    def __init__(self, visit: int, earliest_us: int, latest_us: int, mark: "Any") -> None:
        self.visit, self.reads, self.mark = visit, 1, mark
        self.first_us = self.last_us = (earliest_us, latest_us)


class Visits:
    """Reads in, changes out.

    Raises:
        ValueError: leave_us or tags_max below 1.
    """

    def __init__(self, leave_us: int, expected: "tuple[str, ...]" = (), tags_max: int = TAGS_MAX) -> None:
        if leave_us < 1 or tags_max < 1:
            raise ValueError(f"visits: found leave {leave_us} us, {tags_max} tags, expected 1 or more of both")
        self._leave_us, self._tags_max = leave_us, tags_max
        self._tags: dict[str, _Tag] = {}
        self._awaited = sorted(set(expected))
        self._waiting: list[tuple[int, int, str, Any]] = []  # in the order of their stamps
        self._clear_us: int | None = None  # the newest moment of `advance`
        self._since_us = 0  # start of the uninterrupted scan
        self._due_us: int | None = None  # no tag can have left earlier
        self._ignored: tuple[int, int] | None = None  # earliest and latest moment of untracked reads without a pause
        self._visits = 0
        self.untracked = 0
        self.hurried = 0
        self.late = 0

    @property
    def present(self) -> int:
        """Number of tags that are present, as far as is known."""
        return len(self._tags)

    def read(self, key: str, earliest_us: int, latest_us: int, mark: "Any" = None) -> None:
        """Add a read; `advance` processes it in its order."""
        if self._clear_us is not None and earliest_us < self._clear_us:
            self.late += 1
        at = len(self._waiting)
        while at and self._waiting[at - 1][:2] > (earliest_us, latest_us):
            at -= 1
        self._waiting.insert(at, (earliest_us, latest_us, key, mark))

    def advance(self, clear_us: int, since_us: int, looked_us: int) -> "list[Change]":
        """The changes that are certain by now.

        clear_us: no later read happens before it. since_us: start of the current uninterrupted scan (now, if not
        scanning). looked_us: latest time the reader is known to have scanned.
        """
        before_us = self._clear_us
        if before_us is None:
            self._since_us = since_us
        self._since_us = max(self._since_us, since_us)
        count = 0
        while count < len(self._waiting) and self._waiting[count][0] < clear_us:
            count += 1
        if len(self._waiting) - count > MAX_WAITING:
            self.hurried += len(self._waiting) - count - MAX_WAITING
            count = len(self._waiting) - MAX_WAITING
        changes = self._take(count)
        sure_us = min(clear_us, looked_us)
        if self._due_us is not None and sure_us > max(self._due_us, self._since_us + self._leave_us):
            changes += self._left(sure_us)
        if self._awaited and sure_us > self._since_us + self._leave_us:
            changes += [self._change(ABSENT, key, self._since_us, self._since_us) for key in self._awaited]
            self._awaited = []
        self._clear_us = clear_us if before_us is None else max(before_us, clear_us)
        return changes

    def finish(self) -> "list[Change]":
        """Process the waiting reads at the end of input. Tags that are present have not left."""
        return self._take(len(self._waiting))

    def _take(self, count: int) -> "list[Change]":
        changes: list[Change] = []
        taken, self._waiting = self._waiting[:count], self._waiting[count:]
        for earliest_us, latest_us, key, mark in taken:
            tag = self._tags.get(key)
            if tag is not None and earliest_us > self._over_us(tag):
                changes += self._left(earliest_us)
                tag = None
            if tag is not None:
                tag.reads += 1
                if earliest_us > tag.last_us[0]:
                    tag.mark = mark
                tag.last_us = max(tag.last_us[0], earliest_us), max(tag.last_us[1], latest_us)
            elif len(self._tags) < self._tags_max:
                changes.append(self._entered(key, earliest_us, latest_us, mark))
            else:
                self._ignore(key, earliest_us, latest_us)
        return changes

    def _entered(self, key: str, earliest_us: int, latest_us: int, mark: "Any") -> Change:
        if self._after_ignored(earliest_us):
            self._ignored = None
        last_us = latest_us
        if self._ignored is not None:  # one of those reads may have been its first, or its last so far
            earliest_us, last_us = min(earliest_us, self._ignored[0]), max(latest_us, self._ignored[1])
        tag = self._tags[key] = _Tag(self._visits, earliest_us, latest_us, mark)
        tag.last_us = earliest_us, last_us
        self._visits += 1
        over_us = self._over_us(tag)
        self._due_us = over_us if self._due_us is None else min(self._due_us, over_us)
        if key in self._awaited:
            self._awaited.remove(key)
        return Change(ENTER, key, earliest_us, latest_us, tag.visit, 1, None, mark)

    def _ignore(self, key: str, earliest_us: int, latest_us: int) -> None:
        self.untracked += 1
        if key in self._awaited:
            self._awaited.remove(key)
        if self._ignored is None or self._after_ignored(earliest_us):
            self._ignored = earliest_us, latest_us
        else:
            self._ignored = self._ignored[0], max(self._ignored[1], latest_us)

    def _after_ignored(self, earliest_us: int) -> bool:
        """True if all tags of untracked reads had certainly left before this moment."""
        return self._ignored is not None and earliest_us > max(self._ignored[1], self._since_us) + self._leave_us

    def _over_us(self, tag: _Tag) -> int:
        """The time by which the tag has left unless it is read again."""
        return max(tag.last_us[1], self._since_us) + self._leave_us

    def _left(self, sure_us: int) -> "list[Change]":
        """Leaves of the tags without a read for long enough before this moment, in the order of their last reads."""
        gone, due_us = [], None
        for key in sorted(self._tags):
            tag = self._tags[key]
            over_us = self._over_us(tag)
            if over_us < sure_us:
                gone.append((tag.last_us[0], key))
            elif due_us is None or over_us < due_us:
                due_us = over_us
        self._due_us = due_us
        changes = []
        for _, key in sorted(gone):
            tag = self._tags.pop(key)
            change = self._change(LEAVE, key, tag.last_us[0], tag.last_us[1])
            change.visit, change.reads, change.mark = tag.visit, tag.reads, tag.mark
            change.stay_us = max(0, tag.last_us[0] - tag.first_us[1]), change.latest_us - tag.first_us[0]
            changes.append(change)
        return changes

    def _change(self, event: str, key: str, earliest_us: int, read_us: int) -> Change:
        """A change proved by silence: its latest moment is when it became certain, but not before a moment already
        clear.
        """
        latest_us = max(read_us, self._since_us) + self._leave_us
        if self._clear_us is not None:
            latest_us = max(latest_us, self._clear_us)
        return Change(event, key, earliest_us, latest_us)
