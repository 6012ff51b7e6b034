"""The facts about one kind of reader that an agent needs: line speed, decoder, dialogue, and the time bounds of its
frames.

Each module of `readers` for a protocol holds one such value, `READER`; so does a reader package of a third party.
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

FIELD_SCAN_US = 100_000  # assumed: sources name tens of milliseconds, none measured it
FIELD_SCAN_SOURCE = "assumed field scan; no source gives it"

# One tag seen by a reader. key: EPC or card in upper-case hex. attrs: integers by name; of a UHF tag, as far as the reader
# sent them, rssi (dBm), antenna (transmitting port), freq_khz, phase (degrees), gpio, rssi_raw (unit unknown). ts_ms:
# milliseconds into the reader's search cycle, or None. read_count: number of sightings summed up here; if more than one,
# it is unknown whether ts_ms is the first or the last of them.
Sighting = namedtuple("Sighting", ("key", "attrs", "ts_ms", "read_count"))


class Reader:
    """The facts of one kind of reader.

    decoder: class of its decoder; options: arguments of that class, for an agent.
    baud: default line speed, 8N1.
    latency_us, latency_source: longest time from a sighting on air to the first byte of its frame, and the source of
    this number, the least certain one here. A stamp is widened downwards by it.
    tags: returns the `Sighting`s in a good frame. observe: for a sensor, returns the observation in a good frame, given
    the names of its key and value fields, or None.
    start: commands to send, in order, when the line is opened and after `silence_us` without a good frame (None: the
    reader sends nothing while it sees nothing, so silence is normal). settings: returns the commands for a
    configuration; they are sent after the first of `start`. own_keys: keys of a configuration that only readers of this
    kind have, whole numbers: name -> (least, most, description, example); `settings` and the decoder's options see them.
    question: repeated as in `Poll`, for a reader that only answers; a tag in the answer was seen after the question was
    sent.
    cycle_us: period of the search cycle from which the reader's timestamps count, 0 if it has none. anchor: kind of the
    frame whose first byte is sent as a cycle begins. Milliseconds in the following tags count from that moment and are
    trusted for one cycle: after a cycle without an anchor, they count from a later start that no frame reports.
    buffered: kind of the frames with tags that the reader kept until it was asked; their times count from a search
    without an anchor.
    converse: makes the dialogue from a configuration, for a protocol that is neither start commands nor questions.
    publishes: True for a reader that sends its events to whoever listens, and takes no commands.
    reports_once: True if a tag is reported as it comes and not again while it stays, so that its leaving is unknown.
    """

    __slots__ = (
        "anchor", "baud", "buffered", "converse", "cycle_us", "decoder", "latency_source", "latency_us", "observe",
        "options", "own_keys", "publishes", "question", "reports_once", "settings", "silence_us", "start", "tags",
    )  # fmt: skip

    def __init__(
        self,
        decoder: "type[Decoder]",
        baud: int,
        latency_us: int,
        latency_source: str,
        tags: "Callable[[Frame], list[Sighting]] | None" = None,
        *,
        observe: "Callable[[Frame, str | None, str | None], Any] | None" = None,
        options: "dict[str, object] | None" = None,
        start: "tuple[bytes, ...]" = (),
        settings: "Callable[[dict[str, Any]], tuple[bytes, ...]] | None" = None,
        own_keys: "dict[str, tuple[int, int, str, int]] | None" = None,
        silence_us: "int | None" = None,
        question: "Question | None" = None,
        cycle_us: int = 0,
        anchor: "str | None" = None,
        buffered: "str | None" = None,
        reports_once: bool = False,
        converse: "Callable[[dict[str, Any]], Dialogue] | None" = None,
        publishes: bool = False,
    ) -> None:
        self.decoder, self.options = decoder, options or {}
        self.baud = baud
        self.latency_us, self.latency_source = latency_us, latency_source
        self.tags, self.observe = tags, observe
        self.start, self.settings, self.silence_us = start, settings, silence_us
        self.own_keys, self.reports_once = own_keys or {}, reports_once
        self.question = question
        self.cycle_us, self.anchor, self.buffered = cycle_us, anchor, buffered
        self.converse, self.publishes = converse, publishes

    def new_decoder(self, config: "dict[str, Any] | None" = None) -> "Decoder":
        """A decoder for an agent; config may set the decoder's `OPTIONS`.

        Raises:
            ValueError: the decoder refuses an option.
        """
        options = dict(self.options)
        for name in self.decoder.OPTIONS:
            if config and name in config:
                options[name] = config[name]
        return self.decoder(**options)

    def sightings(self, frame: "Frame") -> "list[Sighting]":
        """The tags in a frame; none if it is damaged, not about tags, or from a sensor."""
        return self.tags(frame) if frame.ok and self.tags is not None else []

    def is_anchor(self, frame: "Frame") -> bool:
        """True if the first byte of this frame marks the start of a search cycle."""
        return frame.ok and frame.kind == self.anchor

    @property
    def speaks_us(self) -> "int | None":
        """Longest silence of a driven reader of this kind, with or without tags; None if it has no such limit.

        Even a PN532 that sees no card acknowledges each question.
        """
        if self.question is None:
            return self.silence_us
        from whenabouts_hardware.polling import UNANSWERED_MAX

        return UNANSWERED_MAX * (self.question.wait_us + self.question.pause_us)

    def dialogue(self, config: "dict[str, Any] | None" = None) -> Dialogue:
        """The dialogue with one reader of this kind, with the settings of the operator's configuration."""
        if self.converse is not None:
            return self.converse(config or {})
        commands = self.start
        if config and self.settings is not None:
            commands = commands[:1] + self.settings(config) + commands[1:]
        if self.question is None:
            return Start(commands, self.silence_us)
        from whenabouts_hardware.polling import Poll

        return Poll(commands, self.question)
