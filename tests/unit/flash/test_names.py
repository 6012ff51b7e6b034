"""Which names of a board's program become numbers, by small programs that are run before and after."""

import ast

from whenabouts_edge.flash.module_names import shorten_modules
from whenabouts_edge.flash.shorten import shorten_attributes

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


def shortened(trees, kept):
    """Numbers for all that gets one, in place."""
    shorten_attributes(trees, kept)
    shorten_modules(trees, kept)


def test_short_names_mean_the_same():
    """Attributes of base and derived class stay apart, and so do parameters of functions within each other."""
    tree = ast.parse(SHORT)
    shortened({"one": tree}, {"Derived", "total"})
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
    shortened({"one": tree}, {"_helper"})
    assert "_helper" in ast.unparse(tree)


def test_public_attributes_stay():
    """The firmware may look them up, and its objects have such too."""
    tree = ast.parse("class C:\n    def _own(self): pass\n    def ioctl(self): self.line.read(self._own())\n")
    shortened({"one": tree}, set())
    text = ast.unparse(tree)
    assert all(name in text for name in ("ioctl", "line", "read"))
    assert "_own" not in text


SCOPES = """
from os import sep as join
from os.path import basename

def default(): return 5
def wrap(function): return function
def tool(): return "a tool"
def error(): return "error"
COUNTED = []

class Made:
    size = default()
    def _late(self): return 1
    @wrap
    def use(self, given, limit=default()):
        def inner(given=given):
            nonlocal limit
            limit = given + 1
            return limit
        try:
            raise ValueError(given)
        except ValueError as error:
            kept = str(error)
        return inner(), limit, kept, [given for given in range(given)], self._late(), basename("a/b"), join

def main():
    global COUNTED
    COUNTED = [*COUNTED, tool(), error()]
    return Made().use(2), Made.size, COUNTED
"""


def test_every_scope_is_kept():
    """Names of classes, handlers, `nonlocal`, `global`, decorators and defaults, and what comes from other packages."""
    tree = ast.parse(SCOPES)
    shortened({"one": tree}, {"main"})
    before, after = {}, {}
    exec(SCOPES, before)
    exec(ast.unparse(tree), after)
    assert after["main"]() == before["main"]()
    assert "tool()" not in ast.unparse(tree)


def test_names_of_modules_that_meet_nowhere_share_a_number():
    """And those that a third imports both do not."""
    sources = {
        "one": "def first(): return 1\n",
        "two": "def second(): return 2\n",
        "three": "def third(): return 3\n",
        "run": "from one import first\nfrom two import second\ndef main(): return first(), second()\n",
    }
    trees = {name: ast.parse(source) for name, source in sources.items()}
    shorten_modules(trees, {"main"})
    numbers = [trees[name].body[0].name for name in ("one", "two", "three")]
    assert len(set(numbers[:2])) == 2
    assert numbers[2] in numbers[:2]
