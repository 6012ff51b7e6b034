"""The content of a reading of kind `state`: one local state of one gateway, as a process of its group.

`vclock` of the reading is the dense clock at the begin of the state, its own entry the number of the state (0 is the first
one of the view). `attrs` are the state's values by name, beside the reserved names below; the reading's own `value` is there
when one predicate alone makes the state. A value that is not known is left out: at the start, and while changes lie so close
together that their order is not known. The stamp contains the moment of the change.

A clock-only report is such a reading with `$evidence`: it begins no state and has no values. It says that the state of its
own entry was still on when all of its clock was known.

A view is the ordered list of (gateway, boot) of a group's members; entry i of a clock belongs to its i-th member. Its number
is a digest, so that members with the same knowledge agree without a leader. In a new view every member begins at state 0
anew; states of different views are never compared.
"""

from hashlib import sha256

from whenabouts_protocol.cbor import dumps
from whenabouts_protocol.reading import check_origin, is_scalar, is_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from whenabouts_protocol.reading import Reading

    Members = list[tuple[str, int]]

GROUP, VIEW, PROCESS, EVIDENCE = "$group", "$view", "$process", "$evidence"
VALUE = "value"  # name under which the reading's own value is found among the values
KIND = "state"
VIEW_BITS = 48  # two views of a group that differ have the same number once in 10^14


class LocalState:
    """A state, or a clock-only report when `evidence`: group, number of the view, index of the process in it, number of the
    state, clock, and the values by name (under `value` the reading's own).
    """

    __slots__ = ("clock", "evidence", "group", "number", "process", "values", "view")

    def __init__(
        self,
        group: str,
        view: int,
        process: int,
        clock: "tuple[int, ...]",
        evidence: bool,
        values: "dict[str, int | float | str | bool]",
    ) -> None:
        self.group, self.view, self.process, self.clock = group, view, process, clock
        self.number = clock[process]
        self.evidence, self.values = evidence, values

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LocalState) and all(getattr(self, f) == getattr(other, f) for f in self.__slots__)

    def __hash__(self) -> int:
        return hash((self.group, self.view, self.process, self.clock))

    def __repr__(self) -> str:
        return "LocalState(" + ", ".join([f"{f}={getattr(self, f)!r}" for f in self.__slots__]) + ")"


def view_number(members: "Members", departed: "Members | None" = None) -> int:
    """The number of the view of these members in this order, from 0 to 2^48 - 1.

    departed: members that have left, with the boot in which they did. They have no place in clocks; they make the view
    after a leave another one than the view before the join, although both have the same members.

    Raises:
        ValueError: a member is no (gateway, boot).

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
    evidence: bool = False,
) -> "dict[str, int | float | str | bool]":
    """The attributes of a state reading; of a clock-only report when `evidence`, which has no values.

    Raises:
        ValueError: a value has a reserved name (beginning with $, or `value`), or a clock-only report has values.
    """
    attrs = dict(values or {})
    for name in sorted(attrs):
        if name.startswith("$") or name == VALUE:
            raise ValueError(f"state: found a value named {name!r}, expected another name; $... and value are reserved")
    if evidence and attrs:
        raise ValueError(f"clock-only report: found {len(attrs)} values, expected none")
    attrs[GROUP], attrs[VIEW], attrs[PROCESS] = group, view, process
    if evidence:
        attrs[EVIDENCE] = True
    return attrs


def state_of(reading: "Reading") -> "LocalState | None":
    """The local state or clock-only report that a reading is; None when it is neither, or not well-formed.

    Names beginning with $ that are not known here are ignored.
    """
    if reading.kind != KIND:
        return None
    attrs, clock = reading.attrs, reading.vclock
    group, view, process = attrs.get(GROUP), attrs.get(VIEW), attrs.get(PROCESS)
    evidence = attrs.get(EVIDENCE, False)
    if type(group) is not str or not is_text(group) or type(evidence) is not bool:
        return None
    if type(view) is not int or not 0 <= view < 1 << VIEW_BITS:
        return None
    if type(process) is not int or not 0 <= process < len(clock):
        return None
    values = {name: attrs[name] for name in attrs if not name.startswith("$") and name != VALUE}
    if reading.value is not None and is_scalar(reading.value):
        values[VALUE] = reading.value
    if evidence and values:
        return None
    return LocalState(group, view, process, clock, evidence, values)
