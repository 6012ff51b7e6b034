"""What is left out of a board's program, and what is refused, by small programs that are run before and after."""

import ast
import importlib
import os
import subprocess
import sys

import pytest

from support.paths import REPOSITORY
from whenabouts_edge.flash.join import JoinError, joined
from whenabouts_edge.flash.nodes import walk
from whenabouts_edge.flash.program import reduced
from whenabouts_edge.flash.refusals import ProgramError

ONE = """
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any
A, B = range(2, 4)
LIMIT = -(A << 3)
LARGE = 1 << 40
NAME = "short"

def used(kind, config):
    if "group" in config:
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


def test_every_node_of_a_tree_is_seen():
    """As Python's own walk gives them, without operators and what is done with a name; by every module of agents."""
    silent = (ast.expr_context, ast.operator, ast.unaryop, ast.cmpop, ast.boolop)
    for path in sorted((REPOSITORY / "edge").rglob("*.py")):
        tree = ast.parse(path.read_text())
        assert walk(tree) == [node for node in ast.walk(tree) if not isinstance(node, silent)]


def program(tmp_path, used="main()", root="one", **sources):
    """The reduced sources."""
    for name, source in sources.items():
        (tmp_path / f"{name}.py").write_text(source)
    return reduced({name: tmp_path / f"{name}.py" for name in sources}, root, ["rdm6300"], [], used)


def test_what_a_board_never_uses_is_left_out(tmp_path):
    """Type checking, other options, constants, functions that nobody mentions; what runs says the same."""
    [source] = program(tmp_path, "main(), used", "two", one=ONE, two=TWO).values()
    for name in ("unused", "alone", "group", "led", "TYPE_CHECKING", "LIMIT", "import one"):
        assert name not in source
    assert str(1 << 40) not in source  # too large for a board's small integers: it stays a name
    before, after = {}, {}
    exec(ONE, before)
    exec(source, after)
    assert after["used"]("rdm6300", {}) == before["used"]("rdm6300", {}) == (-29, "short", 1 << 40)
    assert after["main"]() == ((-29, "short", 1 << 40), -16)
    with pytest.raises(ImportError, match="wifi"):
        after["used"]("rdm6300", {"wifi": {}})


def test_what_is_mentioned_anywhere_stays(tmp_path):
    """As an attribute, a text, or by who uses the program."""
    source = "def a(): pass\ndef b(): pass\ndef c(): pass\ndef d(): pass\n"
    main = "from one import a\ndef main(y):\n    return y.b, getattr(y, 'c'), a\n"
    [found] = program(tmp_path, "x.a(), main()", "two", one=source, two=main).values()
    names = {node.name for node in ast.parse(found).body}
    assert names == {"a", "b", "c", "main"}


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("return getattr(x, name)", "`getattr.x, name.`, expected a name that stands"),
        ("return setattr(x, 'a' + name, 1)", "`setattr.*, expected a name that stands"),
        ("return hasattr(*x)", "`hasattr.*, expected a name that stands"),
        ("return delattr(x, name)", "`delattr.*, expected a name that stands"),
        ("return [getattr(x, one) for one in name]", "`getattr.*, expected a name that stands"),
        ("return [getattr(x, one) for one in MADE]", "`getattr.*, expected a name that stands"),
        ("return [getattr(x, one) for one in TWICE]", "`getattr.*, expected a name that stands"),
        ("return map(getattr, x, name)", "`getattr`, which may use any name"),
        ("return globals()[x]", "`globals`, which"),
        ("return locals()[x]", "`locals`, which"),
        ("return vars(x)", "`vars`, which"),
        ("return dir(x)", "`dir`, which"),
        ("return eval(x)", "`eval`, which"),
        ("exec(x)", "`exec`, which"),
        ("return x.__dict__", "`x.__dict__`, which"),
        ("from operator import attrgetter", "attrgetter`, which"),
        ("return x(**name)", r"`\*\*name`, expected a mapping called options"),
        ("_3 = x", "`_3`, expected no name that is a number"),
        ("return x._3", "`x._3`, expected no name that is a number"),
        ("return lambda _3: x", "expected no name that is a number"),
    ],
)
def test_a_program_whose_names_cannot_be_told_is_refused(tmp_path, line, found):
    """By the module, and what is wrong there."""
    lists = "MADE = tuple(['a'])\nTWICE = ('a',)\nTWICE = MADE\n"
    with pytest.raises(ProgramError, match=f"one: found .*{found}"):
        program(tmp_path, one=f"{lists}def main(x, name):\n    {line}\n")


def test_an_import_of_everything_is_refused(tmp_path):
    """It brings names that stand nowhere."""
    with pytest.raises(ProgramError, match=r"one: found `from os import \*`, expected names"):
        program(tmp_path, one="from os import *\ndef main():\n    return 1\n")


