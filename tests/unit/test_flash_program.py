"""What is left out of a board's program, and what is renamed in it, by small programs that are run before and after."""

import ast

import pytest

from whenabouts_edge.flash.program import reduced
from whenabouts_edge.flash.shorten import shorten

ONE = """
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any
A, B = range(2, 4)
LIMIT = -(A << 3)
LARGE = 1 << 40
NAME = "short"

def used(kind, config):
    if kind == "m6e":
        return unused()
    if "wifi" in config:
        from whenabouts_edge.board import wifi
    if "led" in config:
        return 0
    return A * LIMIT + B, NAME, LARGE

def unused():
    return alone()

def alone():
    return 1
"""
TWO = "from one import LIMIT, used\ndef main():\n    return used('rdm6300', {}), LIMIT\n"


def program(tmp_path, used="main()", **sources):
    """The reduced sources."""
    for name, source in sources.items():
        (tmp_path / f"{name}.py").write_text(source)
    return reduced({name: tmp_path / f"{name}.py" for name in sources}, ["rdm6300"], [], used)


def test_what_a_board_never_uses_is_left_out(tmp_path):
    """Type checking, other kinds and options, constants, functions that nobody mentions; what runs says the same."""
    found = program(tmp_path, one=ONE, two=TWO)
    assert "unused" not in found["one"]
    assert "alone" not in found["one"]
    assert "m6e" not in found["one"]
    assert "led" not in found["one"]
    assert "TYPE_CHECKING" not in found["one"]
    assert "LIMIT" not in found["one"] + found["two"]
    assert "LARGE" in found["one"]  # too large for a board's small integers
    before, after = {}, {}
    exec(ONE, before)
    exec(found["one"], after)
    assert after["used"]("rdm6300", {}) == before["used"]("rdm6300", {}) == (-29, "short", 1 << 40)
    with pytest.raises(ImportError, match="wifi"):
        after["used"]("rdm6300", {"wifi": {}})


def test_what_is_mentioned_anywhere_stays(tmp_path):
    """As an attribute, a text, or by who uses the program."""
    source = "def a(): pass\ndef b(): pass\ndef c(): pass\ndef d(): pass\n"
    found = program(tmp_path, "x.a(), main()", one=source, two="def main(y):\n    return y.b, getattr(y, 'c')\n")
    names = {node.name for node in ast.parse(found["one"]).body}
    assert names == {"a", "b", "c"}


SHORT = """
class Base:
    def __init__(self, value, other=2):
        self._value, self.seen = value, other
    def _twice(self, factor):
        return self._value * factor
class Derived(Base):
    def __init__(self, amount):
        super().__init__(amount, other=5)
        self._own = [lambda item, step=amount: item + step + amount]
    def total(self, start):
        return self._own[0](start) + self._twice(3) + _helper(start, self.seen)
def _helper(start, seen):
    return [start + other for other in range(seen)][-1]
"""


def test_short_names_mean_the_same():
    """Attributes of base and derived class stay apart, and so do parameters of functions within each other."""
    tree = ast.parse(SHORT)
    shorten({"one": tree}, set())
    text = ast.unparse(tree)
    for name in ("_value", "_twice", "_own", "_helper", "factor", "amount"):
        assert name not in text
    assert "other" in text  # named in a call
    before, after = {}, {}
    exec(SHORT, before)
    exec(text, after)
    assert after["Derived"](7).total(11) == before["Derived"](7).total(11)


def test_names_that_others_look_up_stay():
    """A private one too."""
    tree = ast.parse(SHORT)
    shorten({"one": tree}, {"_helper"})
    assert "_helper" in ast.unparse(tree)
