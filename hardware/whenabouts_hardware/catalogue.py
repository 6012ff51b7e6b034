"""What an agent must know about each reader: line speed, decoder, how to drive it, and what its frames say about time.

`latency_us` bounds the time from a sighting on air to the first byte of its frame; a stamp is widened downwards by it.
It is the least certain number here, so each record says where it comes from. A Mercury reader's own timestamp narrows
the stamp: milliseconds into the search cycle, and `is_anchor` names the frame that starts one.
"""

from whenabouts_hardware.dialogue import Dialogue, Start
from whenabouts_hardware.sightings import GAP_US, Sighting, is_anchor, sightings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from whenabouts_hardware.decoding import Decoder
    from whenabouts_hardware.frame import Frame
    from whenabouts_hardware.polling import Question

    READERS: "dict[str, Reader]"
else:

    def __getattr__(name):
        """READERS, the facts of all kinds by name, is made when it is asked for: boards ask for one kind."""
        if name != "READERS":
            raise AttributeError(f"{__name__}: found no {name!r}")
        found = globals()["READERS"] = {kind: facts(kind) for kind in KINDS}
        return found


KINDS = ("rdm6300", "id12la", "m6e", "pn532", "uhfreader18", "yrm100", "line")  # those built in
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


class Reader:
    """The facts of one kind of reader.

    baud: default line speed, 8N1. decoder, options: arguments of `decoder`, for an agent.
    latency_us, latency_source: longest time from air to the frame's first byte, and where the number comes from.
    start: commands to send, in order, when the line is opened and after `silence_us` without a good frame (None: the
    reader sends nothing while it sees nothing, silence means nothing).
    cycle_us: period of the search cycle that the reader's own timestamps count from; 0 when it has none.
    question: asked again and again, as `Poll` says, of a reader that speaks only when asked; a tag in the answer was seen
    after the question went out.
    make, sightings: of a reader of another package, what makes its decoder, given `options`, and what gives the tags of one
    of its good frames as `Sighting`s; `decoder` then is only a name.
    """

    __slots__ = (
        "baud", "cycle_us", "decoder", "latency_source", "latency_us", "make", "options", "question", "sightings",
        "silence_us", "start",
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
        make: "Callable[..., Decoder] | None" = None,
        sightings: "Callable[[Frame], list[Sighting]] | None" = None,
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
        self.make = make
        self.sightings = sightings

    def new_decoder(self, **more: object) -> "Decoder":
        """A decoder for a reader of this kind; `more`: options beside those of the kind."""
        from whenabouts_hardware.decoders import decoder

        options = dict(self.options)
        options.update(more)
        return decoder(self.decoder, **options) if self.make is None else self.make(**options)

    @property
    def speaks_us(self) -> "int | None":
        """A reader of this kind that is driven says something at least so often, tags or none; None if it does not.

        Even a PN532 that sees no card acknowledges each question.
        """
        if self.question is None:
            return self.silence_us
        from whenabouts_hardware.polling import UNANSWERED_MAX

        return UNANSWERED_MAX * (self.question.wait_us + self.question.pause_us)

    def dialogue(self, start: "tuple[bytes, ...] | None" = None) -> Dialogue:
        """What drives one reader of this kind; `start` replaces the commands of the kind by an operator's."""
        commands = self.start if start is None else start
        if self.question is not None:
            from whenabouts_hardware.polling import Poll

            return Poll(commands, self.question)
        return Start(commands, self.silence_us)


_FIELD_SCAN_SOURCE = "assumed field scan; no source gives it"


def facts(kind: str) -> Reader:
    """The facts of one kind; only what it needs is loaded, as a board has one kind of reader and little memory.

    Raises:
        ValueError: unknown kind.
    """
    if kind == "m6e":
        import whenabouts_hardware.readers.m6e_frames as m6e

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
        import whenabouts_hardware.readers.pn532_frames as pn532
        from whenabouts_hardware.polling import Question

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
        from whenabouts_hardware.polling import Question
        from whenabouts_hardware.readers.uhfreader18 import INVENTORY

        return Reader(
            57600,
            "uhfreader18",
            {},
            UHF18_LATENCY_US,
            "scan time of an inventory as delivered, 1 s, 75 ms that it may last longer (manual 2.0), and 64 answers",
            question=Question(INVENTORY, ("tags", "no_tag"), UHF18_LATENCY_US, UHF18_GAP_US, parts=("more_tags",)),
        )
    if kind == "yrm100":
        import whenabouts_hardware.readers.yrm100 as yrm100

        start = (yrm100.STOP, yrm100.INVENTORY_ENDLESS)
        return Reader(115200, "yrm100", {}, FIELD_SCAN_US, _FIELD_SCAN_SOURCE, start, YRM100_SILENCE_US)
    if kind == "line":
        source = "assumed; the sensor's data sheet knows it: set latency_us"
        return Reader(9600, "line", {"midway": True}, LINE_LATENCY_US, source)
    if kind in ("rdm6300", "id12la"):
        return Reader(9600, kind, {}, FIELD_SCAN_US, _FIELD_SCAN_SOURCE)
    raise unknown(kind)


def unknown(kind: str) -> ValueError:
    """The error about a kind that there is none of."""
    return ValueError("reader: found {!r}, expected one of {}".format(kind, ", ".join(sorted(KINDS))))


__all__ = ["GAP_US", "KINDS", "READERS", "Reader", "Sighting", "facts", "is_anchor", "sightings"]
