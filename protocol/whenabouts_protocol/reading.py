"""One observation by one reader; the same type from the gateway's spool to the landing.

The identity of a reading is (gateway, boot, seq): boot numbers a start of the gateway's agent, rises from start to
start and never repeats; seq counts from 0 within a boot without gaps. Two messages with the same identity carry the
same reading.
"""

from whenabouts_protocol.layout import CLOCK_STATES, INT64_MAX, KINDS
from whenabouts_protocol.topics import is_name
from whenabouts_protocol.utf8 import utf8

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from whenabouts_protocol.interval import Interval

NO_EVENT_KINDS = ("gap", "absent")  # readings of absence, or of a gap in knowledge
FIELDS = (
    "site", "gateway", "boot", "seq", "stream", "kind", "key", "value", "unit", "attrs",
    "t_min", "t_max", "clock_state", "vclock",
)  # fmt: skip

INT64_MIN = -INT64_MAX - 1
TIME_US_MAX = 1 << 62  # 146 000 years from 1970: differences and doubled middles of any two stamps fit an int64
MAX_TEXT_BYTES = 256  # stream, key, unit, attribute name
MAX_VALUE_BYTES = 4096  # a text value or attribute
MAX_ATTRS = 32
MAX_PROCESSES = 64  # entries of one clock: a larger group is a design fault, so its messages are refused


class Reading:
    """A reading with its stamp.

    Times are integer microseconds since 1970 UTC; the stamp is the closed interval [t_min, t_max] that certainly
    contains the moment of the event. `value` is a finite number, text, bool or None; `attrs` is a small map from text
    to such values, without None; `vclock` is the dense vector clock as counts in the order of the group's view, empty
    when the gateway is in no group. check: False for fields that were already checked.

    Raises:
        ValueError: a field is missing, out of its range or of another type; the text names it.
    """

    __slots__ = FIELDS

    def __init__(
        self,
        *,
        site: str,
        gateway: str,
        boot: int,
        seq: int,
        stream: str,
        kind: str,
        t_min: int,
        t_max: int,
        key: "str | None" = None,
        value: "int | float | str | bool | None" = None,
        unit: "str | None" = None,
        attrs: "dict[str, int | float | str | bool] | None" = None,
        clock_state: str = "bounded",
        vclock: "tuple[int, ...] | list[int]" = (),
        check: bool = True,
    ) -> None:
        self.site = site
        self.gateway = gateway
        self.boot = boot
        self.seq = seq
        self.stream = stream
        self.kind = kind
        self.key = key
        self.value = value
        self.unit = unit
        self.attrs = {} if attrs is None else attrs
        self.t_min = t_min
        self.t_max = t_max
        self.clock_state = clock_state
        self.vclock = tuple(vclock) if isinstance(vclock, list) else vclock
        if check:
            check_reading(self)

    @property
    def identity(self) -> "tuple[str, int, int]":
        """(gateway, boot, seq)."""
        return self.gateway, self.boot, self.seq

    @property
    def interval(self) -> "Interval":
        """The stamp as an Interval."""
        from whenabouts_protocol.interval import Interval  # boards do not need it

        return Interval(self.t_min, self.t_max)

    def __eq__(self, other: "Any") -> bool:
        return isinstance(other, Reading) and all(_same(getattr(self, f), getattr(other, f)) for f in FIELDS)

    def __hash__(self) -> int:
        return hash(self.identity)

    def __repr__(self) -> str:
        return "Reading(" + ", ".join([f"{f}={getattr(self, f)!r}" for f in FIELDS]) + ")"


def _same(a: "Any", b: "Any") -> bool:
    """Equal and of the same type: in a reading's value True is not 1, and 1 is not 1.0."""
    if isinstance(a, dict) and isinstance(b, dict):
        return len(a) == len(b) and all(k in b and _same(a[k], b[k]) for k in a)
    return type(a) is type(b) and a == b


def _is_int(x: "Any") -> bool:
    return type(x) is int


def is_scalar(x: "Any") -> bool:
    """True for a valid value or attribute: an int64, a finite double, a bool or a text of bounded length."""
    kind = type(x)
    if kind is int:
        return bool(INT64_MIN <= x <= INT64_MAX)
    if kind is float:
        return bool(x - x == 0)  # neither infinite nor NaN
    if kind is str:
        return _fits(x, MAX_VALUE_BYTES)
    return kind is bool


