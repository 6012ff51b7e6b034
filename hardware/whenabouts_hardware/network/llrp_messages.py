"""Messages of LLRP (GS1 Low Level Reader Protocol 1.0.1; 1.1 reads them too) that an agent sends, and their layout.

A message has a head of ten bytes: three reserved bits, three of the version, ten of the type; its whole length in four
bytes; a number that the answer repeats. Parameters follow: a TLV has a type of ten bits and its length, a TV a type of
seven bits behind a one, and a length that is known by its type. Big-endian throughout. The layouts are those of the
standard's sections 16 and 17, checked against the binary definition `llrp-1x0-def.xml` of the LLRP toolkit.
"""

from struct import pack

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

PORT = 5084
VERSION = 1  # a reader of version 1.1 speaks 1 until another one is negotiated
VERSIONS = (1, 2)
HEAD_BYTES = 10

GET_CAPABILITIES, GET_CONFIG, SET_CONFIG, CLOSE = 1, 2, 3, 14
CLOSED, CAPABILITIES, CONFIG, CONFIG_SET = 4, 11, 12, 13
ADD_ROSPEC, DELETE_ROSPEC, START_ROSPEC, STOP_ROSPEC, ENABLE_ROSPEC = 20, 21, 22, 23, 24
ANSWER_OF_ROSPEC = 10  # added to the type of a request about an ROSpec
REPORT, KEEPALIVE, EVENT, ENABLE_REPORTS, KEEPALIVE_ACK, ERROR = 61, 62, 63, 64, 72, 100
REQUESTS = {
    GET_CAPABILITIES: "GET_READER_CAPABILITIES", GET_CONFIG: "GET_READER_CONFIG", SET_CONFIG: "SET_READER_CONFIG",
    ADD_ROSPEC: "ADD_ROSPEC", DELETE_ROSPEC: "DELETE_ROSPEC", START_ROSPEC: "START_ROSPEC",
    STOP_ROSPEC: "STOP_ROSPEC", ENABLE_ROSPEC: "ENABLE_ROSPEC", CLOSE: "CLOSE_CONNECTION",
}  # fmt: skip
ANSWERS = {GET_CAPABILITIES: CAPABILITIES, GET_CONFIG: CONFIG, SET_CONFIG: CONFIG_SET, CLOSE: CLOSED}

# Types of parameters.
UTC, UPTIME, GENERAL, REGULATORY, BAND, POWER_LEVEL = 128, 129, 137, 143, 144, 145
FREQUENCIES, HOP_TABLE = 146, 147
STATUS, TAG, EPC_DATA = 287, 240, 241
EVENT_DATA, ROSPEC_EVENT, OVERFLOW_EVENT, EXCEPTION_EVENT, ANTENNA_EVENT = 246, 249, 251, 252, 255
CONNECTION_EVENT, CONNECTION_CLOSED = 256, 257
TV_ANTENNA, TV_LAST_UTC, TV_LAST_UPTIME, TV_RSSI, TV_COUNT, TV_ROSPEC, TV_EPC_96 = 1, 4, 5, 6, 8, 9, 13
# Bytes behind the type of each TV parameter; the last two are new in 1.1.
TV_BYTES = {
    1: 2, 2: 8, 3: 8, 4: 8, 5: 8, 6: 1, 7: 2, 8: 2, 9: 4, 10: 2, 11: 2, 12: 2, 13: 12, 14: 2, 15: 2, 16: 4, 17: 2, 18: 4,
    19: 2, 20: 2,
}  # fmt: skip

# Contents of a tag's report, by their bits: ROSpecID, AntennaID, PeakRSSI, first and last timestamp, number of sightings.
_CONTENTS = 1 << 15 | 1 << 12 | 1 << 10 | 1 << 9 | 1 << 8 | 1 << 7
# Events: of ROSpecs, a buffer that fills, exceptions, antennas.
_EVENTS = (2, 3, 4, 8)
_KEEPALIVE_SPEC = 8  # the part of GET_READER_CONFIG with the shortest answer


class LayoutError(ValueError):
    """Lengths inside a message contradict each other."""


def message(kind: int, number: int, body: bytes = b"") -> bytes:
    """The bytes of a message."""
    return pack(">HII", VERSION << 10 | kind, HEAD_BYTES + len(body), number) + body


