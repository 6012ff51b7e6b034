"""One gateway as a process of its group: readings, births and peers' states in; own states and clock heartbeats out.

A state message is merged when it arrives, begins no state, and counts for events that certainly happened after it
(`dense_clock`). A clock heartbeat reports that the own state was still on when a merged clock arrived. It is made as soon
as this is certain, which is when all ports are clear up to that moment. A new view begins when its members have not
changed for a while. Every member then begins at state 0 with its present values; states of a view that has not begun here
are held for it.

Pure: the driver passes in messages and moments of the host's clock, and turns reports into readings.
"""

from whenabouts_edge.group.dense_clock import DenseClock
from whenabouts_edge.group.membership import Membership, View
from whenabouts_edge.group.peers import PeerError, believed, decode_state

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from whenabouts_edge.group.detection import Detection
    from whenabouts_protocol.group_state import LocalState

SETTLE_US = 1_000_000  # a change of members waits for further changes: births come one by one at the start
MAX_HELD = 64  # messages of another view that are kept until the next view; the oldest is dropped
REASONS = ("malformed", "foreign", "impossible", "other_view", "old_boots", "cut_off")


class StateReport:
    """A state of this gateway, or a clock heartbeat when `is_heartbeat`; the stamp is in host time."""

    __slots__ = ("clock", "earliest_us", "is_heartbeat", "latest_us", "process", "values", "view")

    def __init__(
        self, view: View, clock: "tuple[int, ...]", earliest_us: int, latest_us: int, values: "dict[str, bool] | None"
    ) -> None:
        self.view, self.process, self.clock = view.number, view.own, clock
        self.earliest_us, self.latest_us = earliest_us, latest_us
        self.is_heartbeat = values is None
        self.values = values or {}


class GroupProcess:
    """The process of one gateway. clock_heartbeat_us: least time between clock heartbeats. held: most kept
    messages of another view.
    """

    def __init__(
        self,
        group: str,
        gateway: str,
        boot: int,
        peers: "list[str]",
        detection: "Detection",
        clock_heartbeat_us: int,
        held: int = MAX_HELD,
    ) -> None:
        self._group, self._gateway, self._clock_heartbeat_us, self._most = group, gateway, clock_heartbeat_us, held
        self._detection = detection
        self._membership = Membership(group, gateway, boot, peers)
        self._next = self._membership.view()
        self._settled_us: int | None = None  # when the next view may begin
        self._held: list[tuple[int, str, int, LocalState]] = []
        self._reported: tuple[int, ...] = ()
        self._reported_us = 0
        self.view: View | None = None
        self.clock = DenseClock(0, 1)
        self.views = 0
        self.merged = 0
        self.counters = dict.fromkeys(REASONS, 0)

    def born(self, gateway: str, boot: int, group: "str | None", now_us: int) -> None:
        """Take in a peer's birth."""
        self._learned(self._membership.born(gateway, boot, group), now_us)

    def removed(self, gateway: str, now_us: int) -> None:
        """Note that a peer's birth was removed from the broker."""
        self._learned(self._membership.removed(gateway), now_us)

    def stopped(self, gateway: str, boot: int, now_us: int) -> None:
        """Note that a peer's agent ended in order."""
        self._learned(self._membership.stopped(gateway, boot), now_us)

    def observe(
        self, stream: str, key: "str | None", value: "Any", attrs: "dict[str, Any]", earliest_us: int, latest_us: int
    ) -> "tuple[int, ...]":
        """Take in a reading of this gateway, its stamp in host time; returns its vector clock, () before the first view."""
        self._detection.observe(stream, key, value, attrs, earliest_us, latest_us)
        return () if self.view is None else self.clock.at(earliest_us)

    def receive(self, site: str, gateway: str, payload: bytes, now_us: int) -> "PeerError | None":
        """Take in a message on a peer's state topic; returns the error in it, or None."""
        try:
            boot, state = decode_state(payload, site, gateway)
            if state.group != self._group:
                raise PeerError("foreign", f"found a state of group {state.group}, expected {self._group}")
            if self.view is None or state.view != self.view.number:
                self._hold(now_us, gateway, boot, state)
            else:
                self._merge(now_us, gateway, boot, state)
        except PeerError as error:
            self.counters[error.reason] += 1
            return error
        return None

    def advance(self, clear_us: int, now_us: int) -> "list[StateReport]":
        """The reports that are certain when every later reading happens at or after clear_us. now_us: current host time."""
        reports = []
        begun = self._detection.advance(clear_us)
        clear_us = max(clear_us, self._detection.clear_us or clear_us)
        sure_us = self._detection.sure_until()
        sure_us = clear_us if sure_us is None else sure_us
        view = self.view
        if view is not None:
            for earliest_us, latest_us, values in begun:
                self._reported = self.clock.begin(earliest_us, latest_us)
                reports.append(StateReport(view, self._reported, earliest_us, latest_us, values))
        self.clock.settle(sure_us)
        if self._settled_us is None:
            self._settled_us = now_us + SETTLE_US
        changed = view is None or (self._next.number != view.number and self._reported)
        if changed and now_us >= self._settled_us:
            reports.append(self._begin_view(self._next, sure_us, clear_us))
        elif view is not None and now_us - self._reported_us >= self._clock_heartbeat_us:
            sure = self.clock.at(sure_us)
            if sure != self._reported and sure[view.own] == self.clock.number:
                self._reported, self._reported_us = sure, now_us
                reports.append(StateReport(view, sure, sure_us, clear_us, None))
        return reports

    @property
    def sure_us(self) -> "int | None":
        """The moment up to which the state certainly holds that was reported last; None before the first `advance`."""
        return self._detection.sure_until()

    def report_again(self) -> None:
        """Let the next clock heartbeat tell the own state, as the latest report was lost. No view begins before that."""
        self._reported = ()

    def _begin_view(self, view: View, sure_us: int, clear_us: int) -> StateReport:
        """State 0 of a new view, with the present values. It begins at the end of the time for which they are certain."""
        self.view, self.clock = view, DenseClock(view.own, len(view.members))
        self.views += 1
        self._reported = self.clock.state
        waiting, self._held = self._held, []
        for now_us, gateway, boot, state in waiting:
            if state.view != view.number:
                self._held.append((now_us, gateway, boot, state))
                continue
            try:
                self._merge(now_us, gateway, boot, state)
            except PeerError as error:
                self.counters[error.reason] += 1
        return StateReport(view, self._reported, sure_us, clear_us, self._detection.values)

    def _merge(self, now_us: int, gateway: str, boot: int, state: "LocalState") -> None:
        assert self.view is not None
        counts = believed(gateway, boot, state, self.view, self.clock)
        if counts != state.clock:
            self.counters["cut_off"] += 1
        if self.clock.received(now_us, counts):
            self.merged += 1

    def _hold(self, now_us: int, gateway: str, boot: int, state: "LocalState") -> None:
        """Keep a state of another view. If it is the next view, begin that without waiting for further members."""
        self.counters["other_view"] += 1
        self._held.append((now_us, gateway, boot, state))
        self._held = self._held[-self._most :]
        if state.view == self._next.number:
            self._settled_us = now_us

    def _learned(self, changed: bool, now_us: int) -> None:
        self.counters["old_boots"] = self._membership.old_boots
        if changed:
            self._next = self._membership.view()
            self._settled_us = now_us + SETTLE_US
