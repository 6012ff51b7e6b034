"""The dialogue with a reader that speaks LLRP: from its greeting to an inventory without end, and to an orderly close.

    greeting -> capabilities -> configuration -> old ROSpecs away -> ROSpec added, enabled, started -> reading
                                                                                                     | probe, answer, ...
    asked to end -> ROSpec stopped, connection closed -> ended

TCP keeps the order of messages but bounds no delay: a cable that is pulled for two seconds delivers reports two seconds
late. So the dialogue asks a short question again and again. What comes behind its answer was sent after the question:
`answered_us`, the moment of the newest answered question, bounds the age of every report from below, whatever the network
does. LLRP has no request for the reader's time: what its clock says of a tag is handed on, and is no bound.

Readers keep reports for a client that has vanished, and deliver them to the next one. Each connection has an ROSpec with a
number of its own, so these are told apart: `takes` refuses them, as nothing bounds their time.
"""

from whenabouts_hardware.dialogue import Dialogue
from whenabouts_hardware.network import llrp_messages as llrp
from whenabouts_hardware.network.llrp_status import status_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from whenabouts_hardware.frame import Frame

SETUP_US = 5_000_000  # longest wait for an answer before the inventory: some readers are slow to take an ROSpec
# The same while reports may come; then the connection is dead. Two such waits and a pause are the most that a report can be
# on its way unnoticed, and stay below the longest stamp that a birth message promises.
ANSWER_US = 2_000_000
# A reader that sends more than the gateway takes: after so long without an answer, while bytes wait for BUSY_US, its tags
# are only counted, which is several times as fast, until the answer comes or the wait has been LATEST_US long. After a
# stall of the network the bytes wait, too, but for a shorter time.
BEHIND_US, BUSY_US = 1_500_000, 200_000
LATEST_US = 2_500_000
PROBE_US = 200_000  # from an answer to the next question
PARTING_US = 700_000  # longest wait for the last answer
KEEPALIVE_MS = 5000  # a reader that hears no answer to them frees the connection of a vanished client

_GREETINGS = {
    1: "the reader itself has opened a connection to another client",
    2: "another client holds the reader; end that program, or wait until the reader misses it",
    3: "it gave no reason; look at the reader's own page",
}


