"""The other messages of a gateway: birth, status, beat from it, ack to it. Layout in `wire.cddl`.

All are maps with the schema, site and gateway under the same keys as a batch, decoded under the same limits, and ending in
WireError whatever the bytes.
"""

from whenabouts_protocol import cbor
from whenabouts_protocol.errors import WireError
from whenabouts_protocol.reading import CLOCK_STATES, INT64_MAX, INT64_MIN, KINDS, MAX_TEXT_BYTES, check_origin, is_text
from whenabouts_protocol.vector_clock import MAX_PROCESSES
from whenabouts_protocol.wire import K_BOOT, K_GATEWAY, K_SCHEMA, K_SITE, SCHEMA, read_head

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CONDITIONS = ("online", "offline", "stopped")  # offline is the last will, stopped an orderly end
MAX_STREAMS = 256  # of one gateway
MAX_BOOTS = 64  # boots one beat or ack speaks of: older ones have long landed

_K_A, _K_B, _K_C, _K_D, _K_E, _K_F, _K_G = range(4, 11)


class _Message:
    """Fields by name, comparable and printable."""

    __slots__: "tuple[str, ...]" = ()

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._values() == other._values()

    def __repr__(self) -> str:
        return type(self).__name__ + repr(self._values())

    def _values(self) -> "tuple[Any, ...]":
        return tuple([getattr(self, name) for name in self.__slots__])


class Birth(_Message):
    """Who a gateway is, retained: its streams as (name, kind, unit, delay_us, length_us_max), its group and the order of
    processes in the group's clocks, and the build it runs. delay_us: readings arrive at most this late as a rule;
    length_us_max: longest stamp as a rule.
    """

    __slots__ = ("boot", "build", "gateway", "group", "site", "streams", "view")

    def __init__(
        self,
        site: str,
        gateway: str,
        boot: int,
        streams: "list[tuple[str, str, str | None, int, int]]",
        group: "str | None" = None,
        view: "list[str] | None" = None,
        build: str = "",
    ) -> None:
        self.site, self.gateway, self.boot = site, gateway, boot
        self.streams = [tuple(s) for s in streams]
        self.group, self.view, self.build = group, list(view or []), build


class Status(_Message):
    """Whether the gateway's agent is online, offline (last will) or stopped in order; retained."""

    __slots__ = ("boot", "condition", "gateway", "site")

    def __init__(self, site: str, gateway: str, boot: int, condition: str) -> None:
        self.site, self.gateway, self.boot, self.condition = site, gateway, boot, condition


class Beat(_Message):
    """Heartbeat. The promise: every reading of this gateway with t_max < frontier_us is among those published: for each
    boot named, `published[boot]` is (first, last), the numbers that the gateway still keeps and has published. What is
    before first was confirmed by the cloud and is forgotten, so that a new landing need not wait for it; first is
    last + 1 when all is confirmed. bound_us is None when the clock is unbounded.
    """

    __slots__ = (
        "boot", "bound_us", "clock_state", "frontier_us", "gateway", "published", "site", "spool_bytes", "spool_readings",
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
    ) -> None:
        self.site, self.gateway, self.boot = site, gateway, boot
        self.frontier_us, self.published = frontier_us, published
        self.clock_state, self.bound_us = clock_state, bound_us
        self.spool_readings, self.spool_bytes = spool_readings, spool_bytes


class Ack(_Message):
    """From the cloud, retained: for each boot the highest number up to which every reading has landed durably."""

    __slots__ = ("gateway", "landed", "site")

    def __init__(self, site: str, gateway: str, landed: "dict[int, int]") -> None:
        self.site, self.gateway, self.landed = site, gateway, landed


def encode_birth(m: Birth) -> bytes:
    """The bytes of a birth message.

    Raises:
        WireError: a field is out of its range.
    """
    return _encode(
        m, {K_BOOT: m.boot, _K_A: _stream_rows(m.streams), _K_B: m.group, _K_C: m.view, _K_D: m.build},
        decode_birth,
    )  # fmt: skip


def decode_birth(data: bytes) -> Birth:
    """The birth message in data. Raises WireError for anything else."""
    head = read_head(data)
    streams = []
    for row in _list(head, _K_A, MAX_STREAMS, "streams"):
        if type(row) is not list or len(row) < 5 or not is_text(row[0]) or not (row[2] is None or is_text(row[2])):
            raise WireError("birth streams: found an entry that is not [name, kind, unit, delay_us, length_us_max]")
        kind = KINDS[_int(row[1], 0, len(KINDS) - 1, "kind")]
        streams.append(
            (row[0], kind, row[2], _int(row[3], 0, INT64_MAX, "delay"), _int(row[4], 0, INT64_MAX, "length"))
        )
    group, view, build = head.get(_K_B), _list(head, _K_C, MAX_PROCESSES, "view"), head.get(_K_D)
    if not (group is None or is_text(group)) or not all(is_text(name) for name in view):
        raise WireError("birth: found a group or view that is no text")
    if type(build) is not str or not (build == "" or is_text(build)):
        raise WireError(f"birth: found a build that is no text of at most {MAX_TEXT_BYTES} bytes")
    return Birth(*_origin(head), streams, group, view, build)


