"""The examples in the package's docstrings and in its README do what they say."""

import contextlib
import doctest
import importlib
import io
import re

import pytest

from support.paths import REPOSITORY

FOLDER = REPOSITORY / "hardware"
MODULES = sorted(path.stem for path in (FOLDER / "whenabouts_hardware").glob("*.py"))


@pytest.mark.parametrize("module", MODULES)
def test_docstring_examples(module):
    """Every example in a docstring gives what stands below it."""
    name = "whenabouts_hardware" if module == "__init__" else f"whenabouts_hardware.{module}"
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_readme_example():
    """The program in the README prints one good card."""
    [program] = re.findall(r"```python\n(.*?)```", (FOLDER / "README.md").read_text(), re.DOTALL)
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(program, {})
    assert out.getvalue() == "True 0 14 [Sighting(key='100086F444', attrs={}, ts_ms=None, read_count=1)]\n"


def test_readme_frames_are_read_as_told():
    """The worked frames of the README decode to good frames."""
    from whenabouts_hardware import decoder

    text = (FOLDER / "README.md").read_text()
    shown = re.findall(r"`((?:02|FF) [0-9A-F …|]+)`", text)
    assert len(shown) == 4
    for frame in shown:
        raw = bytes.fromhex(re.sub(r"[ |]", "", frame.replace("…", "00" * 10)))
        [found] = decoder("m6e" if raw[0] == 0xFF else "rdm6300").feed(raw)
        assert found.ok, found
