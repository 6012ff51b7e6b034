"""Checking messages against wire.cddl with two independent tools.

pycddl runs in the process. It counts the elements of an array wrongly when one of several may repeat, so the one rule that
needs that, `attr_row`, is unrolled into one alternative for each number of attributes before pycddl sees it.
zcbor reads the file as it is, in a process with its own virtual environment (protocol/zcbor-requirements.txt).
"""

import os
import re
import subprocess
from functools import cache
from pathlib import Path

import pycddl

from support.files.vectors import SCHEMA
from support.paths import REPOSITORY

ATTRS_MAX = 32


@cache
def _pycddl(rule: str) -> pycddl.Schema:
    text = SCHEMA.read_text(encoding="utf-8")
    row = re.search(r"^attr_row = \[(.*), 1\*32 attr: scalar\]$", text, re.MULTILINE)
    assert row, "wire.cddl: found no attr_row that ends in `1*32 attr: scalar]`, which this unrolls"
    alternatives = [
        f"attr_row_{count} = [{row[1]}, " + ", ".join(f"a{n}: scalar" for n in range(count)) + "]"
        for count in range(1, ATTRS_MAX + 1)
    ]
    choice = "attr_row = " + " / ".join(f"attr_row_{count}" for count in range(1, ATTRS_MAX + 1))
    text = text.replace(row[0], "\n".join([choice, *alternatives]))
    return pycddl.Schema(f"start = {rule}\n{text}")


def pycddl_accepts(rule: str, data: bytes) -> bool:
    """True if pycddl accepts the data for the rule."""
    try:
        _pycddl(rule).validate_cbor(data)
    except pycddl.ValidationError:
        return False
    return True


def zcbor_python() -> str:
    """The Python beside the program zcbor: that of WHENABOUTS_ZCBOR, else that in `.venv-zcbor` of the checkout.

    Raises:
        FileNotFoundError: it is not there; a test that needs it must fail, not be skipped.
    """
    command = Path(os.environ.get("WHENABOUTS_ZCBOR") or REPOSITORY / ".venv-zcbor" / "bin" / "zcbor")
    if not command.exists():
        raise FileNotFoundError(
            f"zcbor: found nothing at {command}, expected the program; install protocol/zcbor-requirements.txt into a "
            "virtual environment .venv-zcbor of the checkout or name the program of another with WHENABOUTS_ZCBOR"
        )
    return str(command.with_name("python"))


@cache
def _zcbor() -> "subprocess.Popen[str]":
    """One process for all calls: it ends with its input, which ends with this process."""
    answers = Path(__file__).with_name("zcbor_answers.py")
    return subprocess.Popen(
        [zcbor_python(), str(answers), str(SCHEMA)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def zcbor_accepts(rule: str, data: bytes) -> bool:
    """True if zcbor accepts the data for the rule. A failure of another kind is an AssertionError."""
    process = _zcbor()
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{rule} {data.hex()}\n")
    process.stdin.flush()
    answer = process.stdout.readline().strip()
    assert answer in ("accepted", "refused"), f"zcbor failed on {data.hex()}: {answer or 'it ended'}"
    return answer == "accepted"
