"""One reader on one port: bytes in, drafts of readings out.

`Link` is the core: it takes chunks and gives readings that lack only their number. `run_link` is its driver, a thread that
opens the port, starts the reader, reads, and after a fault opens again with growing pauses. One dead reader stops nothing.
"""

import logging
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from whenabouts_edge.clock import ClockSample
from whenabouts_edge.port import Chunk, Port, PortError, device_of, open_port
from whenabouts_edge.settings import ReaderConfig
from whenabouts_edge.stamp import Stamper, after_question, host_us_max, wire_us
from whenabouts_hardware import Decoder, Frame
from whenabouts_hardware.dialogue import Dialogue, Start
from whenabouts_hardware.m6e_frames import set_read_power, set_region
from whenabouts_hardware.observed import observed
from whenabouts_hardware.readers import GAP_US, READERS, is_anchor, sightings
from whenabouts_protocol import Interval, Reading

REOPEN_S_MIN, REOPEN_S_MAX = 0.5, 30.0  # pauses between attempts to open a port, doubled and jittered
CLEAR_EVERY_NS = 100_000_000  # how often a silent port tells that it is silent
# Tags that a reader kept in its buffer until it was asked are as old as the search that found them, which no frame tells:
# a timed search lasts about a second by convention, and fetching follows it.
BUFFERED_US = 2_000_000
CLOSED_CLEAR_NS = 500_000_000  # the same while the port is closed
STEADY_NS = 10_000_000_000  # a port that was open for so long begins with the shortest pause when it is lost
MOVED_EVERY_NS = 1_000_000_000  # how often is looked whether the path of an open port leads to another device now

log = logging.getLogger("whenabouts.edge")


@dataclass(slots=True)
class LinkState:
    """Health of one reader, for status and beat."""

    state: str = "opening"  # opening, reading, lost, finished (a replay at its end)
    problem: str = ""
    device: str = ""  # what the port's path led to when it was opened last
    opened: int = 0
    failed: int = 0  # attempts to open it, and losses, in a row
    opened_ns: int = 0  # monotonic, just before: nothing was read earlier; of a replay the moment it plays from
    readings: int = 0
    restarts: int = 0
    counters: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Kept:
    """Where a reading that waits for the clock is kept on disk: its row leaves with the commit that stores the reading.

    Of a reading from before the machine was started again: last_us, the last moment known of that time, and since_us, UTC
    which had surely come before that time began, if it is known; both None for the running time.
    """

    row: int
    leaving: list[int]
    last_us: int | None = None
    since_us: int | None = None

    def leaves(self) -> None:
        """Its reading gets its number now."""
        self.leaving.append(self.row)


@dataclass(slots=True)
class Observed:
    """A reading of a port that waits for its number: a draft, called with boot and seq.

    window_us: its stamp in host time, by which the group dates it; vclock is the group's to set.
    """

    site: str
    gateway: str
    stream: str
    key: str | None
    attrs: dict[str, int | float | str | bool]
    stamp: Interval
    clock_state: str
    window_us: tuple[int, int]
    vclock: tuple[int, ...] = (0,)  # of a gateway in no group: one process, in its initial state
    kind: str = "tag"
    value: int | float | str | bool | None = None
    unit: str | None = None
    kept: Kept | None = None

    def __call__(self, boot: int, seq: int) -> Reading:
        if boot and self.kept is not None:  # boot 0, which no spool has, is a look at a reading
            self.kept.leaves()
        return Reading(
            site=self.site,
            gateway=self.gateway,
            boot=boot,
            seq=seq,
            stream=self.stream,
            kind=self.kind,
            key=self.key,
            value=self.value,
            unit=self.unit,
            attrs=self.attrs,
            t_min=self.stamp.t_min,
            t_max=self.stamp.t_max,
            clock_state=self.clock_state,
            vclock=self.vclock,
        )


@dataclass(frozen=True, slots=True)
class Batch:
    """What one look at the port gave: readings without numbers, and the host time up to which the port is known.

    since_us: since then the reader has looked for tags without a break; while it does not, the present. looked_us: by then
    it surely did: of a reader that speaks although it sees nothing the last time that it spoke, of another clear_us.
    """

    drafts: list[Observed]
    clear_us: int
    since_us: int
    looked_us: int


