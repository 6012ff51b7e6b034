"""The cards in an answer of a PN532. After NXP UM0701-02, sections 7.3.5 and 7.3.13.

An answer to InListPassiveTarget does not name the kind of card; it is decoded as type A at 106 kbit/s, the type that
the agent asks for. InAutoPoll names it. In both, the target data begins with the target's number.
"""

from whenabouts_hardware.frame import as_hex

_TYPE_A = (0x00, 0x03, 0x10, 0x20, 0x40, 0x80)
_FELICA = (0x01, 0x02, 0x11, 0x12)
_JEWEL = 0x04
_TYPE_B = (0x23,)


class TargetError(Exception):
    """The lengths inside an answer contradict its size."""


def listed(data: bytes) -> "list[dict[str, object]]":
    """Targets of an InListPassiveTarget answer: tg, sens_res, sel_res, uid, ats if the card sent one.

    Raises:
        TargetError: the lengths do not add up.
    """
    targets: list[dict[str, object]] = []
    count = _byte(data, 0)
    at = 1
    for n in range(count):
        target, at = _type_a(data, at, at_end=n == count - 1)
        targets.append(target)
    if at != len(data):
        raise TargetError(f"found {len(data) - at} bytes behind {count} targets, expected none")
    return targets


def polled(data: bytes) -> "list[dict[str, object]]":
    """Targets of an InAutoPoll answer: type, tg and uid if the type is known, else data.

    Raises:
        TargetError: the lengths do not add up.
    """
    targets: list[dict[str, object]] = []
    at = 1
    for _ in range(_byte(data, 0)):
        kind, size = _byte(data, at), _byte(data, at + 1)
        one = data[at + 2 : at + 2 + size]
        if len(one) != size:
            raise TargetError(f"found {len(one)} bytes of a target, expected {size}")
        target: dict[str, object] = {"type": kind}
        target.update(_of_type(kind, one))
        targets.append(target)
        at += 2 + size
    if at != len(data):
        raise TargetError(f"found {len(data) - at} bytes behind the targets, expected none")
    return targets


def _of_type(kind: int, one: bytes) -> "dict[str, object]":
    if kind in _TYPE_A:
        target, end = _type_a(one, 0, at_end=True)
        if end != len(one):
            raise TargetError(f"found {len(one) - end} bytes behind the card's data, expected none")
        return target
    if kind in _FELICA and len(one) >= 11:  # tg, length, 01, NFCID2 of eight bytes
        return {"tg": one[0], "uid": one[3:11].hex()}
    if kind == _JEWEL and len(one) >= 7:  # tg, SENS_RES, id of four bytes
        return {"tg": one[0], "sens_res": one[1:3].hex(), "uid": one[3:7].hex()}
    if kind in _TYPE_B and len(one) >= 13:  # tg, ATQB of twelve bytes, of which four behind the 50 are the PUPI
        return {"tg": one[0], "uid": one[2:6].hex()}
    return {"data": as_hex(one)}


def _type_a(data: bytes, at: int, at_end: bool) -> "tuple[dict[str, object], int]":
    """The card of type A at `at`, and the index of its end. Bytes left after the last card are its answer to select."""
    size = _byte(data, at + 4)
    end = at + 5 + size
    if end > len(data):
        raise TargetError(f"found {len(data) - at - 5} bytes of an identifier, expected {size}")
    target: dict[str, object] = {
        "tg": data[at],
        "sens_res": data[at + 1 : at + 3].hex(),
        "sel_res": data[at + 3 : at + 4].hex(),
        "uid": as_hex(data[at + 5 : end]),
    }
    has_ats = end < len(data) and (at_end or data[at + 3] & 0x20)  # bit 6 of SEL_RES: ISO 14443-4
    if has_ats:
        size = data[end]
        if size == 0 or end + size > len(data):
            raise TargetError(f"found an answer to select of {size} bytes, expected at most {len(data) - end}")
        target["ats"] = as_hex(data[end : end + size])
        end += size
    return target, end


def _byte(data: bytes, at: int) -> int:
    if at >= len(data):
        raise TargetError(f"found the end at byte {at}, expected more")
    return data[at]
