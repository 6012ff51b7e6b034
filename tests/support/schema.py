"""Checking messages against wire.cddl with two independent tools.

pycddl runs in the process. It counts the elements of an array wrongly when one of several may repeat, so the one rule that
needs that, `attr_row`, is unrolled into one alternative for each number of attributes before pycddl sees it.
zcbor reads the file as it is, in a virtual environment of its own (protocol/zcbor-requirements.txt).
"""

import os
import re
import subprocess
from functools import cache
from pathlib import Path

import pycddl

from support.paths import REPOSITORY
from support.vectors import SCHEMA

ATTRS_MAX = 32


@cache
def _pycddl(rule: str) -> pycddl.Schema:
    text = SCHEMA.read_text(encoding="utf-8")
    found = re.search(r"^attr_row = \[(.*), 1\*32 attr: scalar\]$", text, re.MULTILINE)
    assert found, "wire.cddl: found no attr_row that ends in `1*32 attr: scalar]`, which this unrolls"
    alternatives = [
        f"attr_row_{count} = [{found[1]}, " + ", ".join(f"a{n}: scalar" for n in range(count)) + "]"
        for count in range(1, ATTRS_MAX + 1)
    ]
    choice = "attr_row = " + " / ".join(f"attr_row_{count}" for count in range(1, ATTRS_MAX + 1))
    text = text.replace(found[0], "\n".join([choice, *alternatives]))
    return pycddl.Schema(f"start = {rule}\n{text}")


def pycddl_accepts(rule: str, data: bytes) -> bool:
    """Whether pycddl finds data to be of the rule."""
    try:
        _pycddl(rule).validate_cbor(data)
    except pycddl.ValidationError:
        return False
    return True


def zcbor_command() -> str:
    """The program zcbor: WHENABOUTS_ZCBOR, else the one in `.venv-zcbor` of the checkout.

    Raises:
        FileNotFoundError: it is not there; a test that needs it must fail, not pass unseen.
    """
    command = os.environ.get("WHENABOUTS_ZCBOR") or str(REPOSITORY / ".venv-zcbor" / "bin" / "zcbor")
    if not Path(command).exists():
        raise FileNotFoundError(
            f"zcbor: found nothing at {command}, expected the program; install protocol/zcbor-requirements.txt into a "
            "virtual environment .venv-zcbor of the checkout or name the program with WHENABOUTS_ZCBOR"
        )
    return command


def zcbor_accepts(rule: str, data: bytes) -> bool:
    """Whether zcbor finds data to be of the rule. A failure of another kind is an AssertionError."""
    done = subprocess.run(
        [zcbor_command(), "validate", "-c", str(SCHEMA), "-t", rule, "-i", "-", "--input-as", "cbor"],
        input=data,
        capture_output=True,
        timeout=60,
        check=False,
    )
    report = done.stderr.decode(errors="replace")
    refused = "CddlValidationError" in report
    assert done.returncode == 0 or refused, f"zcbor failed on {data.hex()}:\n{report}"
    return done.returncode == 0