def parameter(kind: int, body: bytes) -> bytes:
    """The bytes of a TLV parameter."""
    return pack(">HH", kind, 4 + len(body)) + body


def parameters(data: bytes, at: int, end: int) -> "Iterator[tuple[int, int, int]]":
    """(type, begin, end) of the body of each parameter in data[at:end].

    Raises:
        LayoutError: a parameter ends beyond the end, or is a TV of an unknown type, whose length nobody knows.
    """
    while at < end:
        first = data[at]
        if first & 0x80:
            kind = first & 0x7F
            size = TV_BYTES.get(kind)
            if size is None:
                raise LayoutError(
                    f"found a short parameter of type {kind}, expected one of {len(TV_BYTES)} known types"
                )
            begin, after = at + 1, at + 1 + size
        else:
            if end - at < 4:
                raise LayoutError(f"found {end - at} bytes, expected a parameter's head of 4")
            kind = (first & 3) << 8 | data[at + 1]
            begin, after = at + 4, at + (data[at + 2] << 8 | data[at + 3])
        if not begin <= after <= end:
            raise LayoutError(f"parameter {kind}: found {after - at} bytes, expected {begin - at} to {end - at}")
        yield kind, begin, after
        at = after


def get_capabilities(number: int) -> bytes:
    """Ask what the reader can do."""
    return message(GET_CAPABILITIES, number, b"\0")


def probe(number: int) -> bytes:
    """A question with a short answer: GET_READER_CONFIG for the keep-alive alone."""
    return message(GET_CONFIG, number, pack(">HBHH", 0, _KEEPALIVE_SPEC, 0, 0))


def set_config(number: int, keepalive_ms: int) -> bytes:
    """Ask for the events that concern an agent, for keep-alives, and for reports without being asked for each."""
    states = b"".join([parameter(245, pack(">HB", event, 0x80)) for event in _EVENTS])
    body = parameter(244, states) + parameter(220, pack(">BI", 1, keepalive_ms)) + parameter(226, b"\0")
    return message(SET_CONFIG, number, b"\0" + body)


def of_rospec(kind: int, number: int, rospec: int) -> bytes:
    """A request about one ROSpec; DELETE_ROSPEC of 0 removes all."""
    return message(kind, number, pack(">I", rospec))


def add_rospec(number: int, rospec: int, antennas: "tuple[int, ...]", settings: bytes) -> bytes:
    """An inventory without end on these antennas (0: on all) that reports each tag when it is seen.

    settings: an AntennaConfiguration, or nothing for those that the reader has.
    """
    boundary = parameter(178, parameter(179, b"\0") + parameter(182, b"\0" * 5))  # begins and ends by request alone
    chosen = antennas or (0,)
    ids = pack(">H", len(chosen)) + b"".join([pack(">H", antenna) for antenna in chosen])
    inventory = parameter(183, ids + parameter(184, b"\0" * 5) + parameter(186, pack(">HB", 1, 1) + settings))
    report = parameter(237, pack(">BH", 1, 1) + parameter(238, pack(">H", _CONTENTS)))
    body = parameter(177, pack(">IBB", rospec, 0, 0) + boundary + inventory + report)
    return message(ADD_ROSPEC, number, body)


def antenna_settings(
    power: "tuple[int, int] | None" = None,
    rf_mode: "int | None" = None,
    session: "int | None" = None,
    population: "int | None" = None,
) -> bytes:
    """An AntennaConfiguration for all antennas; nothing if nothing is set.

    power: (identifier of the hop table or 0, index of the transmit power). session 0 to 3 and population: of the tags
    (Gen2), which LLRP sets together; 1 and 32 where only the other is given.
    """
    body = b""
    if power is not None:
        body += parameter(224, pack(">HHH", power[0], 1, power[1]))
    control = b"" if rf_mode is None else parameter(335, pack(">HH", rf_mode, 0))
    if session is not None or population is not None:
        chosen = 1 if session is None else session
        control += parameter(336, pack(">BHI", chosen << 6, 32 if population is None else population, 0))
    if control:
        body += parameter(330, b"\0" + control)
    return parameter(222, pack(">H", 0) + body) if body else b""
