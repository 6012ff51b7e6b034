"""A flash whose power can be cut within any write: the cut write is stored in part, or as other bytes."""

from collections.abc import Callable

TORN = ("nothing", "prefix", "prefix then zeros", "prefix then ones", "suffix")


class PowerCut(BaseException):
    """The board's power is cut; only the content of the flash survives. Not an OSError, which handlers might catch."""


class CutFlash:
    """Files in memory. budget: bytes that may still be written, None for no limit; the write that exceeds it is cut there.

    torn: what remains of the cut write. `nothing`: none of its bytes, and a file that it would have replaced stays.
    `suffix`: the bytes after the cut but not those before it, because blocks are not written in order.
    """

    def __init__(self, files: dict[str, bytes] | None = None, budget: int | None = None, torn: str = "prefix") -> None:
        self.files = dict(files or {})
        self.budget, self.torn = budget, torn
        self.writes: list[int] = []  # the size of each
        self.fails: Callable[[], bool] = lambda: False

    def read(self, name: str, offset: int, size: int) -> bytes:
        """Read as the flash log does."""
        assert offset >= 0
        return self.files.get(name, b"")[offset : offset + size]

    def write(self, name: str, offset: int, data: bytes) -> None:
        """Write as the flash log does, or cut the power."""
        old = self.files.get(name, b"")
        assert offset <= len(old), "a hole in a file"
        if self.budget is not None and len(data) > self.budget:
            self._cut(name, offset, data, old)
            raise PowerCut
        if self.budget is not None:
            self.budget -= len(data)
        self.writes.append(len(data))
        if self.fails():
            self._cut(name, offset, data, old, len(data))
            raise OSError(28, "no space (simulated)")
        self.files[name] = old[:offset] + data + (old[offset + len(data) :] if offset else b"")

    def _cut(self, name: str, offset: int, data: bytes, old: bytes, reach: int | None = None) -> None:
        at = self.budget if reach is None else reach
        assert at is not None
        kept, rest = data[:at], len(data) - at
        if self.torn == "nothing":
            return
        if self.torn == "suffix":
            stored = bytes(at) + data[at:]
        else:
            stored = (
                kept + {"prefix": b"", "prefix then zeros": bytes(rest), "prefix then ones": b"\xff" * rest}[self.torn]
            )
        self.files[name] = old[:offset] + stored + (old[offset + len(stored) :] if offset else b"")
