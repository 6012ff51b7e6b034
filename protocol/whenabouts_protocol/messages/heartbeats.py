"""Heartbeats and acknowledgements, the messages exchanged all the time. Layout in `wire.cddl`.

Also the parts shared by all messages but batches: they are maps with schema, site and gateway under the same keys as a
batch. Decoding applies the same limits and fails only with WireError, whatever the bytes.
"""

from whenabouts_protocol.cbor import dumps
from whenabouts_protocol.errors import WireError
from whenabouts_protocol.layout import (
    CLOCK_STATES,
    INT64_MAX,
    K_BOOT,
    K_BOUND,
    K_CERTIFICATE_ENDS,
    K_CLOCK_SOURCE,
    K_CLOCK_STATE,
    K_FRONTIER,
    K_GATEWAY,
    K_INVALID,
    K_LANDED,
    K_PUBLISHED,
    K_REFUSED,
    K_SCHEMA,
    K_SITE,
    K_SPOOL_BYTES,
    K_SPOOL_READINGS,
    MAX_BOOTS,
    SCHEMA,
    boots_in,
    int_in,
    list_in,
    read_head,
)
from whenabouts_protocol.reading import INT64_MIN, MAX_TEXT_BYTES, check_origin, is_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Message:
    """Base class of messages: fields by name, comparable and printable."""

    __slots__: "tuple[str, ...]" = ()

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._values() == other._values()

    def __repr__(self) -> str:
        return type(self).__name__ + repr(self._values())

    def _values(self) -> "tuple[Any, ...]":
        return tuple([getattr(self, name) for name in self.__slots__])


class Heartbeat(Message):
    """Heartbeat of a gateway, with its watermark.

    frontier_us: the watermark. Every reading of this gateway with t_max < frontier_us is among those published.
    published: boot -> (first, last), the numbers that the gateway has published and still keeps. Numbers before first
    were confirmed by the cloud and forgotten, so that a new landing need not wait for them; first is last + 1 when the
    watermark covers none of those that it still keeps.
    bound_us: None when the clock is unbounded.
    refused, invalid: since this boot began, readings that found no room, and input that makes no reading; None: not
    reported, as by gateways that do not count them.
    clock_source: name of what the bound comes from, such as chrony or sntp. certificate_ends_s: end of the gateway's
    certificate, seconds since 1970 UTC. None: not reported.
    """

    __slots__ = (
        "boot",
        "bound_us",
        "certificate_ends_s",
        "clock_source",
        "clock_state",
        "frontier_us",
        "gateway",
        "invalid",
        "published",
        "refused",
        "site",
        "spool_bytes",
        "spool_readings",
    )  # fmt: skip

    def __init__(
        self,
        site: str,
        gateway: str,
        boot: int,
        frontier_us: "int | None",
        published: "dict[int, tuple[int, int]]",
        clock_state: str,
        bound_us: "int | None",
        spool_readings: int = 0,
        spool_bytes: int = 0,
        refused: "int | None" = None,
        invalid: "int | None" = None,
        clock_source: "str | None" = None,
        certificate_ends_s: "int | None" = None,
    ) -> None:
        self.site, self.gateway, self.boot = site, gateway, boot
        self.frontier_us, self.published = frontier_us, published
        self.clock_state, self.bound_us = clock_state, bound_us
        self.spool_readings, self.spool_bytes = spool_readings, spool_bytes
        self.refused, self.invalid = refused, invalid
        self.clock_source, self.certificate_ends_s = clock_source, certificate_ends_s


class Ack(Message):
    """Acknowledgement from the cloud, retained: for each boot the highest number up to which every reading has landed
    durably.
    """

    __slots__ = ("gateway", "landed", "site")

    def __init__(self, site: str, gateway: str, landed: "dict[int, int]") -> None:
        self.site, self.gateway, self.landed = site, gateway, landed


def encode_heartbeat(m: Heartbeat) -> bytes:
    """Encode a heartbeat. Raises WireError when a field is out of its range."""
    if m.clock_state not in CLOCK_STATES:
        raise WireError(f"heartbeat clock state: expected one of {', '.join(CLOCK_STATES)}")
    fields: dict[int, Any] = {
        K_BOOT: m.boot,
        K_FRONTIER: m.frontier_us,
        K_PUBLISHED: _triples(m.published),
        K_CLOCK_STATE: CLOCK_STATES.index(m.clock_state),
        K_BOUND: m.bound_us,
        K_SPOOL_READINGS: m.spool_readings,
        K_SPOOL_BYTES: m.spool_bytes,
    }
    for key, value in (
        (K_REFUSED, m.refused),
        (K_INVALID, m.invalid),
        (K_CLOCK_SOURCE, m.clock_source),
        (K_CERTIFICATE_ENDS, m.certificate_ends_s),
    ):
        if value is not None:
            fields[key] = value
    return encoded(m, fields, decode_heartbeat)


