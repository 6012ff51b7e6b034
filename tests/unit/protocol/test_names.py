"""Names that packages load on demand, and the layout that all messages share."""

import pytest

import whenabouts_cloud.cep
import whenabouts_cloud.latwin
import whenabouts_cloud.spark
import whenabouts_hardware
import whenabouts_protocol
from whenabouts_protocol.errors import WireError
from whenabouts_protocol.layout import K_LANDED, Dictionary, boots_in, int_in, pack_key
from whenabouts_protocol.lazy import load

PACKAGES = [
    whenabouts_protocol,
    whenabouts_hardware,
    whenabouts_cloud.cep,
    whenabouts_cloud.latwin,
    whenabouts_cloud.spark,
]


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_every_name_of_a_package_is_loaded_on_first_use(package):
    """And is one object each time."""
    for name in package.__all__:
        assert getattr(package, name) is getattr(package, name)
    with pytest.raises(AttributeError, match=f"'{package.__name__}' has no attribute 'nothing'"):
        getattr(package, "nothing")  # noqa: B009  # mypy knows that it is not there


def test_a_name_is_that_of_a_submodule_or_the_submodule_itself():
    """MicroPython asks a package for its submodules as for names."""
    homes = (("errors", "WireError"),)
    assert load("whenabouts_protocol", "WireError", homes) is WireError
    assert load("whenabouts_protocol", "errors", homes).WireError is WireError
    with pytest.raises(AttributeError, match="'whenabouts_protocol' has no attribute 'Wire'"):
        load("whenabouts_protocol", "Wire", homes)


def test_a_dictionary_counts_in_order_of_appearance():
    """An equal value keeps its place."""
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
        boots_in({K_LANDED: entries}, K_LANDED)
    assert boots_in({K_LANDED: [[3, 4], [7, 0]]}, K_LANDED) == {3: 4, 7: 0}


def test_an_integer_is_no_truth_value():
    """And within its limits."""
    assert int_in(5, 5, 5, "five") == 5
    for value in (True, 4, 6, "5"):
        with pytest.raises(WireError, match="five: found"):
            int_in(value, 5, 5, "five")
