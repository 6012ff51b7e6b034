"""The examples in the package's docstrings and in its README give the results that they show."""

import contextlib
import doctest
import importlib
import io
import re

import pytest

from support.paths import REPOSITORY
from whenabouts_hardware import decoder

FOLDER = REPOSITORY / "hardware"
MODULES = sorted(path.stem for path in (FOLDER / "whenabouts_hardware").glob("*.py"))


@pytest.mark.parametrize("module", MODULES)
def test_docstring_examples(module):
    """Every example in a docstring gives the result below it."""
    name = "whenabouts_hardware" if module == "__init__" else f"whenabouts_hardware.{module}"
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_readme_example():
    """The program in the README prints one good card."""
    [program] = re.findall(r"```python\n(.*?)```", (FOLDER / "README.md").read_text(), re.DOTALL)
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(program, {})
    assert out.getvalue() == "True 0 14 [Sighting(key='100086F444', attrs={}, ts_ms=None, read_count=1)]\n"


WORKED = {  # by the first word of the page's heading: the decoder, and how many frames it works out
    "RDM6300": ("rdm6300", 1),
    "ID-2LA": ("id12la", 1),
    "M6e": ("m6e", 2),
    "PN532": ("pn532", 1),
    "UHFReader18": ("uhfreader18", 1),
    "YRM100": ("yrm100", 1),
}


def test_readme_frames_are_read_as_shown():
    """Every reader's page works out a frame, whose checksums fit; what an ellipsis leaves out are zeros."""
    text = (FOLDER / "README.md").read_text()
    pages = {re.split(r"[ ,]", page)[0]: page for page in re.split(r"^## ", text, flags=re.MULTILINE)[1:]}
    for name, (kind, count) in WORKED.items():
        shown = re.findall(r"`((?:[0-9A-F]{2,} ?\|? ?…?)+)`", pages[name])
        frames = [bytes.fromhex(re.sub(r"[ |]", "", frame.replace("…", "00" * 10))) for frame in shown]
        frames = [raw for raw in frames if len(raw) > 4]  # beside words of a command or a status
        assert len(frames) == count, name
        for raw in frames:
            [decoded] = decoder(kind).feed(raw) or [None]
            assert decoded is not None, (name, raw.hex())
            assert (decoded.ok, decoded.raw) == (True, raw), decoded
