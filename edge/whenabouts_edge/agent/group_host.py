"""The agent's side of the group: subscriptions, and local states as pending readings that are published once stored.

A state is published to the peers only when the spool holds it, so a power cut never loses a state that others build on.
"""

from collections.abc import Callable, Sequence
from typing import Any

from whenabouts_edge.clock import ClockSample
from whenabouts_edge.config.settings import GroupConfig, ReaderConfig, StateConfig
from whenabouts_edge.group.conditions import Presence, Threshold
from whenabouts_edge.group.detection import Detection
from whenabouts_edge.group.process import GroupProcess, StateReport
from whenabouts_edge.readers.host_session import Batch, date
from whenabouts_edge.readers.pending import PendingReading
from whenabouts_edge.store.spool import BOOT_RANDOM_BITS
from whenabouts_protocol import WireError, parse_topic, topic
from whenabouts_protocol.group_state import KIND, attrs_of
from whenabouts_protocol.logs import Log
from whenabouts_protocol.messages.batch import encode_checked
from whenabouts_protocol.messages.birth_status import decode_birth, decode_status
from whenabouts_protocol.reading import NO_EVENT_KINDS

LEAVES = ("birth", "status", "state")

log = Log(__name__)


class GroupHost:
    """One gateway in its group. host_us returns the current time of the host's clock; clock_heartbeat_us is as in
    GroupProcess.
    """

    def __init__(
        self,
        config: GroupConfig,
        site: str,
        gateway: str,
        boot: int,
        clock_heartbeat_us: int,
        host_us: Callable[[], int],
    ) -> None:
        self.site, self.gateway, self.group, self.stream = site, gateway, config.name, config.stream
        self.single = config.states[0].name if len(config.states) == 1 else None
        self._sites = {name: peer_site for peer_site, name in config.peers}
        self._host_us = host_us
        self._detection = Detection([_condition(state) for state in config.states])
        self._first_view = boot >> BOOT_RANDOM_BITS << BOOT_RANDOM_BITS
        self._process = GroupProcess(config.name, gateway, boot, list(self._sites), self._detection, clock_heartbeat_us)
        self._complained: set[tuple[str, str]] = set()
        self._announced = 0
        self._latest: PendingReading | None = None
        self.peer_came = False  # a birth has come since this was last reset: that peer may have missed states
        self.refused = 0  # birth and status messages of peers that cannot be decoded

    @property
    def topics(self) -> list[str]:
        """The topics to subscribe to: three of each peer, sorted by name."""
        return [topic(site, gateway, leaf) for gateway, site in sorted(self._sites.items()) for leaf in LEAVES]

    @property
    def members(self) -> list[str]:
        """Names in the order of the clock; only this gateway before the first view."""
        view = self._process.view
        return [self.gateway] if view is None else [gateway for gateway, _ in view.members]

    def clear_until(self, clear_us: int) -> int:
        """A moment up to which all ports are clear, and before which no state begins that is not reported yet.

        A watermark says that the state before it still lasts.
        """
        sure_us = self._process.sure_us
        return clear_us if sure_us is None else min(clear_us, sure_us)

    @property
    def owes(self) -> bool:
        """True if its latest report was refused: until another one is stored, nothing shows that a state is missing."""
        return self._latest is not None and self._latest.lost

    @property
    def view(self) -> int:
        """A number that grows with each view, also over starts of the agent."""
        return self._first_view + self._process.views

    def heard(self, name: str, payload: bytes) -> None:
        """Handle a message on one of the topics."""
        place = parse_topic(name)
        if place is None or self._sites.get(place[1]) != place[0]:
            return
        site, gateway, leaf = place
        if leaf == "state":
            error = self._process.receive(site, gateway, payload, self._host_us())
            if error is not None and (gateway, error.reason) not in self._complained:
                self._complained.add((gateway, error.reason))
                log.warning(
                    "peer.disbelieved", str(error), group=self.group, peer=f"{site}/{gateway}", reason=error.reason
                )
            return
        try:
            self._learn(site, gateway, leaf, payload)
        except WireError as error:
            self.refused += 1
            if (gateway, leaf) not in self._complained:
                self._complained.add((gateway, leaf))
                log.warning("peer.refused", str(error), group=self.group, peer=f"{site}/{gateway}", leaf=leaf)

    def stamp(self, readings: Sequence[PendingReading]) -> None:
        """Pass these readings to the detection, and set the vector clock that each carries."""
        for one in readings:
            stream = "" if one.kind in NO_EVENT_KINDS else one.stream  # a gap is no read: no state may see it
            one.vclock = self._process.observe(stream, one.key, one.value, one.attrs, one.earliest_us, one.latest_us)
            one.view = self.view

    def scanned(self, reader: ReaderConfig, batch: Batch, reach_us: int) -> None:
        """Note how long this reader has scanned. reach_us: most that a frame can be stamped before the arrival of its first
        byte.
        """
        sure_us = min(batch.clear_us - reach_us, batch.looked_us)
        self._detection.scanned(reader.name, reader.stream, batch.since_us, sure_us)

    def advance(self, clear_us: int, sample: ClockSample) -> list[PendingReading]:
        """The states and clock heartbeats that are certain once all ports are clear up to clear_us."""
        if self.owes:
            self._process.report_again()
        states = [self._state(report, sample) for report in self._process.advance(clear_us, self._host_us())]
        self._latest = states[-1] if states else self._latest
        return states

    def _state(self, report: StateReport, sample: ClockSample) -> PendingReading:
        value = report.values.get(self.single) if self.single else None
        attrs = attrs_of(self.group, report.view, report.process, dict(report.values), report.is_heartbeat)
        one = PendingReading(self.stream, KIND, report.earliest_us, report.latest_us, value=value, attrs=attrs)
        one.vclock, one.publish = report.clock, not report.is_heartbeat
        date(one, self.site, self.gateway, sample)
        return one

    def view_changed(self) -> bool:
        """Return True if the view has changed since the last call."""
        before, self._announced = self._announced, self._process.views
        if before != self._announced:
            log.info("group.view", group=self.group, members=",".join(self.members))
        return before != self._announced

    def status(self) -> dict[str, Any]:
        """Fields of the status file."""
        process, view = self._process, self._process.view
        return {
            "name": self.group,
            "view": None if view is None else view.number,
            "members": [] if view is None else [gateway for gateway, _ in view.members],
            "absent": sorted(set(self._sites) - {gateway for gateway, _ in (view.members if view else [])}),
            "clock": list(process.clock.newest) if view else [],
            "state": process.clock.number if view else None,
            "values": self._detection.values,
            "views": process.views,
            "merged": process.merged,
            "hurried": self._detection.hurried,
            "late": self._detection.late,
            "unsure": self._detection.unsure,
            "refused": {**process.counters, "messages": self.refused},
        }

    def _learn(self, site: str, gateway: str, leaf: str, payload: bytes) -> None:
        now_us = self._host_us()
        if leaf == "birth" and not payload:
            self._process.removed(gateway, now_us)
        elif leaf == "birth":
            birth = decode_birth(payload)
            if (birth.site, birth.gateway) != (site, gateway):
                raise WireError(f"found a birth of {birth.site}/{birth.gateway}")
            self._process.born(gateway, birth.boot, birth.group, now_us)
            self.peer_came = True
        elif payload:
            status = decode_status(payload)
            if (status.site, status.gateway) == (site, gateway) and status.condition == "stopped":
                self._process.stopped(gateway, status.boot, now_us)


def to_publish(readings: Sequence[PendingReading]) -> list[bytes]:
    """The messages for the peers: one for each of these readings that is a state and has its number."""
    return [encode_checked([one.reading]) for one in readings if one.publish and one.reading is not None]


def _condition(state: StateConfig) -> Presence | Threshold:
    if state.on_at is None or state.off_at is None:
        return Presence(state.name, state.stream, state.key, state.reads, state.leave_ms * 1000)
    return Threshold(state.name, state.stream, state.key, state.attr, state.on_at, state.off_at, state.hold_ms * 1000)
