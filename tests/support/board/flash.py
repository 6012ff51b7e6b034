"""A flash whose power can be cut within any write: what was not synced is there in part, or as something else."""

from collections.abc import Callable

TORN = ("nothing", "prefix", "prefix then zeros", "prefix then ones", "suffix")


class PowerCut(BaseException):
    """The board is dead; what comes after sees only what the flash holds. No OSError: nothing can catch it and go on."""


class CutFlash:
    """Files in memory. budget: bytes that may still be written, None for no end; the write that exceeds it is cut there.

    torn: what of the cut write is found afterwards. `nothing`: neither its bytes nor that a file was begun anew.
    `suffix`: the bytes behind the cut are there, those before it are not: blocks are not written in order.
    """

    def __init__(self, files: dict[str, bytes] | None = None, budget: int | None = None, torn: str = "prefix") -> None:
        self.files = dict(files or {})
        self.budget, self.torn = budget, torn
        self.writes: list[int] = []  # bytes of each
        self.fails: Callable[[], bool] = lambda: False

    def read(self, name: str, offset: int, size: int) -> bytes:
        """As the ring wants it."""
        assert offset >= 0
        return self.files.get(name, b"")[offset : offset + size]

    def write(self, name: str, offset: int, data: bytes) -> None:
        """As the ring wants it, or a cut."""
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
            raise OSError(28, "no space, or so it says")
        self.files[name] = old[:offset] + data + (old[offset + len(data) :] if offset else b"")

    def _cut(self, name: str, offset: int, data: bytes, old: bytes, reach: int | None = None) -> None:
        at = self.budget if reach is None else reach
        assert at is not None
        kept, rest = data[:at], len(data) - at
        if self.torn == "nothing":
            return
        if self.torn == "suffix":
            found = bytes(at) + data[at:]
        else:
            found = (
                kept + {"prefix": b"", "prefix then zeros": bytes(rest), "prefix then ones": b"\xff" * rest}[self.torn]
            )
        self.files[name] = old[:offset] + found + (old[offset + len(found) :] if offset else b"")
