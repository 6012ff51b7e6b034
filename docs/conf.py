"""How Sphinx builds the manual: `make docs` writes it to docs/_build/html; warnings are errors.

Docstrings are plain text with Markdown's backticks, not reStructuredText. `rst_of` turns one into the latter, so that a
star or a bar in a formula is what it looks like. The rule language gets a lexer here, since its blocks are labelled `wa`.

Some pages lie beside the code that they describe, or at the root where a forge looks for them. A page of the site that
consists of an include stands for each; links that lead to such a file are turned to its page, so that they work on a forge
and on the site.
"""

import inspect
import os
import re
import sys
from pathlib import Path
from typing import Any

from pygments.lexer import RegexLexer, words
from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation, String, Text
from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / folder) for folder in ("protocol", "hardware", "edge", "cloud", "library", "firmware_sim")]

project = "Whenabouts"
author = "the Whenabouts authors"
project_copyright = "the Whenabouts authors; Apache-2.0"
[release] = re.findall(r'^version = "(.*)"', (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.M)

extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["_build", "api/README.md"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
highlight_language = "text"
default_role = "code"
nitpicky = False  # a docstring names types of other packages, which have no page here

html_theme = "furo"
html_title = f"Whenabouts {release}"
html_copy_source = False
html_show_sphinx = False

autodoc_typehints = "signature"
autodoc_member_order = "bysource"

INCLUDE = re.compile(r"^```\{include\} (\S+)\n```$", re.M)
LINK = re.compile(r"(?<=\]\()(?!https?:|mailto:|#)([^)#\s]+)")
DOCS = ROOT / "docs"
STANDS_FOR = {  # by the file that a page includes
    (DOCS / found[1]).resolve(): page
    for page in sorted(DOCS.glob("*.md"))
    for found in INCLUDE.finditer(page.read_text(encoding="utf-8"))
}

NAMED = re.compile(r"([a-z_]\w*(?:, [a-z_]\w*)*): ")  # "start, end: offsets of", as arguments and attributes are told

FIELDS = ("Raises", "Returns", "Args", "Yields")


class RuleLexer(RegexLexer):
    """Colours for rules; the words are those of language/grammar.lark."""

    name = "Whenabouts rules"
    aliases = ("wa",)
    _grammar = (ROOT / "cloud/whenabouts_cloud/language/grammar.lark").read_text(encoding="utf-8")
    tokens = {  # noqa: RUF012  (Pygments reads it so)
        "root": [
            (r"#[^\n]*", Comment),
            (r'"[^"\n]*"', String),
            (words(sorted(set(re.findall(r'"([A-Z]+)"', _grammar))), prefix=r"\b", suffix=r"\b"), Keyword),
            (r"\d+(\.\d+)?", Number),
            (r"[A-Za-z_]\w*", Name),
            (r"[@|<>=!+*/%-]+", Operator),
            (r"[\[\](){},.]", Punctuation),
            (r"\s+", Text),
        ]
    }


def rst_of(lines: list[str]) -> list[str]:
    """A docstring as reStructuredText: paragraphs, indented blocks as they stand, a list below `Raises:` and the like."""
    made: list[str] = []
    for block in re.split(r"\n\s*\n", "\n".join(lines).strip("\n")):
        head, _, rest = block.partition("\n")
        if head.rstrip(":") in FIELDS and head.endswith(":"):
            made += [f"**{head}**", "", *_fields(rest), ""]
        elif head.lstrip().startswith((">>>", "...")):
            made += [*(line.strip() if not line.startswith(" " * 8) else line for line in block.split("\n")), ""]
        elif head.startswith(" "):
            made += ["::", "", *(f"    {line}" for line in block.split("\n")), ""]
        elif re.match(r"[-*] ", head):
            made += [*_items(block), ""]
        elif NAMED.match(head):
            made += [*_named(block), ""]
        elif re.search(r"\n {2,}\S", block):
            made += [*(f"| {_text(line)}" for line in block.split("\n")), ""]
        else:
            made += [*(_text(line) for line in block.split("\n")), ""]
    return made


def _fields(text: str) -> list[str]:
    """`Name: meaning` lines, which may go on indented further, as a list."""
    items = re.split(r"\n(?=    ?\S)(?!     )", text)
    return [f"- {_text(' '.join(item.split()))}" for item in items if item.strip()]


def _items(block: str) -> list[str]:
    return [f"- {_text(' '.join(item.split()))}" for item in re.split(r"(?:^|\n)[-*] ", block) if item.strip()]


def _named(block: str) -> list[str]:
    """`name, other: meaning` lines as a list; lines that begin otherwise go on with the one above."""
    items = [" ".join(item.split()) for item in re.split(rf"\n(?={NAMED.pattern})", block)[::2]]
    return [f"- ``{found[1]}``: {_text(item[found.end() :])}" for item in items if (found := NAMED.match(item))]


def _text(line: str) -> str:
    """One line of prose: what is in backticks is code, and no other sign means anything."""
    made = ""
    for part in re.split(r"(`+[^`]+`+)", line):
        if part.startswith("`"):
            made += f"``{part.strip('`')}``"
        else:  # a plural's s is set apart, as code ends before a blank or a sign only
            made += ("\\ " if made and part[:1].isalnum() else "") + re.sub(r"([*_|\\])", r"\\\1", part)
    return made


def page_of(text: str, folder: Path, page: Path) -> str:
    """Text written in a folder, as it stands in a page: what it includes is in it, and its links lead where they did."""

    def include(found: re.Match[str]) -> str:
        path = (folder / found[1]).resolve()
        return page_of(path.read_text(encoding="utf-8"), path.parent, page)

    def turn(found: re.Match[str]) -> str:
        target = (folder / found[1]).resolve()
        return os.path.relpath(STANDS_FOR.get(target, target), page.parent)

    parts = re.split(r"(^```.*?^```$)", text, flags=re.M | re.S)
    return "".join(INCLUDE.sub(include, p) if p.startswith("```") else LINK.sub(turn, p) for p in parts)


def _read(app: Sphinx, name: str, source: list[str]) -> None:
    page = DOCS / f"{name}.md"
    source[0] = page_of(source[0], page.parent, page)


def _process(app: Sphinx, what: str, name: str, obj: Any, options: Any, given: list[str]) -> None:
    lines = list(given)
    if not isinstance(obj, type) and type(obj).__module__.startswith("whenabouts_") and callable(obj):
        lines = [*inspect.cleandoc(type(obj).__call__.__doc__ or "").split("\n")] or lines
    given[:] = rst_of(lines)


def setup(app: Sphinx) -> None:
    """Connect the above."""
    app.add_lexer("wa", RuleLexer)
    app.connect("source-read", _read)
    app.connect("autodoc-process-docstring", _process)
