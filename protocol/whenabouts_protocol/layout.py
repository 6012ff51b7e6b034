"""The layout of all messages: keys of their heads, codes of words, dictionaries, and the decoder of a head.

Separate from the messages because a board needs only the encoders of its own messages and the decoder of
acknowledgements. Layout in `wire.cddl`.
"""

from whenabouts_protocol.cbor import loads
from whenabouts_protocol.errors import WireError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Words that are encoded as their index in these tuples.
KINDS = ("tag", "measure", "state", "absent", "gap")
CLOCK_STATES = ("bounded", "free-running", "unbounded")
CONDITIONS = ("online", "offline", "stopped")  # offline is the last will, stopped an orderly end

SCHEMA = 2  # major version: a decoder refuses any other
MAX_MESSAGE_BYTES = 262144  # larger messages are not parsed: a gateway's batch of 50 is about a kilobyte
MAX_BATCH_READINGS = 2000  # bounds the memory of a receiver
MAX_BOOTS = 64  # boots in one heartbeat or ack: older ones have long landed
INT64_MAX = 0x7FFFFFFFFFFFFFFF

# Keys of a batch; every message of the protocol has the first three.
K_SCHEMA, K_SITE, K_GATEWAY, K_BOOT, K_SEQ, K_T_MIN, K_VCLOCKS, K_STREAMS, K_KEYS, K_ATTRS, K_ROWS = range(11)
# Keys after the head: of a birth, a heartbeat, a status, an acknowledgement, and of rules.
K_BIRTH_STREAMS, K_GROUP, K_VIEW, K_BUILD = range(4, 8)
K_FRONTIER, K_PUBLISHED, K_CLOCK_STATE, K_BOUND, K_SPOOL_READINGS, K_SPOOL_BYTES, K_REFUSED, K_INVALID = range(4, 12)
K_CLOCK_SOURCE, K_CERTIFICATE_ENDS = 12, 13
K_CONDITION = K_LANDED = K_RULES = 4

_HEX = "0123456789ABCDEF"


class Dictionary:
    """Distinct values in order of first appearance, each with its index."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._index: dict[Any, int] = {}

    def index(self, value: "Any") -> int:
        """The index of a value; a new value is appended."""
        index = self._index.get(value)
        if index is None:
            index = self._index[value] = len(self.values)
            self.values.append(value)
        return index


def read_head(data: bytes) -> "dict[Any, Any]":
    """Decode the map of any message of this protocol, and check its size and schema.

    Raises:
        WireError: too large, not a map, or another schema.
    """
    check_size(data)
    head = loads(data)
    if type(head) is not dict:
        raise WireError(f"message: found {type(head).__name__}, expected a map")
    schema = head.get(K_SCHEMA)
    if type(schema) is not int or schema != SCHEMA:
        shown = schema if type(schema) is int else "none"
        raise WireError(f"message schema: found {shown}, expected {SCHEMA}; a newer gateway needs a newer receiver")
    return head


def check_size(data: bytes) -> None:
    """Raise WireError for a message that is too large."""
    if len(data) > MAX_MESSAGE_BYTES:
        raise WireError(f"message: found {len(data)} bytes, expected at most {MAX_MESSAGE_BYTES}")


def pack_key(key: str) -> "str | bytes":
    """A key as it is sent: bytes if it is an even number of upper-case hexadecimal digits, else the text."""
    if len(key) % 2 or not key:
        return key
    for c in key:
        if c not in _HEX:
            return key
    return bytes.fromhex(key)


def boots_in(head: "dict[Any, Any]", key: int) -> "dict[int, int]":
    """Decode the map from boot to number under a key. Raises WireError if it is missing or malformed."""
    boots: dict[int, int] = {}
    for pair in list_in(head, key, MAX_BOOTS, "boots"):
        if type(pair) is not list or len(pair) != 2:
            raise WireError("boots: found an entry that is not [boot, number]")
        boot = int_in(pair[0], 0, INT64_MAX, "boot")
        if boot in boots:
            raise WireError(f"boots: found boot {boot} twice")
        boots[boot] = int_in(pair[1], 0, INT64_MAX, "number")
    return boots


def list_in(head: "dict[Any, Any]", key: int, limit: int, what: str) -> "list[Any]":
    """The list under a key, of at most `limit` entries. Raises WireError if there is none."""
    value = head.get(key)
    if type(value) is not list or len(value) > limit:
        raise WireError(f"{what}: found no array of at most {limit} entries")
    return value


def int_in(value: "Any", low: int, high: int, what: str) -> int:
    """The value if it is an integer from low to high. Raises WireError if not."""
    if type(value) is not int or not low <= value <= high:
        raise WireError(
            f"{what}: found {value if type(value) is int else type(value).__name__}, expected {low}..{high}"
        )
    return value
