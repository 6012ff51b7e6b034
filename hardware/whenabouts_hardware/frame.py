"""One frame of a reader's serial protocol, whole or damaged, with its position in the byte stream.

The position matters as much as the content: the agent knows when bytes arrived, so `start` and `end` give the arrival
of the frame, even if a damaged neighbour made the decoder recognise it late.
"""


class Frame:
    """One frame in a byte stream.

    kind: type of the content, for example "tag"; "damaged" if even the type is unknown.
    fields: name to value; in a frame that is not ok, the readable ones.
    ok: checksums fit and the content is consistent.
    error: None, or a text of what was found and what was expected.
    fault: None, or the decoder counter for this error.
    raw: the bytes of the frame.
    start, end: offsets of raw in all bytes fed since the decoder was created; end is exclusive.
    """

    __slots__ = ("end", "error", "fault", "fields", "kind", "ok", "raw", "start")

    def __init__(
        self,
        kind: str,
        fields: "dict[str, object]",
        raw: bytes,
        start: int,
        error: "str | None" = None,
        fault: "str | None" = None,
    ) -> None:
        self.kind = kind
        self.fields = fields
        self.ok = error is None
        self.error = error
        self.fault = fault
        self.raw = raw
        self.start = start
        self.end = start + len(raw)

    def cut(self, end: int) -> "Frame":
        """This frame, cut short at the start of another."""
        return Frame(self.kind, self.fields, self.raw[: end - self.start], self.start, self.error, self.fault)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Frame):
            return False
        return (
            self.kind == other.kind
            and self.fields == other.fields
            and self.error == other.error
            and self.fault == other.fault
            and self.raw == other.raw
            and self.start == other.start
        )

    def __hash__(self) -> int:
        return hash((self.start, self.raw))

    def __repr__(self) -> str:
        fields = " ".join(f"{name}={self.fields[name]!r}" for name in sorted(self.fields))
        state = "ok" if self.ok else f"error {self.error!r}"
        return f"<Frame {self.kind} {self.start}..{self.end} {state} {fields}>"


def as_hex(data: bytes) -> str:
    """Lower-case hex digits. In MicroPython 1.27, b"".hex() is b""."""
    return data.hex() if data else ""