class Link:
    """Decodes and stamps the bytes of one opened port; opened_us: the reader has looked for tags since then."""

    def __init__(
        self, reader: ReaderConfig, site: str, gateway: str, host_us: Callable[[int], int], opened_us: int = 0
    ) -> None:
        self.reader = reader
        self.since_us = self._heard_us = opened_us
        self._speaks_us = None if reader.listen_only else READERS[reader.kind].speaks_us
        self._site, self._gateway, self._host_us = site, gateway, host_us
        self.dialogue = _dialogue(reader)
        self._decoder = _decoder(reader)
        cycle_us = READERS[reader.kind].cycle_us
        self._stamper = Stamper(reader.baud, reader.latency_us, reader.adapter_us, cycle_us)
        self._fed = 0
        self._last_byte_us: int | None = None
        self.complaint = ""  # what the reader last refused or complained of
        self._unfit = 0

    @property
    def counters(self) -> dict[str, int]:
        """Frames, damage by reason, reader times that were not believed, and what was seen and makes no reading."""
        return {
            **self._decoder.counters,
            "reader_time_refused": self._stamper.reader_time_refused,
            "unfit": self._unfit,
        }

    def take(self, chunk: Chunk, clock: ClockSample) -> tuple[list[Observed], bool]:
        """The readings that this chunk completes, and whether a good frame came."""
        after_us, before_us = self._host_us(chunk.after_ns), self._host_us(chunk.before_ns) + 1
        self._stamper.arrived(len(chunk.data), after_us, before_us)
        self._fed += len(chunk.data)
        self._last_byte_us = before_us
        return self._readings(self._decoder.feed(chunk.data), before_us, clock)

    def silent(self, empty_us: int, clock: ClockSample) -> tuple[list[Observed], bool]:
        """The same when nothing had come by empty_us: after a long enough silence half a frame is given up."""
        if self._last_byte_us is None or empty_us - self._last_byte_us < GAP_US:
            return [], False
        self._last_byte_us = None
        return self._readings(self._decoder.flush(), empty_us, clock)

    def clear_us(self, empty_us: int) -> int:
        """No later frame can have begun to arrive before this host time."""
        pending_since = self._stamper.pending_since()
        return empty_us if pending_since is None else min(empty_us, pending_since)

    def looked_us(self, clear_us: int) -> int:
        """By this moment, or by clear_us if its silence means nothing, the reader has surely looked for tags."""
        return clear_us if self._speaks_us is None else self._heard_us

    def _spoke(self, heard_us: int) -> None:
        """A good frame: between it and the one before, the reader was there unless that took too long."""
        if self._speaks_us is not None and heard_us - self._heard_us > self._speaks_us:
            self.since_us = max(self.since_us, heard_us)
        self._heard_us = heard_us

    def _readings(self, frames: list[Frame], heard_us: int, clock: ClockSample) -> tuple[list[Observed], bool]:
        drafts: list[Observed] = []
        good = False
        for frame in frames:
            asked_us = self.dialogue.asked_us
            self.dialogue.heard(frame, heard_us)
            if not frame.ok:
                continue
            if frame.kind == "status":  # the reader refuses or complains: it speaks, but it does not read
                self.complaint = str(frame.fields.get("text", "status of an unknown kind"))
                continue
            good = True
            self._spoke(heard_us)
            if is_anchor(frame):
                self._stamper.cycle_started(frame.start, frame.end)
            seen = self._measured(frame, clock) if self.reader.line else self._seen(frame, asked_us, clock)
            drafts += [one for one in seen if self._fits(one)]
        self._stamper.forget(self._fed - len(self._decoder.pending))
        return drafts, good

    def _fits(self, one: Observed) -> bool:
        """Whether it makes a reading: a good frame may hold a number, a text or a time that no reading can."""
        try:
            one(0, 0)
        except ValueError as error:
            if not self._unfit:
                log.warning("reader %s: left out, as all that will be counted as unfit: %s", self.reader.name, error)
            self._unfit += 1
            self.complaint = str(error)
            return False
        return True

    def _seen(self, frame: Frame, asked_us: int | None, clock: ClockSample) -> list[Observed]:
        """The tags that a frame reports."""
        drafts = []
        for sighting in sightings(self.reader.kind, frame):
            window = after_question(self._stamper.window(frame.start, frame.end), asked_us)
            if frame.kind == "tags" and self.reader.kind == "m6e":  # counted from a search that no keep-alive announced
                window = (window[0] - BUFFERED_US, window[1])
            elif sighting.ts_ms is not None and sighting.read_count == 1:
                window = self._stamper.narrowed(window, sighting.ts_ms)
            drafts.append(self._observed(sighting.key, dict(sighting.attrs), window, clock))
        return drafts

    def _measured(self, frame: Frame, clock: ClockSample) -> list[Observed]:
        """What a line of a sensor observed."""
        line = self.reader.line
        assert line is not None
        found = observed(frame, line.key_field, line.value_field)
        if found is None:
            self.complaint = f"a line without {line.value_field or line.key_field}"
            return []
        attrs = {name: value for name, value in found.attrs.items() if isinstance(value, int | float | str)}
        window = self._stamper.window(frame.start, frame.end)
        return [
            replace(self._observed(found.key, attrs, window, clock), kind="measure", value=found.value, unit=line.unit)
        ]

    def _observed(
        self, key: str | None, attrs: dict[str, int | float | str | bool], window: tuple[int, int], clock: ClockSample
    ) -> Observed:
        stamp = clock.to_utc(*window)
        return Observed(self._site, self._gateway, self.reader.stream, key, attrs, stamp, clock.state, window)