def is_text(x: "Any") -> bool:
    """True for a text of 1 to MAX_TEXT_BYTES bytes of UTF-8."""
    return type(x) is str and x != "" and _fits(x, MAX_TEXT_BYTES)


def _fits(text: str, limit: int) -> bool:
    try:
        return len(utf8(text)) <= limit
    except UnicodeError:  # a lone surrogate has no UTF-8 form
        return False


def check_reading(r: Reading) -> None:
    """Raise ValueError unless every field is in its range; the text names the first fault."""
    check_origin(r.site, r.gateway, r.boot)
    check_observation(
        r.seq, r.stream, r.kind, r.t_min, r.t_max, r.key, r.value, r.unit, r.attrs, r.clock_state, r.vclock
    )


def check_origin(site: "Any", gateway: "Any", boot: "Any") -> None:
    """Raise ValueError unless the names are topic levels and boot is a number from 0 to 2^63 - 1."""
    for field, name in (("site", site), ("gateway", gateway)):
        if not is_name(name):
            raise _fault(field, name, "a name of 1 to 64 bytes without space / + #")
    if not _is_int(boot) or not 0 <= boot <= INT64_MAX:
        raise _fault("boot", boot, "an integer from 0 to 2^63 - 1")


def check_observation(
    seq: "Any",
    stream: "Any",
    kind: "Any",
    t_min: "Any",
    t_max: "Any",
    key: "Any",
    value: "Any",
    unit: "Any",
    attrs: "Any",
    clock_state: "Any",
    vclock: "Any",
) -> None:
    """Raise ValueError unless these fields make a reading; the text names the first fault. About 2 us on a 3 GHz core."""
    if not _is_int(seq) or not 0 <= seq <= INT64_MAX:
        raise _fault("seq", seq, "an integer from 0 to 2^63 - 1")
    if not _is_int(t_min) or not _is_int(t_max) or not -TIME_US_MAX < t_min <= t_max < TIME_US_MAX:
        raise _fault("t_min, t_max", (t_min, t_max), "integers from 1 - 2^62 to 2^62 - 1, t_min <= t_max")
    if not is_text(stream):
        raise _fault("stream", stream, f"text of 1 to {MAX_TEXT_BYTES} bytes")
    if kind not in KINDS:
        raise _fault("kind", kind, "one of " + ", ".join(KINDS))
    if key is not None and not is_text(key):
        raise _fault("key", key, f"None or text of 1 to {MAX_TEXT_BYTES} bytes")
    if value is not None and not is_scalar(value):
        raise _fault("value", value, "None, an int64, a finite number, a bool or a short text")
    if unit is not None and not is_text(unit):
        raise _fault("unit", unit, f"None or text of 1 to {MAX_TEXT_BYTES} bytes")
    if attrs != {} and not _are_attrs(attrs):
        raise _fault("attrs", attrs, f"at most {MAX_ATTRS} entries from text to number, text or bool")
    if clock_state not in CLOCK_STATES:
        raise _fault("clock_state", clock_state, "one of " + ", ".join(CLOCK_STATES))
    if vclock != () and not is_vclock(vclock):
        raise _fault("vclock", vclock, f"at most {MAX_PROCESSES} counts from 0 to 2^63 - 1")


def _are_attrs(attrs: "Any") -> bool:
    if not isinstance(attrs, dict) or len(attrs) > MAX_ATTRS:
        return False
    return all(is_text(name) and is_scalar(value) for name, value in attrs.items())


def is_vclock(vclock: "Any") -> bool:
    """True for a tuple of at most MAX_PROCESSES counts."""
    if type(vclock) is not tuple or len(vclock) > MAX_PROCESSES:
        return False
    return all(_is_int(count) and 0 <= count <= INT64_MAX for count in vclock)


def _fault(field: str, value: "Any", expected: str) -> ValueError:
    try:
        shown = repr(value)
    except (ValueError, RuntimeError):  # an integer of thousands of digits, nesting without end
        shown = type(value).__name__
    if len(shown) > 80:
        shown = shown[:77] + "..."
    return ValueError(f"reading {field}: found {shown}, expected {expected}")


__all__ = [
    "CLOCK_STATES", "FIELDS", "INT64_MAX", "INT64_MIN", "KINDS", "MAX_ATTRS", "MAX_PROCESSES", "MAX_TEXT_BYTES",
    "MAX_VALUE_BYTES", "NO_EVENT_KINDS", "TIME_US_MAX", "Reading", "check_observation", "check_origin", "check_reading",
    "is_scalar", "is_text", "is_vclock",
]  # fmt: skip