class LlrpDialogue(Dialogue):
    """config: antennas, power_cdbm, rf_mode, session and population, each optional."""

    in_order = True

    def __init__(self, config: "dict[str, Any]") -> None:
        super().__init__()
        self._config = config
        self._antennas = tuple(config.get("antennas", ()))
        self._rospec = 0
        self._number = 0
        self._waiting: tuple[int, int, int] | None = None  # type, number and moment of the open question
        self._next_us = 0
        self._begun_us: int | None = None
        self._step = _GREETED
        self._parting_us: int | None = None
        self._away: set[int] = set()
        self._behind = False
        self._settings = b""

    @property
    def greeted(self) -> bool:
        """True once the reader has accepted the connection."""
        return self._step != _GREETED

    @property
    def ended(self) -> bool:
        """True once the reader has closed the connection as asked."""
        return self._step == _ENDED

    def due(self, now_us: int) -> bytes:
        if self._begun_us is None:
            self._begun_us = now_us
            self._rospec = now_us % 0x7FFF_FFFF + 1
        if self.fault or self._step == _ENDED:
            return b""
        if self._queue:
            return self._queue.pop(0)
        since_us = self._begun_us if self._step == _GREETED else None if self._waiting is None else self._waiting[2]
        if since_us is not None:
            most_us = LATEST_US if self._behind else ANSWER_US if self._step >= _REPORTING else SETUP_US
            if now_us - since_us > most_us:
                what = "its greeting" if self._waiting is None else "an answer to " + llrp.REQUESTS[self._waiting[0]]
                hint = "the reader sends more than this gateway takes" if self._behind else "check cable and reader"
                self.fault = f"found no answer for {most_us // 1000} ms, expected {what}; {hint}"
            return b""
        if self._step == _READING:
            return self._asked(llrp.GET_CONFIG, now_us) if now_us >= self._next_us else b""
        return self._asked(_STEPS[self._step], now_us)

    def heard(self, frame: "Frame", now_us: int) -> None:
        if frame.kind == "lost":
            self.fault = f"{frame.error}; is this an LLRP reader?"
        elif not frame.ok:
            return
        elif frame.kind == "keepalive":
            number: Any = frame.fields["number"]
            self._queue.append(llrp.message(llrp.KEEPALIVE_ACK, number))
        elif frame.kind == "event":
            self._noted(frame.fields, now_us)
        elif frame.kind == "answer":
            self._answered(frame.fields, now_us)

    def takes(self, frame: "Frame", place: int) -> bool:
        """False for a tag that the reader kept from an earlier connection."""
        tags: Any = frame.fields["tags"]
        unnamed = self._rospec if self._step == _READING else 0
        own: bool = tags[place].get("rospec", unnamed) == self._rospec
        return own

    def reader_us(self, frame: "Frame", place: int) -> "int | None":
        """The time of a sighting; none where a report sums several up."""
        tag: Any = frame.fields["tags"]
        found: int | None = tag[place].get("last_us") if tag[place]["count"] == 1 else None
        return found

    def falls_behind(self, empty_us: int, now_us: int) -> bool:
        """True from the moment when an answer is late and bytes wait, until it comes."""
        late_us = None if self._step != _READING or self._waiting is None else now_us - self._waiting[2]
        if late_us is not None and late_us > BEHIND_US and now_us - empty_us > BUSY_US:
            self._behind = True
        return self._behind

    def end(self, now_us: int) -> bool:
        """Ask the reader to stop and to close the connection; False once it has, or took too long."""
        if self.fault or self.ended or self._step == _GREETED:
            return False
        if self._parting_us is None:
            self._parting_us = now_us
            if self._step == _READING:
                self._number += 2
                self._queue.append(llrp.of_rospec(llrp.STOP_ROSPEC, self._number - 1, self._rospec))
                self._queue.append(llrp.of_rospec(llrp.DELETE_ROSPEC, self._number, self._rospec))
            self._number += 1
            self._queue.append(llrp.message(llrp.CLOSE, self._number))
            self._waiting = llrp.CLOSE, self._number, now_us
        return now_us - self._parting_us <= PARTING_US

    def _asked(self, kind: int, now_us: int) -> bytes:
        """The bytes of a question, which is open from now on."""
        self._number = number = self._number + 1
        self._waiting = kind, number, now_us
        if kind == llrp.GET_CAPABILITIES:
            return llrp.get_capabilities(number)
        if kind == llrp.GET_CONFIG:
            return llrp.probe(number)
        if kind == llrp.SET_CONFIG:
            return llrp.set_config(number, KEEPALIVE_MS)
        if kind == llrp.ADD_ROSPEC:
            return llrp.add_rospec(number, self._rospec, self._antennas, self._settings)
        return llrp.of_rospec(kind, number, 0 if kind == llrp.DELETE_ROSPEC else self._rospec)

    def _answered(self, fields: "dict[str, Any]", now_us: int) -> None:
        if self._waiting is None or fields["number"] != self._waiting[1]:
            return
        kind, _, asked_us = self._waiting
        if fields["type"] not in (llrp.ERROR, llrp.ANSWERS.get(kind, kind + llrp.ANSWER_OF_ROSPEC)):
            return
        self._waiting = None
        self.answered_us = asked_us
        if kind == llrp.CLOSE:
            self._step = _ENDED
        elif self._step == _READING:
            self._next_us = now_us + PROBE_US
            if self._behind:
                self._behind = False
                self._next_us = now_us
                self.complaint = "it sent more than this gateway takes, tags were left out"
                self._restart(now_us)
        elif fields.get("status") and kind != llrp.DELETE_ROSPEC:  # some refuse to delete where there is nothing
            self._refused(kind, fields)
        else:
            if kind == llrp.GET_CAPABILITIES:
                self._able(fields)
            elif kind == llrp.SET_CONFIG:
                self._number += 1  # another client may have asked the reader to hold reports back
                self._queue.append(llrp.message(llrp.ENABLE_REPORTS, self._number))
            self._step += 1
            if self._step == _READING:
                self.since_us = now_us
                self._next_us = now_us

    def _refused(self, kind: int, fields: "dict[str, Any]") -> None:
        said = ": " + fields["text"] if fields.get("text") else ""
        self.fault = f"the reader refused {llrp.REQUESTS[kind]}, found {status_text(fields['status'])}{said}"

    def _able(self, fields: "dict[str, Any]") -> None:
        """Compare the configuration with what the reader can do, and translate its power."""
        most = fields.get("antennas")
        beyond = [antenna for antenna in self._antennas if most is not None and antenna > most]
        if beyond:
            self.fault = f"antennas: found {beyond[0]}, expected 1 to {most}, as many as the reader has"
        power, wanted = None, self._config.get("power_cdbm")
        if wanted is not None:
            levels = sorted([(value, index) for index, value in fields.get("powers", ())])
            fitting = [level for level in levels if level[0] <= wanted]
            if fitting:
                power = fields.get("hop_table", 0), fitting[-1][1]
            else:
                least = levels[0][0] if levels else "none"
                self.fault = f"power_cdbm: found {wanted}, expected at least the reader's lowest level, {least}"
        given = [self._config.get(name) for name in ("rf_mode", "session", "population")]
        self._settings = llrp.antenna_settings(power, given[0], given[1], given[2])

    def _noted(self, fields: "dict[str, Any]", now_us: int) -> None:
        """Events: some end the connection, others the certainty that all tags are reported."""
        connection = fields.get("connection")
        if connection == 0 and self._step == _GREETED:
            self._step = _GREETED + 1
        elif connection in _GREETINGS:
            self.fault = "the reader refused the connection: " + _GREETINGS[connection]
        elif fields.get("closed") and self._parting_us is None:
            self.fault = "the reader closed the connection"
        elif fields.get("rospec") == (_END_OF_ROSPEC, self._rospec) and self._parting_us is None:
            self.fault = "the reader ended the inventory; does another program control it?"
        elif "exception" in fields:
            self.complaint = fields["exception"]
        elif fields.get("overflow"):
            self.complaint = "its buffer overflowed, reports are lost"
            self._restart(now_us)
        elif "antenna" in fields:
            self._antenna(fields["antenna"], now_us)

    def _antenna(self, event: "tuple[int, int]", now_us: int) -> None:
        """An antenna that the configuration names is away: the silence of its tags proves nothing until it is back."""
        connected, antenna = event
        self.complaint = "antenna {} {}".format(antenna, "connected" if connected else "disconnected")
        if antenna in self._antennas:
            if connected:
                self._away.discard(antenna)
            else:
                self._away.add(antenna)
        self._restart(now_us)

    def _restart(self, now_us: int) -> None:
        """Scanning without a gap begins now, or not before every antenna is back."""
        if self._step == _READING:
            self.since_us = None if self._away else now_us


_STEPS = (
    0, llrp.GET_CAPABILITIES, llrp.SET_CONFIG, llrp.DELETE_ROSPEC, llrp.ADD_ROSPEC, llrp.ENABLE_ROSPEC, llrp.START_ROSPEC,
)  # fmt: skip
_GREETED, _READING, _ENDED = 0, len(_STEPS), len(_STEPS) + 1
_REPORTING = _STEPS.index(llrp.ENABLE_ROSPEC)
_END_OF_ROSPEC = 1
