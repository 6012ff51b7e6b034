"""What can be imported from `whenabouts_protocol` itself, and what all messages are laid out by."""

import pytest

import whenabouts_protocol
from whenabouts_protocol.errors import WireError
from whenabouts_protocol.layout import K_A, Dictionary, boots_in, int_in, pack_key
from whenabouts_protocol.names import named


@pytest.mark.parametrize("name", whenabouts_protocol.__all__)
def test_every_name_is_that_of_a_module(name):
    """And the same one each time."""
    found = named(name)
    assert found is getattr(whenabouts_protocol, name)
    assert found.__name__ == name
    assert found.__module__.startswith("whenabouts_protocol.")


def test_other_names_are_modules_or_none():
    """A board's interpreter asks for modules as for names."""
    assert named("layout") is __import__("whenabouts_protocol.layout").layout
    with pytest.raises(AttributeError, match="found no 'nothing'"):
        named("nothing")


def test_a_dictionary_counts_in_order_of_appearance():
    """The same value keeps its place."""
    tags = Dictionary()
    assert [tags.index(value) for value in ("b", "a", "b")] == [0, 1, 0]
    assert tags.values == ["b", "a"]


@pytest.mark.parametrize(("key", "packed"), [("E2", b"\xe2"), ("e2", "e2"), ("E", "E"), ("", ""), ("0g", "0g")])
def test_only_upper_case_bytes_travel_as_bytes(key, packed):
    """Everything else stays the text it is."""
    assert pack_key(key) == packed


@pytest.mark.parametrize(
    "entries", [None, [3], [[3]], [[3, 4], [3, 5]], [[-1, 4]], [[3, 1 << 63]], [[n, 0] for n in range(65)]]
)
def test_numbers_of_boots_are_pairs(entries):
    """One of each boot, 64 at most."""
    with pytest.raises(WireError):
        boots_in({K_A: entries}, K_A)
    assert boots_in({K_A: [[3, 4], [7, 0]]}, K_A) == {3: 4, 7: 0}


def test_an_integer_is_no_truth_value():
    """And within its limits."""
    assert int_in(5, 5, 5, "five") == 5
    for value in (True, 4, 6, "5"):
        with pytest.raises(WireError, match="five: found"):
            int_in(value, 5, 5, "five")
