"""Modules that boards import use only what MicroPython has and only with the same meaning.

Beside this, mpy-cross compiles them (tests/micropython), which finds syntax, and mypy checks them with the stubs of boards
(`make lint`), which finds most names.
"""

import ast
import subprocess

import pytest

from support.board.micropython import tool
from support.board.subset import ABSENT_ERRORS, ABSENT_METHODS, faults
from support.sources import modules, run_time_imports
from whenabouts_edge.flash.boards import board, known
from whenabouts_edge.flash.modules import ALL_KINDS, needed

STANDARD = {
    "struct",
    "binascii",
    "collections",
    "hashlib",
    "json",
}  # of collections only namedtuple, which every board has
# Modules that the firmware of the Pico W and of the ESP32 both have beside these.
BOARDS_HAVE = STANDARD | {
    "errno", "gc", "io", "machine", "micropython", "network", "ntptime", "os", "random", "re", "select", "socket", "ssl",
    "sys", "time", "uctypes", "vfs",
}  # fmt: skip
DRIVERS = {"whenabouts_edge.board", "whenabouts_edge.board.run"} | {
    f"whenabouts_edge.board.machine.{name}" for name in ("device", "flash", "net", "terminal", "tls")
}
OURS = ("whenabouts_protocol", "whenabouts_hardware")
# Modules that CPython has in C; the shared module replaces them where they are absent.
REPLACED = {"whenabouts_protocol.streaming_join": {"bisect"}}
CPYTHON_ONLY = ("whenabouts_protocol.logs",)  # boards print
CORES = ("whenabouts_edge.readers.visits",)  # no board's agent loads them yet, but they run there
ROOTS = sorted({root for name in known() for root in board(name).modules})
ON_BOARDS = needed(ROOTS, ALL_KINDS)
SHARED = ON_BOARDS | {
    name: path
    for name, path in modules().items()
    if name in CORES or (name.startswith(OURS) and not name.startswith(CPYTHON_ONLY))
}
MAY_USE_FLOATS = {
    "whenabouts_protocol.probability": "a probability is a float in the end; the ratio it comes from is of integers",
    "whenabouts_protocol.cbor": "values may be floats; half precision is put together by hand",
    "whenabouts_hardware.readers.line_values": "a number in the text of a sensor may be one",
}
# (module, what): why it does no harm there.
ALLOWED = {
    ("whenabouts_protocol.cbor", "recursion"): "to MAX_DEPTH",
    (
        "whenabouts_protocol.cbor",
        "a sort by a key: equal ones change places on boards",
    ): "no two keys of a map are equal",
    (
        "whenabouts_protocol.streaming_join",
        "a loop in the order of a map or set",
    ): "counts and drops come out the same in any order",
    ("whenabouts_protocol.reading", "recursion"): "once: attributes hold no maps",
    ("whenabouts_edge.board.machine.flash", "fsync(), absent on boards"): "where there is one",
    ("whenabouts_edge.board.run", "monotonic_ns(), absent on boards"): "where there are no ticks",
    ("whenabouts_edge.board.run", "true division"): "for CPython's sleep",
}


def found_in(name):
    """The faults of a shared module, without those that are allowed to it."""
    problems = faults(SHARED[name].read_text(encoding="utf-8"), name in MAY_USE_FLOATS)
    return [(line, what) for line, what in problems if (name, what) not in ALLOWED]


def by_module(fault):
    """Result of `fault` by shared module, where it is not empty: one test looks at all modules."""
    return {name: problem for name in SHARED if (problem := fault(name))}


def test_shared_modules_keep_to_the_subset():
    """No float, no true division, no reliance on the order of maps, nothing that boards lack."""
    assert by_module(found_in) == {}


def absent_imports(name):
    """Modules that a shared module imports and a board does not have."""
    names = run_time_imports(SHARED[name])
    brought = BOARDS_HAVE if name in DRIVERS else STANDARD
    outside = {n.split(".")[0] for n in names} - brought - {*OURS, "whenabouts_edge"} - REPLACED.get(name, set())
    return outside | {n for n in names if n.startswith("collections.") and n != "collections.namedtuple"}


def test_shared_modules_import_what_boards_have():
    """A core needs struct and its like, a driver what the firmware of every board brings; and each other."""
    assert by_module(absent_imports) == {}


