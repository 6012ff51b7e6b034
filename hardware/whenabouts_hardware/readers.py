"""What an agent must know about each reader: line speed, decoder, how to drive it, and what its frames say about time.

`latency_us` bounds the time from a sighting on air to the first byte of its frame; a stamp is widened downwards by it.
It is the least certain number here, so each record says where it comes from. A Mercury reader's own timestamp narrows
the stamp: milliseconds into the search cycle, and `is_anchor` names the frame that starts one.
"""

from collections import namedtuple

from whenabouts_hardware.dialogue import Dialogue, Poll, Question, Start
from whenabouts_hardware.frame import Frame

KINDS = ("rdm6300", "id12la", "m6e", "pn532", "uhfreader18", "yrm100", "line")
# A line silent for this long will not finish the frame it began: time to call `Decoder.flush`. Chosen, not measured:
# nine times the longest frame (255 bytes at 115200 Bd, 22 ms) leaves room for USB latency and ends before the next
# keep-alive.
GAP_US = 200_000
PN532_WAIT_US = 250_000  # chosen: how long one question waits for a card; a stamp is up to twice as wide
PN532_PAUSE_US = 20_000  # chosen
UHF18_SCAN_US = 1_075_000
UHF18_GAP_US = 15_000  # between frames, and after two that met on the line (manual 2.0)
# Tags of one inventory leave one by one behind its scan: 3.5 ms for each of the largest number seen at once, assumed 64.
UHF18_LATENCY_US = UHF18_SCAN_US + 225_000
# Every round without a tag is answered; three seconds without an answer mean that the rounds are over or the reader is off.
YRM100_SILENCE_US = 3_000_000
LINE_LATENCY_US = 1_000_000
FIELD_SCAN_US = 100_000  # assumed: sources say tens of milliseconds, none measured it

# One tag seen by a reader. key: EPC or card in upper-case hex. attrs: integers by name. ts_ms: milliseconds into the
# reader's search cycle, or None. read_count: sightings that this one stands for; with more than one it is unknown
# whether ts_ms is the first or the last of them.
Sighting = namedtuple("Sighting", ("key", "attrs", "ts_ms", "read_count"))


class Reader:
    """The facts of one kind of reader.

    baud: default line speed, 8N1. decoder, options: arguments of `decoder`, for an agent.
    latency_us, latency_source: longest time from air to the frame's first byte, and where the number comes from.
    start: commands to send, in order, when the line is opened and after `silence_us` without a good frame (None: the
    reader sends nothing while it sees nothing, silence means nothing).
    cycle_us: period of the search cycle that the reader's own timestamps count from; 0 when it has none.
    question: asked again and again, as `Poll` says, of a reader that speaks only when asked; a tag in the answer was seen
    after the question went out.
    """

    __slots__ = (
        "baud", "cycle_us", "decoder", "latency_source", "latency_us", "options", "question", "silence_us", "start",
    )  # fmt: skip

    def __init__(
        self,
        baud: int,
        decoder: str,
        options: "dict[str, object]",
        latency_us: int,
        latency_source: str,
        start: "tuple[bytes, ...]" = (),
        silence_us: "int | None" = None,
        question: "Question | None" = None,
        cycle_us: int = 0,
    ) -> None:
        self.baud = baud
        self.cycle_us = cycle_us
        self.decoder = decoder
        self.options = options
        self.latency_us = latency_us
        self.latency_source = latency_source
        self.start = start
        self.silence_us = silence_us
        self.question = question

    def dialogue(self, start: "tuple[bytes, ...] | None" = None) -> Dialogue:
        """What drives one reader of this kind; `start` replaces the commands of the kind by an operator's."""
        commands = self.start if start is None else start
        if self.question is not None:
            return Poll(commands, self.question)
        return Start(commands, self.silence_us)


_FIELD_SCAN_SOURCE = "assumed field scan; no source gives it"