def test_options_keep_their_names(tmp_path):
    """By agreement the keys stand as texts: then the parameter is no number."""
    source = "def main(kind):\n    options = {'form': kind}\n    return use(**options)\n"
    source += "def use(form, rest=1):\n    return form\n"
    found = program(tmp_path, one=source)["one"]
    assert "form" in found
    assert "rest" not in found
    after = {}
    exec(found, after)
    assert after["main"](7) == 7


def test_names_from_a_list_in_the_program_stay(tmp_path):
    """A text may name an attribute."""
    source = "NAMES = ('_first', '_second')\nclass C:\n    def __init__(self):\n"
    source += "        self._first = self._second = self._third = 1\n"
    source += "def main():\n    return [getattr(C(), name) for name in NAMES]\n"
    found = program(tmp_path, one=source)["one"]
    assert "_first" in found
    assert "_third" not in found
    after = {}
    exec(found, after)
    assert after["main"]() == [1, 1]


def run(tmp_path, sources, monkeypatch):
    """What `main` of the module `run` gives, imported from files."""
    for name, source in sources.items():
        (tmp_path / f"{name}.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("run", "base", "late", "odd", "whole"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    importlib.invalidate_caches()
    return importlib.import_module("run").main()


PROGRAM = {
    "base": (
        "STEPS = []\nclass Base:\n"
        "    def __init__(self, value):\n        self._inner = value\n        STEPS.append(1)\n"
    ),
    "odd": "def open(value):\n    return value + 1\n",
    "whole": "from base import STEPS\ndef give():\n    return len(STEPS)\n",
    "late": "from base import Base\nclass Late(Base):\n    def twice(self):\n        return 2 * self._inner\n",
    "run": (
        "import whole\nfrom base import Base\nfrom odd import open as opened\n"
        "def main():\n    from late import Late\n    return Late(4).twice(), Base(3)._inner, opened(1), whole.give()\n"
    ),
}


def test_a_joined_program_does_the_same(tmp_path, monkeypatch):
    """One module, but for what is loaded later, is imported as a whole, or hides one of Python's own names."""
    for folder in ("before", "in", "after"):
        (tmp_path / folder).mkdir()
    before = run(tmp_path / "before", PROGRAM, monkeypatch)
    found = program(tmp_path / "in", "main", "run", **PROGRAM)
    assert set(found) == {"run", "late", "odd", "whole"}
    assert "_inner" not in "".join(found.values())
    assert run(tmp_path / "after", found, monkeypatch) == before == (8, 3, 2, 2)


def test_a_name_that_means_two_things_keeps_its_module_apart():
    """Also when one of the two is imported from elsewhere."""
    trees = {name: ast.parse(source) for name, source in {
        "one": "def same(): return 1\n", "two": "from os.path import join as same\n",
        "three": "def other(): global same\n", "run": "import two\nfrom one import same\nfrom three import other\n",
    }.items()}  # fmt: skip
    assert set(joined(trees, "run")) == {"run", "two", "three"}


def test_what_a_reader_needs_is_joined_though_it_is_loaded_later():
    """The module of the reader is not: it is loaded by its name, and takes it from the joined one."""
    trees = {
        "run": ast.parse("def go():\n    return __import__('whenabouts_hardware.readers.acme').READER"),
        "whenabouts_hardware.readers.acme": ast.parse("from two import A\nREADER = A"),
        "two": ast.parse("from three import A"),
        "three": ast.parse("A = [2]"),
    }
    found = joined(trees, "run")
    assert set(found) == {"run", "whenabouts_hardware.readers.acme"}
    assert "from run import A" in ast.unparse(found["whenabouts_hardware.readers.acme"])
    assert ast.unparse(found["run"]).startswith("A = [2]")


def test_modules_that_import_each_other_are_refused():
    """There is no order for them."""
    trees = {"run": ast.parse("from one import a"), "one": ast.parse("from run import b")}
    with pytest.raises(JoinError, match="itself"):
        joined(trees, "run")


def test_the_same_sources_give_the_same_bytes():
    """Whatever order sets have in a process, so that a board is not flashed anew."""
    code = (
        "import hashlib; from support.board.files import ROOT; from whenabouts_edge.flash.modules import needed, place;"
        "from whenabouts_edge.flash.program import reduced; from whenabouts_edge.flash.compiler import compiled;"
        "kinds, options = ['line', 'm6e'], ['group', 'rules', 'wifi'];"
        "found = reduced(needed([ROOT], kinds, options), ROOT, kinds, options, 'forever');"
        "print([(n, hashlib.sha256(compiled(s, n)).hexdigest()) for n, s in found.items()])"
    )
    path = os.pathsep.join(sys.path)
    told = {
        subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": path},
            capture_output=True, text=True, timeout=120, check=True,
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(told) == 1
    assert "whenabouts_edge.board.run" in told.pop()
