"""A board as a process of its group: its subscriptions, the clock of each reading, and states as pending readings.

The same process as on a PC, with limits for a board's memory. A state is published to the peers only when the flash log
holds it, so a power cut never loses a state that others build on. Loaded only when configured.
"""

from whenabouts_edge.group.conditions import Presence, Threshold
from whenabouts_edge.group.detection import Detection
from whenabouts_edge.group.process import GroupProcess
from whenabouts_edge.readers.pending import PendingReading
from whenabouts_protocol.errors import WireError
from whenabouts_protocol.group_state import KIND, attrs_of
from whenabouts_protocol.topics import parse_topic, topic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from whenabouts_edge.readers.session import ReaderSession

LEAVES = ("birth", "status", "state")
WAITING_MAX = 64  # readings that wait for their order
HELD_MAX = 8  # states of another view, held until it begins


class BoardGroup:
    """One board in its group. config: table `group`. peer_came: a birth came since this was reset. refused: bad messages."""

    def __init__(self, config: "dict[str, Any]", site: str, gateway: str, boot: int, clock_heartbeat_us: int) -> None:
        self.name: str = config["name"]
        self.stream: str = config.get("stream", gateway + "/state")
        self._gateway = gateway
        self._sites: dict[str, str] = {}
        for member in config["members"]:
            peer_site, peer = member.split("/")
            if peer != gateway:
                self._sites[peer] = peer_site
        states = config["states"]
        self._single = states[0]["name"] if len(states) == 1 else None
        self._detection = Detection([_condition(state) for state in states], WAITING_MAX)
        self._process = GroupProcess(
            self.name, gateway, boot, sorted(self._sites), self._detection, clock_heartbeat_us, HELD_MAX
        )
        self._announced = 0
        self._latest: PendingReading | None = None
        self.peer_came = False
        self.refused = 0

    @property
    def topics(self) -> "list[str]":
        """The topics to subscribe to: three of each peer, sorted by name."""
        return [topic(self._sites[gateway], gateway, leaf) for gateway in sorted(self._sites) for leaf in LEAVES]

    @property
    def members(self) -> "list[str]":
        """Names in the order of the clock; only this gateway before the first view."""
        view = self._process.view
        return [self._gateway] if view is None else [gateway for gateway, _ in view.members]

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
    def counters(self) -> "dict[str, int]":
        """Messages not believed, by reason."""
        return self._process.counters

    def heard(self, name: str, payload: bytes, now_us: int) -> None:
        """Handle a message on one of the topics."""
        place = parse_topic(name)
        if place is None or self._sites.get(place[1]) != place[0]:
            return
        site, gateway, leaf = place
        try:
            if leaf == "state":
                self._process.receive(site, gateway, payload, now_us)
            elif leaf == "birth":
                self._born(site, gateway, payload, now_us)
            elif payload:
                self._heard_status(site, gateway, payload, now_us)
        except WireError:
            self.refused += 1

    def stamp(self, pending_readings: "list[PendingReading]") -> None:
        """Pass these readings to the detection, and set the vector clock that each carries."""
        for d in pending_readings:
            d.vclock = self._process.observe(d.stream, d.key, d.value, d.attrs, d.earliest_us, d.latest_us)
            d.view = self._process.views

    def advance(self, clear_us: int, now_us: int, readers: "list[ReaderSession]") -> "list[PendingReading]":
        """The states and clock heartbeats that are certain once all ports are clear up to clear_us. readers: all; their
        ports are open from the first call on.
        """
        if self._detection.clear_us is None:
            for port, reader in enumerate(readers):
                self._detection.scanned(port, reader.stream, reader.opened_us)
        if self.owes:
            self._process.report_again()
        pending_readings = []
        for report in self._process.advance(clear_us, now_us):
            value = report.values.get(self._single) if self._single else None
            attrs = attrs_of(self.name, report.view, report.process, dict(report.values), report.is_heartbeat)
            pending = PendingReading(self.stream, KIND, report.earliest_us, report.latest_us, None, value, None, attrs)
            pending.vclock, pending.publish = report.clock, not report.is_heartbeat
            pending_readings.append(pending)
            self._latest = pending
        return pending_readings

    def view_changed(self) -> bool:
        """Return True if the view has changed since the last call."""
        before, self._announced = self._announced, self._process.views
        return before != self._announced

    def _born(self, site: str, gateway: str, payload: bytes, now_us: int) -> None:
        if not payload:
            self._process.removed(gateway, now_us)
            return
        from whenabouts_protocol.messages.birth_status import decode_birth  # seldom needed

        birth = decode_birth(payload)
        if (birth.site, birth.gateway) != (site, gateway):
            raise WireError(f"found a birth of {birth.site}/{birth.gateway}")
        self._process.born(gateway, birth.boot, birth.group, now_us)
        self.peer_came = True

    def _heard_status(self, site: str, gateway: str, payload: bytes, now_us: int) -> None:
        from whenabouts_protocol.messages.birth_status import decode_status

        status = decode_status(payload)
        if (status.site, status.gateway) == (site, gateway) and status.condition == "stopped":
            self._process.stopped(gateway, status.boot, now_us)


def _condition(state: "dict[str, Any]") -> "Presence | Threshold":
    name, stream, key = state["name"], state["stream"], state.get("key")
    if "on_at" in state:
        hold_us = 1000 * state.get("hold_ms", 0)
        return Threshold(name, stream, key, state.get("attr"), state["on_at"], state["off_at"], hold_us)
    return Presence(name, stream, key, state.get("reads", 1), 1000 * state.get("leave_ms", 5000))