def facts(kind: str) -> Reader:
    """The facts of one kind; only what it needs is loaded, as a board has one kind of reader and little memory.

    Raises:
        ValueError: unknown kind.
    """
    if kind == "m6e":
        from whenabouts_hardware import m6e_frames as m6e

        cycle_us = 1000 * m6e.CYCLE_MS  # of START_CONTINUOUS
        return Reader(
            115200,
            "m6e",
            {"mode": "reader"},
            cycle_us,
            "one search cycle of the start command, unless the reader's own timestamp narrows it",
            # A reader that was left running takes no other command before STOP. Region and power are the operator's to set.
            (m6e.STOP, m6e.PROTOCOL_GEN2_ONLY, m6e.ANTENNA_SEARCH_1_1, m6e.READ_FILTER_OFF, m6e.START_CONTINUOUS),
            3 * cycle_us,  # it reports every cycle, tags or none: three missing ones are no chance
            cycle_us=cycle_us,
        )
    if kind == "pn532":
        from whenabouts_hardware import pn532_frames as pn532

        return Reader(
            115200,
            "pn532",
            {},
            2 * PN532_WAIT_US,
            "a card is reported by the question that runs, or by the one before it that was broken off as the card came",
            (pn532.WAKEUP + pn532.SAM_NORMAL,),
            question=Question(pn532.LIST_ONE_106A, ("targets",), PN532_WAIT_US, PN532_PAUSE_US, abort=pn532.ACK),
        )
    if kind == "uhfreader18":
        from whenabouts_hardware.uhfreader18 import INVENTORY

        return Reader(
            57600,
            "uhfreader18",
            {},
            UHF18_LATENCY_US,
            "scan time of an inventory as delivered, 1 s, 75 ms that it may last longer (manual 2.0), and 64 answers",
            question=Question(INVENTORY, ("tags", "no_tag"), UHF18_LATENCY_US, UHF18_GAP_US, parts=("more_tags",)),
        )
    if kind == "yrm100":
        from whenabouts_hardware import yrm100

        start = (yrm100.STOP, yrm100.INVENTORY_ENDLESS)
        return Reader(115200, "yrm100", {}, FIELD_SCAN_US, _FIELD_SCAN_SOURCE, start, YRM100_SILENCE_US)
    if kind == "line":
        source = "assumed; the sensor's data sheet knows it: set latency_us"
        return Reader(9600, "line", {"midway": True}, LINE_LATENCY_US, source)
    if kind in ("rdm6300", "id12la"):
        return Reader(9600, kind, {}, FIELD_SCAN_US, _FIELD_SCAN_SOURCE)
    raise _unknown(kind)


def _unknown(kind: str) -> ValueError:
    return ValueError("reader: found {!r}, expected one of {}".format(kind, ", ".join(sorted(KINDS))))


TYPE_CHECKING = False
if TYPE_CHECKING:
    READERS: dict[str, Reader]
else:

    def __getattr__(name):
        """READERS, the facts of all kinds by name, is made when it is asked for: boards ask for one kind."""
        if name != "READERS":
            raise AttributeError(f"{__name__}: found no {name!r}")
        found = globals()["READERS"] = {kind: facts(kind) for kind in KINDS}
        return found


_ATTRS = ("freq_khz", "gpio", "phase", "rssi")
_ANTENNA_OF = {1: 1, 2: 2, 4: 3, 8: 4}  # of an antenna mask with one bit


def sightings(kind: str, frame: Frame) -> "list[Sighting]":
    """The tags that a frame of this kind of reader reports; none if it is damaged or speaks of something else.

    Attributes of a UHF tag: rssi (dBm), antenna (transmitting port), freq_khz, phase (degrees), gpio, rssi_raw (of a
    UHFReader288, which names no unit), as far as the reader sent them; of a card none. The key of a 125 kHz card is version
    and id, ten digits, of a 13.56 MHz card its identifier. A sensor that sends lines has none (`observed`).

    Raises:
        ValueError: unknown kind.
    """
    if kind not in KINDS:
        raise _unknown(kind)
    if not frame.ok or kind == "line":
        return []
    if kind in ("rdm6300", "id12la"):
        return [Sighting(frame.raw[1:11].decode().upper(), {}, None, 1)]
    if kind == "pn532":
        targets = frame.fields.get("targets")
        return [_sighting(one["uid"]) for one in targets if "uid" in one] if isinstance(targets, list) else []
    if kind == "uhfreader18":
        return _of_inventory(frame)
    if frame.kind == "tag":
        return [_uhf(frame.fields)]
    records = frame.fields["tags"] if frame.kind == "tags" else ()
    return [_uhf(record) for record in records] if isinstance(records, list) else []


def _uhf(record: "dict[str, object]") -> Sighting:
    attrs = {name: record[name] for name in _ATTRS if name in record}
    antenna = record.get("antenna")
    if isinstance(antenna, str):
        attrs["antenna"] = int(antenna.split("/")[0])
    return Sighting(str(record["epc"]).upper(), attrs, record.get("ts_ms"), record.get("read_count", 1))


def _of_inventory(frame: Frame) -> "list[Sighting]":
    if frame.kind == "active":
        return [_sighting(frame.fields["epc"])]
    records = frame.fields.get("tags")
    if not isinstance(records, list):
        return []
    mask = frame.fields.get("antenna_mask")
    found = []
    for record in records:
        attrs: dict[str, object] = {}
        if "rssi" in record:
            attrs["rssi_raw"] = record["rssi"]
        if mask in _ANTENNA_OF:
            attrs["antenna"] = _ANTENNA_OF[mask]
        found.append(_sighting(record["epc"], attrs))
    return found


def _sighting(key: object, attrs: "dict[str, object] | None" = None) -> Sighting:
    return Sighting(str(key).upper(), attrs or {}, None, 1)


def is_anchor(frame: Frame) -> bool:
    """Whether a search cycle of a Mercury reader begins as this frame's first byte leaves it: a keep-alive.

    The milliseconds of the tags that follow count from there, to be trusted for one cycle: what follows a cycle without
    a keep-alive counts from a later beginning that no frame tells.
    """
    return frame.ok and frame.kind == "keepalive"
