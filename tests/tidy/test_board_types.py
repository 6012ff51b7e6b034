"""Board code is type-checked against boards: the stubs of each port find errors that CPython's types do not show."""

import os
import re
import subprocess
import sys

import pytest

from support.paths import REPOSITORY

PORTS = ["rp2", "esp32"]
MAKEFILE = (REPOSITORY / "Makefile").read_text()
WRONG = [
    # (line, what mypy calls it)
    ('machine.UART(0, "9600")', "call-overload|arg-type"),
    ("time.monotonic_ns()", "attr-defined"),
    ("import dataclasses", "import-not-found"),
    ("time.ticks_us() - time.ticks_us() > 3", "operator"),
    ('machine.Pin("LED", machine.Pin.OUTPUT)', "attr-defined"),
    ("os.O_RDONLY", "attr-defined"),
]


def mypy(port, *words):
    """Finished process of the second type check of these packages and files."""
    stubs = REPOSITORY / ".typings" / port
    assert (stubs / "machine.pyi").exists(), (
        f"{stubs}: found no stubs, expected those of {port}; make .typings/{port}/.ready"
    )
    return subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", "edge/typings/mypy.ini", "--custom-typeshed-dir", str(stubs),
         "--cache-dir", f".mypy_cache/{port}", *words],
        env={**os.environ, "MYPYPATH": str(stubs)},
        cwd=REPOSITORY, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("port", PORTS)
def test_board_code_is_sound_with_what_the_port_has(port):
    """The packages and modules that `make lint` names."""
    named = re.search(r"^BOARD_CODE := (.*?)\n(?! )", MAKEFILE, re.M | re.S)[1]
    packages = re.search(r"-p ,([\w. ]+)", named)[1].split()
    below = re.search(r"-m whenabouts_edge\.,([\w. ]+)", named)[1].split()
    assert "whenabouts_edge.board" in packages
    words = [word for name in packages for word in ("-p", name)]
    words += [word for name in below for word in ("-m", f"whenabouts_edge.{name}")]
    done = mypy(port, *words)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("port", PORTS)
def test_the_stubs_find_what_no_board_has(port, tmp_path):
    """Each wrong line, by its own kind of mistake, and no other line."""
    source = tmp_path / "wrong.py"
    fine = [
        "import machine",
        "import os",
        "import time",
        "machine.UART(0, 9600, rxbuf=1024)",
        "time.ticks_diff(time.ticks_us(), time.ticks_us())",
    ]
    source.write_text("\n".join([*fine, *(line for line, _ in WRONG)]) + "\n")
    problems = {
        int(line): kind
        for line, kind in re.findall(r"wrong\.py:(\d+): error: .*\[([\w-]+)\]$", mypy(port, str(source)).stdout, re.M)
    }
    assert sorted(problems) == list(range(len(fine) + 1, len(fine) + len(WRONG) + 1))
    for number, (line, kind) in enumerate(WRONG, len(fine) + 1):
        assert re.fullmatch(kind, problems[number]), line
