"""The content of a reading of kind `state`: one local state of one gateway, which is one process of its group.

The reading's `vclock` is the dense vector clock at the start of the state; its own entry is the number of the state (0
is the first state of the view). `attrs` holds the state's values by name, and the reserved names below. The reading's
own `value` is set when the state consists of a single predicate. Unknown values are omitted: at the start, and while
changes are so close together that their order is unknown. The stamp contains the moment of the change.

A clock heartbeat is such a reading with `$heartbeat`: it begins no state and has no values. It reports that the state
numbered by its own entry was still on when the whole clock was known.

A state that an earlier start of the agent has found, and that waited for UTC until this start stored it under its own boot,
has `$earlier`: watermarks of the boot that it names say nothing of how long it lasted.

A view is the ordered list of (gateway, boot) of a group's members; entry i of a clock belongs to the i-th member. Its
number is a digest, so members with the same knowledge agree without a leader. In a new view every member starts again
at state 0; states of different views are never compared.
"""

from hashlib import sha256

from whenabouts_protocol.cbor import dumps
from whenabouts_protocol.reading import check_origin, is_scalar, is_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from whenabouts_protocol.reading import Reading

    Members = list[tuple[str, int]]

GROUP, VIEW, PROCESS, HEARTBEAT, EARLIER = "$group", "$view", "$process", "$heartbeat", "$earlier"
VALUE = "value"  # name of the reading's own value among the values
KIND = "state"
VIEW_BITS = 48  # two different views of a group have the same number with probability 10^-14


class LocalState:
    """A state, or a clock heartbeat if `is_heartbeat` is set; of an earlier start if `is_earlier` is.

    group, view: name of the group and number of its view. process: index of the gateway in the view. number: of the
    state. clock: vector clock. values: by name; the reading's own value is under `value`.
    """

    __slots__ = ("clock", "group", "is_earlier", "is_heartbeat", "number", "process", "values", "view")

    def __init__(
        self,
        group: str,
        view: int,
        process: int,
        clock: "tuple[int, ...]",
        is_heartbeat: bool,
        values: "dict[str, int | float | str | bool]",
        is_earlier: bool = False,
    ) -> None:
        self.group, self.view, self.process, self.clock = group, view, process, clock
        self.number = clock[process]
        self.is_heartbeat, self.values, self.is_earlier = is_heartbeat, values, is_earlier

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LocalState) and all(getattr(self, f) == getattr(other, f) for f in self.__slots__)

    def __hash__(self) -> int:
        return hash((self.group, self.view, self.process, self.clock))

    def __repr__(self) -> str:
        return "LocalState(" + ", ".join([f"{f}={getattr(self, f)!r}" for f in self.__slots__]) + ")"


def view_number(members: "Members", departed: "Members | None" = None) -> int:
    """The number of the view of these members in this order, from 0 to 2^48 - 1.

    departed: members that have left, with the boot in which they left. They have no entry in clocks. They make the view
    after a leave differ from the view before the join, although both have the same members.

    Raises:
        ValueError: a member is not (gateway, boot).

    >>> view_number([("a", 1), ("b", 7)]) == view_number([("b", 7), ("a", 1)])
    False
    """
    rows = []
    for entries in (members, departed or []):
        for gateway, boot in entries:
            check_origin("-", gateway, boot)
        rows.append([[gateway, boot] for gateway, boot in entries])
    return int.from_bytes(sha256(dumps(rows)).digest()[: VIEW_BITS // 8], "big")


def attrs_of(
    group: str,
    view: int,
    process: int,
    values: "dict[str, int | float | str | bool] | None" = None,
    is_heartbeat: bool = False,
) -> "dict[str, int | float | str | bool]":
    """The attributes of a state reading, or of a clock heartbeat if `is_heartbeat` is set; a clock heartbeat has no values.

    Raises:
        ValueError: a value has a reserved name (beginning with $, or `value`), or a clock heartbeat has values.
    """
    attrs = dict(values or {})
    for name in sorted(attrs):
        if name.startswith("$") or name == VALUE:
            raise ValueError(f"state: found a value named {name!r}, expected another name; $... and value are reserved")
    if is_heartbeat and attrs:
        raise ValueError(f"clock heartbeat: found {len(attrs)} values, expected none")
    attrs[GROUP], attrs[VIEW], attrs[PROCESS] = group, view, process
    if is_heartbeat:
        attrs[HEARTBEAT] = True
    return attrs


def state_of(reading: "Reading") -> "LocalState | None":
    """The local state or clock heartbeat in a reading; None for other readings and for malformed ones.

    Unknown names that begin with $ are ignored.
    """
    if reading.kind != KIND:
        return None
    attrs, clock = reading.attrs, reading.vclock
    group, view, process = attrs.get(GROUP), attrs.get(VIEW), attrs.get(PROCESS)
    is_heartbeat, is_earlier = attrs.get(HEARTBEAT, False), attrs.get(EARLIER, False)
    if type(group) is not str or not is_text(group) or type(is_heartbeat) is not bool or type(is_earlier) is not bool:
        return None
    if type(view) is not int or not 0 <= view < 1 << VIEW_BITS:
        return None
    if type(process) is not int or not 0 <= process < len(clock):
        return None
    values = {name: attrs[name] for name in attrs if not name.startswith("$") and name != VALUE}
    if reading.value is not None and is_scalar(reading.value):
        values[VALUE] = reading.value
    if is_heartbeat and values:
        return None
    return LocalState(group, view, process, clock, is_heartbeat, values, is_earlier)
