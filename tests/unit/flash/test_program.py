"""The sources of a board's modules: conditions that never hold there are `False`, all else stays in its line."""

import ast
import hashlib
import os
import subprocess
import sys

import pytest

from support.board.files import ROOT
from support.paths import REPOSITORY
from whenabouts_edge.flash.compiler import compiled
from whenabouts_edge.flash.modules import ALL_KINDS, needed
from whenabouts_edge.flash.program import program, without_branches

SOURCE = """\
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

def used(kind, config):
    if "group" in config: return "µs"
    elif ("wifi" in config
          and kind):
        return "wifi"
    if "led" in config: return "led"
    return "rest"
"""
REDUCED = """\
TYPE_CHECKING = False
if False:
    from typing import Any

def used(kind, config):
    if False: return "µs"
    elif (False
):
        return "wifi"
    if "led" in config: return "led"
    return "rest"
"""


def test_conditions_that_never_hold_on_a_board_are_false():
    """Of the type checker, and of options that are absent; each in its own line."""
    assert without_branches(SOURCE, ["led"]) == REDUCED
    assert without_branches(SOURCE, ["group", "led", "wifi"]) == SOURCE.replace("if TYPE_CHECKING", "if False")


def test_what_is_left_does_the_same():
    """For every configuration that has no other options."""
    before, after = {}, {}
    exec(SOURCE, before)
    exec(without_branches(SOURCE, ["led"]), after)
    for config in ({}, {"led": 1}):
        assert after["used"]("rdm6300", config) == before["used"]("rdm6300", config)


def test_every_line_of_every_module_stays_where_it_is():
    """All that is neither a condition nor in its branch has the same place in the tree of every module of a board."""
    changed = 0
    for path in needed([ROOT], ALL_KINDS).values():
        source = path.read_text()
        reduced = without_branches(source, [])
        before, after = ast.parse(source), ast.parse(reduced)
        assert reduced.count("\n") == source.count("\n")
        assert [(type(node), node.lineno) for node in ast.walk(before) if isinstance(node, ast.stmt)] == [
            (type(node), node.lineno) for node in ast.walk(after) if isinstance(node, ast.stmt)
        ]
        changed += reduced != source
    assert changed > 20


def test_the_compiler_leaves_branches_docstrings_and_annotations_out():
    """They cost a board nothing, so the sources keep them."""
    plain = compiled("def used(x):\n    return x\n", "one.py")
    body = '    """Text."""\n    if False:\n        gone(x)\n    return x\n'
    rich = compiled(f'"""Text of a module."""\ndef used(x: "int") -> "int":\n{body}', "one.py")
    assert b"gone" not in rich
    assert b"Text" not in rich
    assert len(rich) < len(plain) + 8  # numbers of lines


@pytest.mark.parametrize("seed", ["1", "2"])
def test_the_same_sources_give_the_same_bytes(seed):
    """For any order of sets in a process, so that a board is not flashed again."""
    kinds, options = ["line", "m6e"], ["group", "rules", "wifi"]
    code = (
        "import hashlib, sys; from whenabouts_edge.flash.modules import needed;"
        "from whenabouts_edge.flash.program import program;"
        f"found = program(needed([{ROOT!r}], {kinds}, {options}), {options});"
        "print([(place, hashlib.sha256(code).hexdigest()) for place, code in found.items()])"
    )
    reported = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed}, cwd=REPOSITORY,
        capture_output=True, text=True, timeout=120, check=True,
    ).stdout  # fmt: skip
    here = program(needed([ROOT], kinds, options), options)
    assert ast.literal_eval(reported) == [(place, hashlib.sha256(code).hexdigest()) for place, code in here.items()]
    assert "whenabouts_edge/board/run.mpy" in here
