"""Births and statuses, the retained messages that describe a gateway. Layout in `wire.cddl`."""

from whenabouts_protocol.errors import WireError
from whenabouts_protocol.layout import (
    CONDITIONS,
    INT64_MAX,
    K_BIRTH_STREAMS,
    K_BOOT,
    K_BUILD,
    K_CONDITION,
    K_GROUP,
    K_VIEW,
    KINDS,
    int_in,
    list_in,
    read_head,
)
from whenabouts_protocol.messages.heartbeats import Message, encoded, origin_of
from whenabouts_protocol.reading import MAX_PROCESSES, MAX_TEXT_BYTES, is_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_STREAMS = 256  # of one gateway
STREAM_FIELDS, PARTS_FROM = 9, 5  # of a stream in a birth; its first five fields may stand alone


class Birth(Message):
    """Description of a gateway, retained.

    streams: (name, kind, unit, delay_us, length_us_max, latency_us, adapter_us, wire_us, poll_us) of each; the last four
    may be left out, and are None where unknown. delay_us: usual maximum delay of its readings; length_us_max: usual
    length of its longest stamp. The parts of a stamp that do not come from the clock: latency_us, from the sighting to
    the frame's first bit; adapter_us, between the wire and the host's buffer; wire_us, of the longest frame on the wire;
    poll_us, between two looks at the port.
    group, view: the gateway's group and the order of processes in the group's clocks. build: the version it runs.
    """

    __slots__ = ("boot", "build", "gateway", "group", "site", "streams", "view")

    def __init__(
        self,
        site: str,
        gateway: str,
        boot: int,
        streams: "list[tuple[Any, ...]]",
        group: "str | None" = None,
        view: "list[str] | None" = None,
        build: str = "",
    ) -> None:
        self.site, self.gateway, self.boot = site, gateway, boot
        self.streams = [tuple(s) + (None,) * (STREAM_FIELDS - len(s)) for s in streams]
        self.group, self.view, self.build = group, list(view or []), build


class Status(Message):
    """The condition of a gateway's agent, retained: online, offline (last will) or stopped (orderly end)."""

    __slots__ = ("boot", "condition", "gateway", "site")

    def __init__(self, site: str, gateway: str, boot: int, condition: str) -> None:
        self.site, self.gateway, self.boot, self.condition = site, gateway, boot, condition


def encode_birth(m: Birth) -> bytes:
    """Encode a birth message.

    Raises:
        WireError: a field is out of its range.
    """
    return encoded(
        m, {K_BOOT: m.boot, K_BIRTH_STREAMS: _stream_rows(m.streams), K_GROUP: m.group, K_VIEW: m.view, K_BUILD: m.build},
        decode_birth,
    )  # fmt: skip


def decode_birth(data: bytes) -> Birth:
    """Decode the birth message in data. Raises WireError for anything else."""
    head = read_head(data)
    streams = []
    for row in list_in(head, K_BIRTH_STREAMS, MAX_STREAMS, "streams"):
        whole = type(row) is list and (len(row) == PARTS_FROM or len(row) >= STREAM_FIELDS)
        if not whole or not is_text(row[0]) or not (row[2] is None or is_text(row[2])):
            raise WireError("birth streams: found an entry that is not [name, kind, unit, delay_us, length_us_max]")
        kind = KINDS[int_in(row[1], 0, len(KINDS) - 1, "kind")]
        times: list[int | None] = [int_in(row[3], 0, INT64_MAX, "delay"), int_in(row[4], 0, INT64_MAX, "length")]
        for part_us in row[PARTS_FROM:STREAM_FIELDS]:
            times.append(None if part_us is None else int_in(part_us, 0, INT64_MAX, "part of a stamp"))
        streams.append(tuple([row[0], kind, row[2]] + times))  # noqa: RUF005
    group, view, build = head.get(K_GROUP), list_in(head, K_VIEW, MAX_PROCESSES, "view"), head.get(K_BUILD)
    if not (group is None or is_text(group)) or not all(is_text(name) for name in view):
        raise WireError("birth: found a group or view that is no text")
    if type(build) is not str or not (build == "" or is_text(build)):
        raise WireError(f"birth: found a build that is no text of at most {MAX_TEXT_BYTES} bytes")
    return Birth(*origin_of(head), streams, group, view, build)


def encode_status(m: Status) -> bytes:
    """Encode a status message. Raises WireError when a field is out of its range."""
    if m.condition not in CONDITIONS:
        raise WireError(f"status condition: expected one of {', '.join(CONDITIONS)}")
    return encoded(m, {K_BOOT: m.boot, K_CONDITION: CONDITIONS.index(m.condition)}, decode_status)


def decode_status(data: bytes) -> Status:
    """Decode the status message in data. Raises WireError for anything else."""
    head = read_head(data)
    return Status(
        *origin_of(head), CONDITIONS[int_in(head.get(K_CONDITION), 0, len(CONDITIONS) - 1, "status condition")]
    )


def stream_row(stream: "Any") -> "list[Any]":
    """The row of a stream in a birth; its parts are left out when none is known.

    Raises:
        ValueError, TypeError: it is no stream.
    """
    row = list(stream)
    if not PARTS_FROM <= len(row) <= STREAM_FIELDS:
        raise ValueError
    row[1] = KINDS.index(row[1])
    if all(part_us is None for part_us in row[PARTS_FROM:]):
        return row[:PARTS_FROM]
    return row + [None] * (STREAM_FIELDS - len(row))


def _stream_rows(streams: "Any") -> "list[list[Any]]":
    try:
        return [stream_row(stream) for stream in streams]
    except (ValueError, TypeError):
        kinds = ", ".join(KINDS)
        raise WireError(
            f"birth streams: expected entries of name, kind ({kinds}), unit, delay, length and up to four parts of stamps"
        ) from None
