"""Parses rule text into streams and rules, or reports every mistake of the file with its place.

The text is first cut at the words STREAM and RULE, and each declaration is parsed separately at its place in the file, so
that one syntax error hides no other. `checks` reports mistakes that the grammar allows (unknown stream, OVER 0).
"""

import itertools
import re
from collections.abc import Iterator
from pathlib import Path

from lark import Token, Tree

from whenabouts_cloud.language.errors import Mistake, RuleError
from whenabouts_cloud.language.grammar import Part, found_at, place_of, tree_of, without_comments
from whenabouts_cloud.rules.checks import Checker
from whenabouts_cloud.rules.model import RuleFile

MAX_FILE_BYTES = 1 << 20  # a rule file is written by hand; a larger one is the wrong file

# Comments and quoted names are skipped, so that a STREAM in them begins no declaration.
_DECLARATION = re.compile(r'#[^\n]*|"[^"\n]*"|\b(STREAM|RULE)\b')


def parse_rules(text: str, file: str = "rules") -> RuleFile:
    """The streams and rules of a text; `file` is the name in reports of mistakes.

    Raises:
        RuleError: the text has mistakes; holds all that can be distinguished.
    """
    mistakes: list[Mistake] = []
    trees: list[Tree[Token]] = []
    for declaration in _declarations(text, mistakes):
        tree = tree_of(declaration, "start", text, mistakes)
        if tree is not None:
            trees.append(tree)
    checker = Checker(mistakes)
    result = checker.check(trees)
    if mistakes:
        raise RuleError(file, mistakes)
    return result


def load_rules(path: Path) -> RuleFile:
    """The streams and rules of a file.

    Raises:
        RuleError: the file cannot be read as UTF-8 text, is too large, or has mistakes.
    """
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise RuleError(
            str(path), [Mistake(1, 1, f"found no readable file ({error.strerror}), expected rules")]
        ) from None
    if len(raw) > MAX_FILE_BYTES:
        text = f"found {len(raw)} bytes, expected at most {MAX_FILE_BYTES}: is this the rule file?"
        raise RuleError(str(path), [Mistake(1, 1, text)])
    try:
        return parse_rules(raw.decode("utf-8"), str(path))
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        text = f"found byte {raw[error.start]:#04x}, expected UTF-8 text"
        raise RuleError(str(path), [Mistake(line, 1, text)]) from None


def _declarations(text: str, mistakes: list[Mistake]) -> Iterator[Part]:
    """Yield each declaration with its place; all of them together are as long as the text."""
    starts = [m.start() for m in _DECLARATION.finditer(text) if m[1]]
    before = without_comments(text[: starts[0]] if starts else text)
    if before.strip() or not starts:
        at = len(before) - len(before.lstrip())
        mistakes.append(Mistake(*place_of(text, at), f"found {found_at(text, at)}, expected STREAM or RULE"))
    line, column = place_of(text, starts[0]) if starts else (1, 1)
    for start, end in itertools.pairwise([*starts, len(text)]):
        yield Part(text[start:end], start, line, column)
        newlines = text.count("\n", start, end)
        line += newlines
        column = end - text.rfind("\n", start, end) if newlines else column + end - start