def _decoder(reader: ReaderConfig) -> Decoder:
    facts = READERS[reader.kind]
    if reader.line is None:
        return facts.new_decoder()
    return facts.new_decoder(form=reader.line.form, columns=reader.line.columns)


def _dialogue(reader: ReaderConfig) -> Dialogue:
    """What drives the reader: nothing when another program does."""
    if reader.listen_only:
        return Start((), None)
    return READERS[reader.kind].dialogue(_start_commands(reader))


class LinkThread(threading.Thread):
    """Keeps one port open and read; hands over what it gives, in order, through `deliver`.

    deliver(batch) blocks while the agent cannot take more: then the port is not read, and what the kernel cannot hold is
    lost where it would be anyway. clock() gives the newest sample.
    """

    def __init__(
        self,
        reader: ReaderConfig,
        site: str,
        gateway: str,
        host_us: Callable[[int], int],
        clock: Callable[[], ClockSample],
        deliver: Callable[[Batch], None],
    ) -> None:
        super().__init__(name=f"reader-{reader.name}", daemon=True)
        self.reader = reader
        self.link_state = LinkState()
        self._place = site, gateway
        self._host_us, self._clock, self._deliver = host_us, clock, deliver
        self._frame_bytes_max = _decoder(reader).FRAME_BYTES_MAX
        self._stopping = threading.Event()

    def stop(self) -> None:
        """Ask the thread to end; it does within a poll period."""
        self._stopping.set()

    def reach_us(self) -> int:
        """How much earlier than its first byte's arrival the event of a frame can be stamped at most."""
        reader = self.reader
        buffered_us = BUFFERED_US if reader.listen_only else 0  # the agent itself never starts a timed search
        on_wire_us = wire_us(self._frame_bytes_max, reader.baud)
        return buffered_us + host_us_max(reader.latency_us + reader.adapter_us + on_wire_us + 2)

    def run(self) -> None:
        pause_s = REOPEN_S_MIN
        while not self._stopping.is_set():
            opening_ns = time.monotonic_ns()
            device = device_of(self.reader.port)
            try:
                with open_port(self.reader.port, self.reader.baud or READERS[self.reader.kind].baud) as port:
                    self._say("reading", "")
                    self.link_state.opened += 1
                    self.link_state.device = device[1] if device else self.reader.port
                    self.link_state.opened_ns = port.replay_start_ns or opening_ns
                    self._read(port, device)
                    return
            except PortError as error:
                self._say("lost", str(error))
            except Exception as error:  # a fault of ours with one port's bytes must not silence the reader for good
                log.exception(
                    "reader %s: fault in the agent, opening the port again; please report this", self.reader.name
                )
                self._say("lost", f"fault in the agent: {error!r}")
            if time.monotonic_ns() - opening_ns > STEADY_NS:
                pause_s = REOPEN_S_MIN
            self.link_state.failed += 1
            came = self._pause(pause_s * random.uniform(0.5, 1.0), device)
            pause_s = REOPEN_S_MIN if came else min(REOPEN_S_MAX, pause_s * 2)

    def _pause(self, pause_s: float, device: tuple[int, str] | None) -> bool:
        """Wait with the port closed, and go on telling that nothing comes: a dead reader must not hold the promise back.

        Ends before its time, with True, when the path leads to another device than the one that failed: one was plugged in.
        """
        until_ns = time.monotonic_ns() + int(pause_s * 1e9)
        while not self._stopping.is_set() and (now_ns := time.monotonic_ns()) < until_ns:
            now = device_of(self.reader.port)
            if now is not None and (device is None or now[0] != device[0]):
                return True
            device = now
            now_us = self._host_us(now_ns)
            self._deliver(Batch([], now_us, now_us, now_us))
            self._stopping.wait(min(CLOSED_CLEAR_NS, until_ns - now_ns) / 1e9)
        return False

    def _check_moved(self, device: tuple[int, str] | None) -> None:
        """A device that came back under another name may leave the old one open and silent for ever."""
        now = device_of(self.reader.port)
        if device is not None and now is not None and now != device:
            raise PortError(
                f"port {self.reader.port}: leads to {now[0]} now, was opened as {device[0]}; opening it again"
            )

    def _read(self, port: Port, device: tuple[int, str] | None) -> None:
        begun_ns = time.monotonic_ns() if port.replay_start_ns is None else port.replay_start_ns
        link = Link(self.reader, *self._place, self._host_us, self._host_us(begun_ns))
        restarts = self.link_state.restarts
        told_ns, opened_ns = 0, time.monotonic_ns()
        moved_ns = opened_ns
        while not self._stopping.is_set():
            if (now_ns := time.monotonic_ns()) - moved_ns >= MOVED_EVERY_NS:
                moved_ns = now_ns
                self._check_moved(device)
                if now_ns - opened_ns > STEADY_NS:
                    self.link_state.failed = 0
            while command := link.dialogue.due(self._host_us(time.monotonic_ns())):
                port.write(command)
            chunk = port.read()
            now_ns = time.monotonic_ns()
            empty_us = self._host_us(port.empty_ns)
            if chunk is None:
                drafts, good = link.silent(empty_us, self._clock())
            else:
                drafts, good = link.take(chunk, self._clock())
            if good and self.link_state.problem and self.link_state.state == "reading":
                self._say("reading", "")
            if restarts + link.dialogue.restarts > self.link_state.restarts:
                self.link_state.restarts = restarts + link.dialogue.restarts
                link.since_us = max(link.since_us, self._host_us(now_ns))
                self._say("reading", f"started again, it sent nothing good; it says: {link.complaint or 'nothing'}")
            if drafts or now_ns - told_ns >= CLEAR_EVERY_NS:
                told_ns = now_ns
                self.link_state.readings += len(drafts)
                self.link_state.counters = link.counters
                clear_us = link.clear_us(empty_us)
                self._deliver(Batch(drafts, clear_us, link.since_us, link.looked_us(clear_us)))
            if port.replay_finished and chunk is None and self.link_state.state == "reading":
                self._say("finished", "the replay is at its end")

    def _say(self, state: str, problem: str) -> None:
        if (state, problem) != (self.link_state.state, self.link_state.problem):
            level = logging.WARNING if state == "lost" or (problem and state == "reading") else logging.INFO
            log.log(level, "reader %s: %s%s", self.reader.name, state, f": {problem}" if problem else "")
        self.link_state.state, self.link_state.problem = state, problem


def _start_commands(reader: ReaderConfig) -> tuple[bytes, ...]:
    """What starts a reader: its region and power, where configured, before the commands of its kind."""
    settings = []
    if reader.region is not None:
        settings.append(set_region(reader.region))
    if reader.read_power_cdbm is not None:
        settings.append(set_read_power(reader.read_power_cdbm))
    start = READERS[reader.kind].start
    return start[:1] + tuple(settings) + start[1:]
