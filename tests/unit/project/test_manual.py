"""Parts of the manual's build: docstrings as reStructuredText, links that stay right, pictures that a script draws."""

import importlib.util
import sys
from types import ModuleType

import pytest

from support.paths import REPOSITORY

DOCS = REPOSITORY / "docs"


def load(path: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A script of the manual as a module; the path of imports stays as it is."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    spec = importlib.util.spec_from_file_location("manual", DOCS / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_pictures_are_what_the_script_draws(monkeypatch):
    """Each, byte for byte; no other lies there."""
    make = load("pictures/make.py", monkeypatch)
    drawn = {f"{name}.svg": draw().svg() for name, draw in make.PICTURES.items()}
    assert drawn == {path.name: path.read_text(encoding="utf-8") for path in (DOCS / "pictures").glob("*.svg")}


@pytest.mark.parametrize(
    ("docstring", "made"),
    [
        ("Gives `x * y`, not *z*.", "Gives ``x * y``, not \\*z\\*."),
        (
            "Head.\n\nRaises:\n    ValueError: a | b,\n        or so.",
            "Head.\n\n**Raises:**\n\n- ValueError: a \\| b, or so.",
        ),
        ("As in\n\n    f  =  max(a, b)", "As in\n\n::\n\n        f  =  max(a, b)"),
        (">>> 1 + 1\n2", ">>> 1 + 1\n2"),
        ("a, b: ends of\n`Stamp`s\nc: more", "- ``a, b``: ends of ``Stamp``\\ s\n- ``c``: more"),
        ("- one\n  more\n- two", "- one more\n- two"),
    ],
)
def test_a_docstring_is_shown_as_it_was_meant(docstring, made, monkeypatch):
    """Stars and bars are no markup, backticks are code, indented blocks stay as they are."""
    conf = load("conf.py", monkeypatch)
    assert "\n".join(conf.rst_of(docstring.split("\n"))).strip() == made


def test_links_lead_to_the_page_that_represents_a_file(monkeypatch):
    """A page at the root is included by one of the site; what both link to is the latter."""
    conf = load("conf.py", monkeypatch)
    text = "[a](../hardware/README.md#x) [b](rules.md) [c](https://x.org/a.md)\n```\n[d](../hardware/README.md)\n```\n"
    turned = conf.page_of(text, DOCS, DOCS / "gateways.md")
    assert turned == "[a](readers.md#x) [b](rules.md) [c](https://x.org/a.md)\n```\n[d](../hardware/README.md)\n```\n"
    included = conf.page_of("```{include} ../SECURITY.md\n```", DOCS, DOCS / "security.md")
    assert included.startswith("# Security")
    assert "](groups.md#" in included
