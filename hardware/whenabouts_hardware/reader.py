"""One kind of reader as an agent knows it: line speed, decoder, how to drive it, and what its frames say about time.

Each module of `readers` that speaks a reader's protocol holds one such value, `READER`; so does a package of somebody else.
"""

from collections import namedtuple

from whenabouts_hardware.dialogue import Dialogue, Start

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from whenabouts_hardware.decoding import Decoder
    from whenabouts_hardware.frame import Frame
    from whenabouts_hardware.polling import Question

FIELD_SCAN_US = 100_000  # assumed: sources say tens of milliseconds, none measured it
FIELD_SCAN_SOURCE = "assumed field scan; no source gives it"

# One tag seen by a reader. key: EPC or card in upper-case hex. attrs: integers by name; of a UHF tag, as far as the reader
# sent them, rssi (dBm), antenna (transmitting port), freq_khz, phase (degrees), gpio, rssi_raw (of a reader that names no
# unit). ts_ms: milliseconds into the reader's search cycle, or None. read_count: sightings that this one stands for; with
# more than one it is unknown whether ts_ms is the first or the last of them.
Sighting = namedtuple("Sighting", ("key", "attrs", "ts_ms", "read_count"))


class Reader:
    """The facts of one kind of reader.

    decoder: class of its decoder; options: arguments of that class, for an agent.
    baud: default line speed, 8N1.
    latency_us, latency_source: longest time from a sighting on air to the first byte of its frame, and where the number
    comes from; it is the least certain one here. A stamp is widened downwards by it.
    tags: gives the `Sighting`s in a good frame. observe: of a sensor, gives the observation in a good frame, by the names
    of its key and its value, or None.
    start: commands to send, in order, when the line is opened and after `silence_us` without a good frame (None: the
    reader sends nothing while it sees nothing, silence means nothing). settings: gives the commands for what a
    configuration sets; they follow the first of `start`.
    question: asked again and again, as `Poll` says, of a reader that speaks only when asked; a tag in the answer was seen
    after the question went out.
    cycle_us: period of the search cycle that the reader's own timestamps count from, 0 when it has none; anchor: kind of the
    frame whose first byte leaves as a cycle begins. The milliseconds of the tags that follow count from there, to be trusted
    for one cycle: what follows a cycle without an anchor counts from a later beginning that no frame tells.
    buffered: kind of the frames whose tags the reader kept until it was asked, counted from a search without an anchor.
    """

    __slots__ = (
        "anchor", "baud", "buffered", "cycle_us", "decoder", "latency_source", "latency_us", "observe", "options",
        "question", "settings", "silence_us", "start", "tags",
    )  # fmt: skip

    def __init__(
        self,
        decoder: "type[Decoder]",
        baud: int,
        latency_us: int,
        latency_source: str,
        tags: "Callable[[Frame], list[Sighting]] | None" = None,
        observe: "Callable[[Frame, str | None, str | None], Any] | None" = None,
        options: "dict[str, object] | None" = None,
        start: "tuple[bytes, ...]" = (),
        settings: "Callable[[dict[str, Any]], tuple[bytes, ...]] | None" = None,
        silence_us: "int | None" = None,
        question: "Question | None" = None,
        cycle_us: int = 0,
        anchor: "str | None" = None,
        buffered: "str | None" = None,
    ) -> None:
        self.decoder, self.options = decoder, options or {}
        self.baud = baud
        self.latency_us, self.latency_source = latency_us, latency_source
        self.tags, self.observe = tags, observe
        self.start, self.settings, self.silence_us = start, settings, silence_us
        self.question = question
        self.cycle_us, self.anchor, self.buffered = cycle_us, anchor, buffered

    def new_decoder(self, config: "dict[str, Any] | None" = None) -> "Decoder":
        """A decoder for an agent; config: may set what the decoder names in `OPTIONS`.

        Raises:
            ValueError: the decoder refuses an option.
        """
        options = dict(self.options)
        for name in self.decoder.OPTIONS:
            if config and name in config:
                options[name] = config[name]
        return self.decoder(**options)

    def sightings(self, frame: "Frame") -> "list[Sighting]":
        """The tags that a frame reports; none if it is damaged or speaks of something else, or of a sensor."""
        return self.tags(frame) if frame.ok and self.tags is not None else []

    def is_anchor(self, frame: "Frame") -> bool:
        """True of a frame that begins a search cycle as its first byte leaves the reader."""
        return frame.ok and frame.kind == self.anchor

    @property
    def speaks_us(self) -> "int | None":
        """A reader of this kind that is driven says something at least so often, tags or none; None if it does not.

        Even a PN532 that sees no card acknowledges each question.
        """
        if self.question is None:
            return self.silence_us
        from whenabouts_hardware.polling import UNANSWERED_MAX

        return UNANSWERED_MAX * (self.question.wait_us + self.question.pause_us)

    def dialogue(self, config: "dict[str, Any] | None" = None) -> Dialogue:
        """Drives one reader of this kind, set as the configuration of an operator says."""
        commands = self.start
        if config and self.settings is not None:
            commands = commands[:1] + self.settings(config) + commands[1:]
        if self.question is None:
            return Start(commands, self.silence_us)
        from whenabouts_hardware.polling import Poll

        return Poll(commands, self.question)
