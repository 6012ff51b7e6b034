"""A terminal as the port of a reader on a PC, where there is no UART. Loaded only where configured."""

import select

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

READ_BYTES = 32  # at a time; `run` treats a shorter read as the last one


class Terminal:
    """A terminal in raw mode, read without waiting."""

    def __init__(self, path: str) -> None:
        self._file: Any = open(path, "r+b", 0)  # noqa: SIM115  # open as long as the board runs
        self._poll = select.poll()
        self._poll.register(self._file, select.POLLIN)

    def read(self) -> bytes:
        """Up to READ_BYTES bytes that have arrived."""
        data = b""
        while len(data) < READ_BYTES and self._poll.poll(0):
            one = self._file.read(1)
            if not one:
                break
            data += one
        return data

    def write(self, data: bytes) -> None:
        """Send a command."""
        self._file.write(data)
