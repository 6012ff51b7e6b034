"""Modules that boards import keep to what MicroPython has and to what means the same there.

Beside this, mpy-cross compiles them (tests/micropython), which finds syntax; this finds what compiles and then differs.
"""

import ast

import pytest

from support.sources import modules, run_time_imports

STANDARD = {
    "struct",
    "binascii",
    "collections",
    "hashlib",
    "json",
}  # of collections only namedtuple, which every board has
OURS = ("whenabouts_protocol", "whenabouts_hardware")
# What CPython has in C and the module replaces where it is absent.
REPLACED = {"whenabouts_protocol.eager": {"bisect"}}
# Drivers and tables of the hardware package that only CPython imports.
CPYTHON_ONLY = ("whenabouts_hardware.boards", "whenabouts_hardware.port", "whenabouts_hardware.serial_handlers")
# Of the edge package only its cores run on boards.
EDGE_CORES = (
    "whenabouts_edge.stamp", "whenabouts_edge.presence.visits",
    "whenabouts_edge.eager", "whenabouts_edge.eager.rules", "whenabouts_edge.group",
    "whenabouts_edge.group.conditions", "whenabouts_edge.group.dense_clock", "whenabouts_edge.group.detection",
    "whenabouts_edge.group.membership", "whenabouts_edge.group.peers", "whenabouts_edge.group.process",
    "whenabouts_edge.board.agent", "whenabouts_edge.board.batch", "whenabouts_edge.board.config",
    "whenabouts_edge.board.courier", "whenabouts_edge.board.draft", "whenabouts_edge.board.group",
    "whenabouts_edge.board.lamp", "whenabouts_edge.board.mqtt", "whenabouts_edge.board.reader",
    "whenabouts_edge.board.ring", "whenabouts_edge.board.rules", "whenabouts_edge.board.sntp",
    "whenabouts_edge.board.store", "whenabouts_edge.board.ticks", "whenabouts_edge.board.watch",
    "whenabouts_edge.board.wifi",
)  # fmt: skip
SHARED = {
    name: path
    for name, path in modules().items()
    if name in EDGE_CORES or (name.startswith(OURS) and not name.startswith(CPYTHON_ONLY))
}
MAY_USE_FLOATS = {
    "whenabouts_protocol.probability": "a probability is a float in the end; the ratio it comes from is of integers",
    "whenabouts_protocol.cbor": "values may be floats; half precision is put together by hand",
}
ABSENT_METHODS = {"zfill", "removeprefix", "removesuffix", "bit_length", "_replace", "iter_unpack", "hexdigest"}


def faults(source, name=""):
    """What of a module's source does not belong on a board, as (line, what)."""
    found = []
    for node in ast.walk(ast.parse(source)):
        what = _fault(node, name in MAY_USE_FLOATS)
        if what:
            found.append((node.lineno, what))
    return found


def _fault(node, floats):
    if isinstance(node, ast.Match):
        return "match"
    if isinstance(node, ast.arguments) and node.posonlyargs:
        return None  # reported at the function, which has a line
    if isinstance(node, ast.FunctionDef | ast.Lambda) and node.args.posonlyargs:
        return "positional-only parameters"
    if isinstance(node, ast.AsyncFunctionDef):
        return "async in a core"
    if isinstance(node, ast.Constant) and isinstance(node.value, float) and not floats:
        return "float literal"
    if isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.Div) and not floats:
        return "true division"
    if isinstance(node, ast.Delete) and any(
        isinstance(t, ast.Subscript) and isinstance(t.slice, ast.Slice) for t in node.targets
    ):
        return "del of a slice"
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice) and node.slice.step is not None:
        return "slice with a step"
    if isinstance(node, ast.ClassDef) and any(k.arg == "metaclass" for k in node.keywords):
        return "metaclass"
    if isinstance(node, ast.Call):
        return _fault_of_call(node)
    if isinstance(node, ast.For | ast.comprehension):
        return _fault_of_order(node)
    return None


def _fault_of_call(node):
    if isinstance(node.func, ast.Attribute) and node.func.attr in ABSENT_METHODS:
        return f"{node.func.attr}(), absent on boards"
    if isinstance(node.func, ast.Name) and node.func.id == "zip" and node.keywords:
        return "zip(strict=), absent on boards"
    if isinstance(node.func, ast.Name) and node.func.id in ("list", "tuple", "enumerate") and len(node.args) == 1:
        return "a list in the order of a map" if _is_view(node.args[0]) else None
    if isinstance(node.func, ast.Attribute) and node.func.attr == "join" and node.args and _is_view(node.args[0]):
        return "a text in the order of a map"
    return None


def _fault_of_order(node):
    """A loop over a view of a map; `all`, `any` and `sorted` do not mind, so generators inside calls are let through."""
    return "a loop in the order of a map" if isinstance(node, ast.For) and _is_view(node.iter) else None


def _is_view(node):
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("items", "keys", "values")
        and not node.args
    ) or isinstance(node, ast.Set | ast.SetComp)


@pytest.mark.parametrize("name", SHARED)
def test_shared_modules_keep_to_the_subset(name):
    """No float, no true division, no order of maps, nothing that boards lack."""
    assert faults(SHARED[name].read_text(encoding="utf-8"), name) == []


@pytest.mark.parametrize("name", SHARED)
def test_shared_modules_import_what_boards_have(name):
    """struct and binascii, and each other."""
    names = run_time_imports(SHARED[name])
    assert not [n for n in names if n.startswith("collections.") and n != "collections.namedtuple"]
    names = {n for n in names if not n.startswith(EDGE_CORES)}
    outside = {n.split(".")[0] for n in names} - STANDARD - set(OURS) - REPLACED.get(name, set())
    assert outside == set()


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ("match x:\n    case 1: pass", "match"),
        ("def f(a, /): pass", "positional-only parameters"),
        ("x = 1.5", "float literal"),
        ("x = a / b", "true division"),
        ("x /= b", "true division"),
        ("del x[1:2]", "del of a slice"),
        ("y = x[::2]", "slice with a step"),
        ("class A(metaclass=B): pass", "metaclass"),
        ("x.zfill(3)", "zfill(), absent on boards"),
        ("zip(a, b, strict=True)", "zip(strict=), absent on boards"),
        ("for k, v in d.items(): pass", "a loop in the order of a map"),
        ("list(d.values())", "a list in the order of a map"),
        ("','.join(d.keys())", "a text in the order of a map"),
        ("x = {1: 2}; y = x[0:2]; z = a // b; w = sorted(d.items()); all(k for k in d.values()); del x[1]", None),
    ],
)
def test_the_check_of_the_subset_sees_what_it_is_for(source, what):
    """One line of each kind that it refuses, and one of what it allows."""
    assert [found for _, found in faults(source)] == ([what] if what else [])


def test_the_table_of_exceptions_is_needed():
    """A module that no longer uses floats leaves the table."""
    for name in MAY_USE_FLOATS:
        assert faults(SHARED[name].read_text(encoding="utf-8")) != []