def decode_heartbeat(data: bytes) -> Heartbeat:
    """Decode the heartbeat in data. Raises WireError for anything else."""
    head = read_head(data)
    frontier_us, bound_us = head.get(K_FRONTIER), head.get(K_BOUND)
    if K_CLOCK_SOURCE in head and not is_text(head[K_CLOCK_SOURCE]):
        raise WireError(f"heartbeat clock source: found no text of 1 to {MAX_TEXT_BYTES} bytes")
    return Heartbeat(
        *origin_of(head),
        None if frontier_us is None else int_in(frontier_us, INT64_MIN, INT64_MAX, "heartbeat frontier"),
        _ranges(head, K_PUBLISHED),
        CLOCK_STATES[int_in(head.get(K_CLOCK_STATE), 0, len(CLOCK_STATES) - 1, "heartbeat clock state")],
        None if bound_us is None else int_in(bound_us, 0, INT64_MAX, "heartbeat bound"),
        int_in(head.get(K_SPOOL_READINGS), 0, INT64_MAX, "heartbeat spool readings"),
        int_in(head.get(K_SPOOL_BYTES), 0, INT64_MAX, "heartbeat spool bytes"),
        _reported(head, K_REFUSED, "heartbeat refused"),
        _reported(head, K_INVALID, "heartbeat invalid"),
        head.get(K_CLOCK_SOURCE),
        _reported(head, K_CERTIFICATE_ENDS, "heartbeat end of the certificate"),
    )


def encode_ack(m: Ack) -> bytes:
    """Encode an acknowledgement. Raises WireError when a field is out of its range."""
    return encoded(m, {K_LANDED: _pairs(m.landed)}, decode_ack)


def decode_ack(data: bytes) -> Ack:
    """Decode the acknowledgement in data. Raises WireError for anything else."""
    head = read_head(data)
    _check_origin(head, 0)
    return Ack(head[K_SITE], head[K_GATEWAY], boots_in(head, K_LANDED))


def encoded(m: "Any", fields: "dict[int, Any]", decode: "Any") -> bytes:
    fields[K_SCHEMA], fields[K_SITE], fields[K_GATEWAY] = SCHEMA, m.site, m.gateway
    data = dumps(fields)
    decode(data)  # never send what a decoder would refuse
    return data


def origin_of(head: "dict[Any, Any]") -> "tuple[str, str, int]":
    _check_origin(head, head.get(K_BOOT))
    return head[K_SITE], head[K_GATEWAY], head[K_BOOT]


def _reported(head: "dict[Any, Any]", key: int, what: str) -> "int | None":
    return int_in(head[key], 0, INT64_MAX, what) if key in head else None


def _check_origin(head: "dict[Any, Any]", boot: "Any") -> None:
    try:
        check_origin(head.get(K_SITE), head.get(K_GATEWAY), boot)
    except ValueError as error:
        raise WireError(str(error)) from None


def _pairs(boots: "Any") -> "list[list[int]]":
    try:
        return [[boot, number] for boot, number in sorted(boots.items())]
    except (ValueError, TypeError, AttributeError):
        raise WireError("boots: found no map from boot to number") from None


def _triples(boots: "Any") -> "list[list[int]]":
    try:
        return [[boot, first, last] for boot, (first, last) in sorted(boots.items())]
    except (ValueError, TypeError, AttributeError):
        raise WireError("boots: found no map from boot to first and last number") from None


def _ranges(head: "dict[Any, Any]", key: int) -> "dict[int, tuple[int, int]]":
    ranges: dict[int, tuple[int, int]] = {}
    for entry in list_in(head, key, MAX_BOOTS, "boots"):
        if type(entry) is not list or len(entry) != 3:
            raise WireError("boots: found an entry that is not [boot, first, last]")
        boot = int_in(entry[0], 0, INT64_MAX, "boot")
        if boot in ranges:
            raise WireError(f"boots: found boot {boot} twice")
        last = int_in(entry[2], 0, INT64_MAX - 1, "last number")
        ranges[boot] = (int_in(entry[1], 0, last + 1, "first number"), last)
    return ranges
