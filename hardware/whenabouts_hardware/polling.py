"""Dialogue with a reader that answers questions: asks again and again; see `dialogue`."""

from whenabouts_hardware.dialogue import Dialogue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from whenabouts_hardware.frame import Frame

UNANSWERED_MAX = 3  # questions in a row; then the start commands are sent again: the reader may have lost power


class Question:
    """A question to a reader, and the rules for its answer.

    raw: its bytes. answers: kinds of frames that end an answer. wait_us: longest wait for one. pause_us: pause after
    it.
    parts: kinds of frames that begin an answer; each restarts the wait. abort: sent when no answer came in time, before
    the question is repeated.
    """

    __slots__ = ("abort", "answers", "parts", "pause_us", "raw", "wait_us")

    def __init__(
        self,
        raw: bytes,
        answers: "tuple[str, ...]",
        wait_us: int,
        pause_us: int,
        parts: "tuple[str, ...]" = (),
        abort: bytes = b"",
    ) -> None:
        self.raw, self.answers, self.wait_us, self.pause_us = raw, answers, wait_us, pause_us
        self.parts, self.abort = parts, abort


class Poll(Dialogue):
    """Sends the start commands, then repeats: ask, wait for the answer or give up, pause.

    The answer to a question that was given up may still come, and looks like an answer to the next question: the old
    question counts as open for twice the longest wait. At the beginning an answer may belong to a question that another
    program asked, so the time of the question is unknown.
    """

    def __init__(self, commands: "tuple[bytes, ...]", question: Question) -> None:
        super().__init__()
        self._commands, self._question = commands, question
        self._open: list[int] = []  # when each was sent
        self._waiting = False
        self._heard_us = 0
        self._begun_us = 0
        self._next_us: int | None = None
        self._unanswered = 0

    def due(self, now_us: int) -> bytes:
        question = self._question
        if self._next_us is None:
            self._queue = list(self._commands)
            self._next_us = now_us + question.pause_us if self._queue else now_us
            self._begun_us = now_us
        if self._waiting and now_us - self._heard_us > question.wait_us:
            self._give_up(now_us)
        while self._open and now_us - self._open[0] > 2 * question.wait_us:
            self._open.pop(0)
        self.asked_us = self._asked(now_us)
        if not self._queue and not self._waiting and now_us >= self._next_us:
            self._waiting = True
            self._heard_us = now_us
            self._open.append(now_us)
            self.asked_us = self._asked(now_us)
            return question.raw
        return super().due(now_us)

    def heard(self, frame: "Frame", now_us: int) -> None:
        if not frame.ok:
            return
        self._unanswered = 0
        if frame.kind in self._question.answers:
            self._waiting = False
            self._next_us = now_us + self._question.pause_us
            if self._open:
                self._open.pop(0)
            self.asked_us = self._asked(now_us)
        elif frame.kind in self._question.parts:
            self._heard_us = now_us

    def _asked(self, now_us: int) -> "int | None":
        if now_us - self._begun_us <= 2 * self._question.wait_us or not self._open:
            return None
        return self._open[0]

    def _give_up(self, now_us: int) -> None:
        """No answer in time: normal for a reader that only answers when it sees a tag."""
        self._waiting = False
        self._unanswered += 1
        self._next_us = now_us + self._question.pause_us
        if self._question.abort:
            self._queue.append(self._question.abort)
        if self._unanswered >= UNANSWERED_MAX:
            self._unanswered = 0
            self.restarts += 1
            self._queue += self._commands
