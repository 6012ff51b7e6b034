"""The rule file of the dashboard, read again when it changes: its text, its mistakes, its rules with explanations.

The text is explained by a child process, like every other one. It is explained again when other streams have landed, as
these decide where a rule can run. Cost: one look at the file a call; 0.5 s of another process when something changed.
"""

import asyncio
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from whenabouts_cloud.dashboard.questions.asking import Asker, BusyError
from whenabouts_cloud.file_version import file_version

MAX_BYTES = 1 << 20  # as `check` accepts
MAX_STREAMS = 2000  # that are named when rules are explained

Streams = Sequence[tuple[str, str, str]]
"""Of each stream that landed its name, its gateway and its site."""


class RuleBook:
    """The rules of a file, none without one. streams: those that have landed."""

    def __init__(self, file: Path | None, streams: Callable[[], Streams] = tuple) -> None:
        self.file, self._streams = file, streams
        self.version = 0
        self._seen: tuple[Any, Streams] | None = None
        self._lock = threading.Lock()
        self._text, self._explained = "", dict[str, Any](ok=True, mistakes=[], rules=[])
        self._asker: Asker | None = None

    def follow(self, budget_s: float) -> bool:
        """Read the file if it is another one; there is never more to do."""
        if self.file is None:
            return False
        seen = file_version(self.file), tuple(self._streams()[:MAX_STREAMS])
        if seen == self._seen:
            return False
        text, mistake = _read(self.file)
        if mistake is None:
            found = asyncio.run(self._explain(text, seen[1]))
            mistake = found.get("error")
        wrong = {"line": 1, "column": 1, "found": None, "expected": None, "text": mistake}
        with self._lock:
            self._text = text
            self._explained = found if mistake is None else {"ok": False, "mistakes": [wrong], "rules": []}
            self._seen = seen
            self.version += 1
        return False

    def close(self) -> None:
        """End a process that explains now."""
        if self._asker is not None:
            self._asker.close()

    @property
    def text(self) -> str:
        """The text of the file."""
        with self._lock:
            return self._text

    def value(self) -> dict[str, Any]:
        """The file with {text, ok, mistakes, rules}."""
        with self._lock:
            return {"file": None if self.file is None else str(self.file), "text": self._text, **self._explained}

    async def _explain(self, text: str, streams: Streams) -> dict[str, Any]:
        self._asker = Asker()
        try:
            return await self._asker.ask("explain", {"text": text, "streams": streams})
        except BusyError as error:
            return {"error": str(error)}


def _read(file: Path) -> tuple[str, str | None]:
    """The text of a file, and what is wrong with it."""
    try:
        with file.open("rb") as opened:
            raw = opened.read(MAX_BYTES + 1)
    except OSError as error:
        return "", f"found no readable file ({error.strerror}), expected rules"
    if len(raw) > MAX_BYTES:
        return "", f"found more than {MAX_BYTES} bytes, expected at most that many: is this the rule file?"
    try:
        return raw.decode("utf-8"), None
    except UnicodeDecodeError as error:
        return "", f"found byte {raw[error.start]:#04x}, expected UTF-8 text"