def encode_status(m: Status) -> bytes:
    """The bytes of a status message. Raises WireError when a field is out of its range."""
    if m.condition not in CONDITIONS:
        raise WireError(f"status condition: expected one of {', '.join(CONDITIONS)}")
    return _encode(m, {K_BOOT: m.boot, _K_A: CONDITIONS.index(m.condition)}, decode_status)


def decode_status(data: bytes) -> Status:
    """The status message in data. Raises WireError for anything else."""
    head = read_head(data)
    return Status(*_origin(head), CONDITIONS[_int(head.get(_K_A), 0, len(CONDITIONS) - 1, "status condition")])


def encode_beat(m: Beat) -> bytes:
    """The bytes of a heartbeat. Raises WireError when a field is out of its range."""
    if m.clock_state not in CLOCK_STATES:
        raise WireError(f"beat clock state: expected one of {', '.join(CLOCK_STATES)}")
    return _encode(
        m,
        {
            K_BOOT: m.boot,
            _K_A: m.frontier_us,
            _K_B: _triples(m.published),
            _K_C: CLOCK_STATES.index(m.clock_state),
            _K_D: m.bound_us,
            _K_E: m.spool_readings,
            _K_F: m.spool_bytes,
        },
        decode_beat,
    )


def decode_beat(data: bytes) -> Beat:
    """The heartbeat in data. Raises WireError for anything else."""
    head = read_head(data)
    frontier_us, bound_us = head.get(_K_A), head.get(_K_D)
    return Beat(
        *_origin(head),
        None if frontier_us is None else _int(frontier_us, INT64_MIN, INT64_MAX, "beat frontier"),
        _ranges(head, _K_B),
        CLOCK_STATES[_int(head.get(_K_C), 0, len(CLOCK_STATES) - 1, "beat clock state")],
        None if bound_us is None else _int(bound_us, 0, INT64_MAX, "beat bound"),
        _int(head.get(_K_E), 0, INT64_MAX, "beat spool readings"),
        _int(head.get(_K_F), 0, INT64_MAX, "beat spool bytes"),
    )


def encode_ack(m: Ack) -> bytes:
    """The bytes of an acknowledgement. Raises WireError when a field is out of its range."""
    return _encode(m, {_K_A: _pairs(m.landed)}, decode_ack)


def decode_ack(data: bytes) -> Ack:
    """The acknowledgement in data. Raises WireError for anything else."""
    head = read_head(data)
    _check_origin(head, 0)
    return Ack(head[K_SITE], head[K_GATEWAY], _boots(head, _K_A))


def _encode(m: "Any", fields: "dict[int, Any]", decode: "Any") -> bytes:
    fields[K_SCHEMA], fields[K_SITE], fields[K_GATEWAY] = SCHEMA, m.site, m.gateway
    data = cbor.dumps(fields)
    decode(data)  # what this side would refuse to read it must not send
    return data


def _origin(head: "dict[Any, Any]") -> "tuple[str, str, int]":
    _check_origin(head, head.get(K_BOOT))
    return head[K_SITE], head[K_GATEWAY], head[K_BOOT]


def _check_origin(head: "dict[Any, Any]", boot: "Any") -> None:
    try:
        check_origin(head.get(K_SITE), head.get(K_GATEWAY), boot)
    except ValueError as error:
        raise WireError(str(error)) from None


def _stream_rows(streams: "Any") -> "list[list[Any]]":
    try:
        return [
            [name, KINDS.index(kind), unit, delay_us, length_us_max]
            for name, kind, unit, delay_us, length_us_max in streams
        ]
    except (ValueError, TypeError):
        kinds = ", ".join(KINDS)
        raise WireError(f"birth streams: expected entries of name, kind ({kinds}), unit, delay and length") from None


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


def _boots(head: "dict[Any, Any]", key: int) -> "dict[int, int]":
    boots: dict[int, int] = {}
    for pair in _list(head, key, MAX_BOOTS, "boots"):
        if type(pair) is not list or len(pair) != 2:
            raise WireError("boots: found an entry that is not [boot, number]")
        boot = _int(pair[0], 0, INT64_MAX, "boot")
        if boot in boots:
            raise WireError(f"boots: found boot {boot} twice")
        boots[boot] = _int(pair[1], 0, INT64_MAX, "number")
    return boots


def _ranges(head: "dict[Any, Any]", key: int) -> "dict[int, tuple[int, int]]":
    ranges: dict[int, tuple[int, int]] = {}
    for entry in _list(head, key, MAX_BOOTS, "boots"):
        if type(entry) is not list or len(entry) != 3:
            raise WireError("boots: found an entry that is not [boot, first, last]")
        boot = _int(entry[0], 0, INT64_MAX, "boot")
        if boot in ranges:
            raise WireError(f"boots: found boot {boot} twice")
        last = _int(entry[2], 0, INT64_MAX - 1, "last number")
        ranges[boot] = (_int(entry[1], 0, last + 1, "first number"), last)
    return ranges


def _list(head: "dict[Any, Any]", key: int, limit: int, what: str) -> "list[Any]":
    value = head.get(key)
    if type(value) is not list or len(value) > limit:
        raise WireError(f"{what}: found no array of at most {limit} entries")
    return value


def _int(value: "Any", low: int, high: int, what: str) -> int:
    if type(value) is not int or not low <= value <= high:
        raise WireError(
            f"{what}: found {value if type(value) is int else type(value).__name__}, expected {low}..{high}"
        )
    return value
