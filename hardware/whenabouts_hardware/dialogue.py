"""How a reader is kept talking: what to send it and when. Pure: told of time and frames, gives bytes to write.

    due(now_us)            -> bytes to write now, maybe none; call again at once while it gives some
    heard(frame, now_us)   a frame came
    asked_us               when the oldest question went out that may still be answered: what an answer reports was seen
                           after it; None when no question is open
    restarts               how often the reader had to be started again

`Start` is for readers that report by themselves once started; `polling.Poll` for those that answer questions.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from whenabouts_hardware.frame import Frame


class Dialogue:
    """Counters, and commands on their way, of both kinds of dialogue."""

    def __init__(self) -> None:
        self.asked_us: int | None = None
        self.restarts = 0
        self._queue: list[bytes] = []

    def due(self, now_us: int) -> bytes:
        """Bytes to write now."""
        return self._queue.pop(0) if self._queue else b""

    def heard(self, frame: "Frame", now_us: int) -> None:
        """A frame came, good or not."""


class Start(Dialogue):
    """Sends the commands once, and again after `silence_us` without a good frame, or when the reader says that it booted.

    Without commands, or with silence_us None, it only listens, or never takes silence for a fault.
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
        if not frame.ok or frame.kind == "status":  # a refusal: it speaks, but it does not read
            return
        if frame.kind == "boot":  # it has lost what it was told
            self.restarts += 1
            self._begin(now_us)
        self._heard_us = now_us

    def _begin(self, now_us: int) -> None:
        self._queue = list(self._commands)
        self._heard_us = now_us
