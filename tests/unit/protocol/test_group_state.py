"""State readings: local states, clock heartbeats, and the numbers of views."""

import pytest

from whenabouts_protocol import Reading, decode_batch, encode_batch
from whenabouts_protocol.group_state import LocalState, attrs_of, state_of, view_number
from whenabouts_protocol.reading import MAX_PROCESSES

VIEW = view_number([("phone", 1), ("rfid", 7), ("wall", 3)])


def reading(attrs, vclock=(4, 2, 0), kind="state", value=None):
    return Reading(
        site="hall", gateway="rfid", boot=7, seq=0, stream="rfid/state", kind=kind, value=value, attrs=attrs, t_min=0,
        t_max=9, vclock=vclock,
    )  # fmt: skip


def test_a_state_reading_has_group_view_process_number_clock_and_values():
    """Its number is its own entry of the clock; the reading's own value is found under `value`."""
    state = state_of(reading(attrs_of("office", VIEW, 1, {"speaker": True, "room": "b2"}), value=True))
    assert state == LocalState(
        "office", VIEW, 1, (4, 2, 0), False, {"speaker": True, "room": "b2", "value": True}
    )  # fmt: skip
    assert state.number == 2


def test_a_clock_only_report_has_no_values():
    """It names the state that is still on, and is refused with values, in writing and in reading."""
    state = state_of(reading(attrs_of("office", VIEW, 1, is_heartbeat=True)))
    assert (state.is_heartbeat, state.number, state.values) == (True, 2, {})
    with pytest.raises(ValueError, match="clock heartbeat: found 1 values, expected none"):
        attrs_of("office", VIEW, 1, {"speaker": True}, is_heartbeat=True)
    assert state_of(reading({**attrs_of("office", VIEW, 1, is_heartbeat=True), "speaker": True})) is None
    assert state_of(reading(attrs_of("office", VIEW, 1, is_heartbeat=True), value=False)) is None


@pytest.mark.parametrize("name", ["$view", "$more", "value"])
def test_reserved_names_are_no_names_of_values(name):
    """The text has the name."""
    with pytest.raises(ValueError, match="are reserved"):
        attrs_of("office", VIEW, 1, {name: 1})


GOOD = attrs_of("office", VIEW, 1, {"speaker": True})


@pytest.mark.parametrize(
    "change",
    [
        {"$group": 3},
        {"$group": ""},
        {"$view": "x"},
        {"$view": -1},
        {"$view": 1 << 48},
        {"$view": True},
        {"$process": 3},
        {"$process": -1},
        {"$process": False},
        {"$heartbeat": 1},
    ],
)
def test_what_is_not_well_formed_is_no_state(change):
    """Nothing is raised for what others have written."""
    assert state_of(reading({**GOOD, **change})) is None


def test_other_readings_are_no_states():
    """Another kind, no clock, no attributes; an unknown name with $ is ignored."""
    assert state_of(reading(GOOD, kind="measure")) is None
    assert state_of(reading(GOOD, vclock=())) is None
    assert state_of(reading({})) is None
    assert state_of(reading({**GOOD, "$later": 5})).values == {"speaker": True}


def test_a_state_reading_goes_over_the_wire_unchanged():
    """Also with the largest group and the largest counts."""
    vclock = tuple([(1 << 62) + i for i in range(MAX_PROCESSES)])
    sent = reading(attrs_of("office", (1 << 48) - 1, 63, {"level": -2}), vclock)
    assert decode_batch(encode_batch([sent])) == [sent]
    assert state_of(sent).number == (1 << 62) + 63


def test_the_number_of_a_view_depends_on_members_their_boots_their_order_and_who_left():
    """Equal lists give equal numbers; every change of the list another one."""
    a, b = ("a", 1), ("b", 5 << 32 | 77)
    assert view_number([a, b]) == view_number([("a", 1), ("b", 5 << 32 | 77)])
    c = ("b", 6)
    views = [([a, b], []), ([b, a], []), ([a], []), ([], []), ([a], [b]), ([], [a, b]), ([a, c], []), ([a], [c])]
    different = [view_number(*view) for view in views]
    assert len(set(different)) == len(different)
    assert all(0 <= number < 1 << 48 for number in different)


def test_a_view_has_a_known_number():
    """Never changed: gateways of different versions must agree."""
    assert view_number([("phone", 1), ("rfid", 7), ("wall", 3)]) == 267_819_343_578_421
    for wrong in ([("a b", 1)], [("a", -1)], [("a", "1")]):
        with pytest.raises(ValueError, match="found"):
            view_number(wrong)
