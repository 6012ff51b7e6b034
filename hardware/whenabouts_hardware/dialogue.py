"""Dialogues: the commands that keep a reader reporting, and when to send them. Pure: takes times and frames, gives
bytes to write.

    due(now_us)            -> bytes to write now, maybe none; call again at once until it gives none
    heard(frame, now_us)   a frame was received
    asked_us               when the oldest question still open was sent: tags in an answer were seen after it;
                           None when no question is open
    restarts               how often the reader had to be started again

A dialogue over a connection that keeps the order of messages has also

    in_order               True
    answered_us            when the newest answered question was sent: what comes behind its answer was sent later
    since_us               start of the uninterrupted scan; None while the reader is not known to scan
    fault                  why the connection is of no use any more, in words; then it must be opened again
    complaint              the last complaint of the reader
    takes(frame, place)    False for a tag that the reader kept from an earlier connection, at an unknown time
    reader_us(frame, place) when the tag was seen, by the reader's own clock; None if it does not say
    falls_behind(empty_us, now_us)
                           True while more comes than can be taken: its tags are only counted
    end(now_us)            asked to end: False once there is nothing to wait for; until then `due` goes on

`Start` is for readers that report without being asked once they are started; `polling.Poll` for those that answer
questions.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from whenabouts_hardware.frame import Frame


class Dialogue:
    """State shared by all kinds of dialogue: counters, and commands waiting to be sent."""

    in_order = False

    def __init__(self) -> None:
        self.asked_us: int | None = None
        self.answered_us: int | None = None
        self.since_us: int | None = None
        self.restarts = 0
        self.fault = self.complaint = ""
        self._queue: list[bytes] = []

    def due(self, now_us: int) -> bytes:
        """Bytes to write now."""
        return self._queue.pop(0) if self._queue else b""

    def heard(self, frame: "Frame", now_us: int) -> None:
        """Take note of a received frame, good or not."""

    def takes(self, frame: "Frame", place: int) -> bool:
        """True if the tag at this place, from 0, among the tags of a good frame was seen in this dialogue."""
        return True

    def reader_us(self, frame: "Frame", place: int) -> "int | None":
        """When the reader saw the tag at this place, by its own clock, which may be wrong by any time."""
        return None

    def falls_behind(self, empty_us: int, now_us: int) -> bool:
        """True if its answers wait behind more frames than can be taken; empty_us: when last no byte waited."""
        return False

    def end(self, now_us: int) -> bool:
        """Begin to end; True as long as it takes."""
        return False


class Start(Dialogue):
    """Sends the commands once, and again after `silence_us` without a good frame, or when the reader reports that it
    booted.

    Without commands it only listens; with silence_us None, silence is never a fault.
    """

    def __init__(self, commands: "tuple[bytes, ...]", silence_us: "int | None") -> None:
        super().__init__()
        self._commands, self._silence_us = commands, silence_us
        self._heard_us: int | None = None

    def due(self, now_us: int) -> bytes:
        if self._heard_us is None:
            self._begin(now_us)
        elif self._silence_us is not None and now_us - self._heard_us > self._silence_us:
            self.restarts += 1
            self._begin(now_us)
        return super().due(now_us)

    def heard(self, frame: "Frame", now_us: int) -> None:
        if not frame.ok or frame.kind == "status":  # a refusal: it is alive, but not reading
            return
        if frame.kind == "boot":  # it has lost its settings
            self.restarts += 1
            self._begin(now_us)
        self._heard_us = now_us

    def _begin(self, now_us: int) -> None:
        self._queue = list(self._commands)
        self._heard_us = now_us