def test_shared_modules_compile_for_boards(tmp_path):
    """The cross compiler takes each as it is, for the smallest chip."""

    def refused(name):
        done = subprocess.run(
            [str(tool("mpy-cross")), "-march=armv6m", "-o", str(tmp_path / "out.mpy"), str(SHARED[name])],
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        return done.stderr if done.returncode else ""

    assert by_module(refused) == {}


def test_everything_that_a_board_loads_is_looked_at():
    """Board code, rules and groups too."""
    assert {"whenabouts_edge.board.run", "whenabouts_edge.rules.evaluate", "whenabouts_edge.group.process"} <= set(
        SHARED
    )


REFUSED = [
    # Absent.
    ("match x:\n    case 1: pass", "match"),
    ("def f(a, /): pass", "positional-only parameters"),
    ("f = lambda a, /: a", "positional-only parameters"),
    ("async def f(): pass", "async"),
    ("class A(metaclass=B): pass", "metaclass"),
    ("del x[1:2]", "del of a slice"),
    ("y = x[::2]", "slice with a step"),
    *((f"x.{name}()", f"{name}(), absent on boards") for name in sorted(ABSENT_METHODS)),
    *(
        (f"raise {name}", f"{name}, absent on boards: catch OSError and look at errno")
        for name in sorted(ABSENT_ERRORS)
    ),
    ("os.replace(a, b)", "os.replace, absent on boards"),
    ("os.path.join(a, b)", "os.path, absent on boards"),
    ("e.__cause__", "__cause__, absent on boards"),
    ("zip(a, b, strict=True)", "zip(strict=), absent on boards"),
    ("json.dumps(x, sort_keys=True)", "dumps(sort_keys=), absent on boards"),
    ("x.to_bytes(4, 'big', signed=True)", "to_bytes(signed=), absent on boards"),
    ("deque()", "deque() without a length"),
    ("deque(x, maxlen=3)", "deque() without a length"),
    # There, and different.
    ("x = 1.5", "float literal"),
    ("x = 1j", "float literal"),
    ("x = a / b", "true division"),
    ("x /= b", "true division"),
    ("x = 10 ** -3", "negative power"),
    ("x = float(y)", "float()"),
    ("x = time.time()", "time.time(): a float here, whole seconds there"),
    ("isinstance(x, int)", "isinstance(_, int), which is false for True on boards"),
    ("isinstance(x, (str, int))", "isinstance(_, int), which is false for True on boards"),
    ("class A(B, C): pass", "several base classes: super() skips one"),
    ("x.sort(key=f)", "a sort by a key: equal ones change places on boards"),
    ("sorted(x, key=f)", "a sort by a key: equal ones change places on boards"),
    ("for k, v in d.items(): pass", "a loop in the order of a map or set"),
    ("d = {}\nfor k in d: pass", "a loop in the order of a map or set"),
    ("self.d: dict[int, str] = f()\nfor k in self.d: pass", "a loop in the order of a map or set"),
    ("def f(d: 'dict[int, str]'):\n    for k in d: pass", "a loop in the order of a map or set"),
    ("s = set(x)\nfor k in s: pass", "a loop in the order of a map or set"),
    ("list(d.values())", "a list in the order of a map or set"),
    ("x = [f(v) for v in d.values()]", "a list in the order of a map or set"),
    ("first = next(iter({1, 2}))", "a list in the order of a map or set"),
    ("','.join(d.keys())", "a text or list in the order of a map or set"),
    # The stack of a board ends at some 20 calls.
    ("def f(n): return f(n - 1)", "recursion"),
    ("class A:\n    def f(self): self.g()\n    def g(self): return h(self)\ndef h(a): return f(a)", "recursion"),
]
ALLOWED_LINES = [
    "x = {1: 2}; y = x[0:2]; z = a // b; del y[1]",
    "w = sorted(d.items()); all(k for k in d.values()); n = len(d); m = max(d.values())",
    "for k in sorted(d): pass",
    "isinstance(x, str); isinstance(x, (bool, int)); x.to_bytes(4, 'big'); deque((), 4)",
    "raise OSError; os.rename(a, b); time.ticks_us(); x = 2 ** 10",
    "def f(n): return g(n)\ndef g(n): return n",
    "def f(other): return other.f()",
]


@pytest.mark.parametrize(("source", "what"), REFUSED, ids=[source for source, _ in REFUSED])
def test_the_check_of_the_subset_sees_what_it_is_for(source, what):
    """One line of each kind that it refuses."""
    assert {problem for _, problem in faults(source)} == {what}


@pytest.mark.parametrize("source", ALLOWED_LINES)
def test_the_check_of_the_subset_lets_the_rest_through(source):
    """Code that resembles the refused lines and is allowed."""
    ast.parse(source)
    assert faults(source) == []


def test_floats_are_allowed_where_they_are_named():
    """Where floats are allowed, all other faults are still found."""
    assert faults("x = 1.5 / 2", floats=True) == []
    assert faults("x = y[::2] / 2", floats=True) == [(1, "slice with a step")]


def test_the_tables_of_exceptions_are_needed():
    """A module that no longer needs its exception leaves the table."""
    for name in MAY_USE_FLOATS:
        assert faults(SHARED[name].read_text(encoding="utf-8")) != faults(
            SHARED[name].read_text(encoding="utf-8"), True
        )
    for name, what in ALLOWED:
        assert what in {
            problem for _, problem in faults(SHARED[name].read_text(encoding="utf-8"), name in MAY_USE_FLOATS)
        }
