"""Parses text to a tree, or reports its first syntax error: place, found text and expected text.

One grammar with two start symbols: `start` is a declaration of a rule file, `pattern` the body of a rule about events in an
order.
"""

import functools
import re
from pathlib import Path
from typing import Literal

from lark import Lark, Token, Tree, UnexpectedCharacters, UnexpectedToken

from whenabouts_cloud.language.errors import Mistake

Start = Literal["start", "pattern"]

_SAY = {
    "NAME": "a name", "STRING": 'a name in quotes such as "dock/tags"', "NUMBER": "a number", "WORD": "a unit",
    "$END": "the end of the declaration", "PLACE": "CLOUD or EDGE", "SIGN": "`-`", "OPERATOR": "`=`",
    "AGGREGATE": "SUM, MIN, MAX or AVG", "SUM_SIGN": "`+`", "PRODUCT_SIGN": "`*`",
}  # fmt: skip


def tree_of(text: str, beginning: Start, whole: str, mistakes: list[Mistake]) -> "Tree[Token] | None":
    """Parse a text, or return None with a mistake; `whole` is the file that holds the text at the same place."""
    try:
        return _grammar().parse(text, start=beginning)
    except UnexpectedCharacters as error:
        expected = _expected_after(text[: error.pos_in_stream], beginning)
        mistakes.append(_unexpected(whole, error.line, error.column, expected))
    except UnexpectedToken as error:
        at_end = error.token.type == "$END"
        line, column = _end(text) if at_end else (error.line, error.column)
        # Words that only a rule allows after a pattern fit the parser state of both start symbols but lead to no end.
        expected = error.accepts or error.expected or _expected_after(text[: error.pos_in_stream], beginning)
        mistakes.append(_unexpected(whole, line, column, expected, at_end))
    return None


def found_at(text: str, line: int, column: int) -> str:
    """Text at a place, as a mistake quotes it."""
    lines = text.split("\n")
    rest = lines[line - 1][column - 1 :] if line <= len(lines) else ""
    word = re.match(r'"[^"]*"?|[A-Za-z_0-9.]+|[<>!=]=?|\S', rest)
    if word is None:
        return "the end of the file" if line >= len(lines) else "the end of the line"
    return f"a quote that does not close ({word[0]})" if word[0].count('"') == 1 else word[0]


def place_of(text: str, at: int) -> tuple[int, int]:
    """Line and column, from 1, of the character at an index."""
    return text.count("\n", 0, at) + 1, at - (text.rfind("\n", 0, at) + 1) + 1


def without_comments(text: str) -> str:
    """Replace comments by blanks; the length stays the same."""
    return re.sub(r'("[^"\n]*")|#[^\n]*', lambda m: m[1] or " " * len(m[0]), text)


@functools.cache
def _grammar() -> Lark:
    text = Path(__file__).with_name("grammar.lark").read_text(encoding="utf-8")
    return Lark(text, parser="lalr", propagate_positions=True, maybe_placeholders=False, start=["start", "pattern"])


def _expected_after(text: str, beginning: Start) -> set[str]:
    """Terminals that may follow a correct text; the lexer would name all that it accepts in its state anywhere."""
    try:
        _grammar().parse(text, start=beginning)
    except UnexpectedToken as error:
        return set(error.accepts or error.expected)
    return {"$END"}


def _unexpected(text: str, line: int, column: int, expected: set[str], found_end: bool = False) -> Mistake:
    names = sorted(expected - {"COMMENT"})
    words = list(dict.fromkeys(_word(name) for name in names))
    quoted = "the end of the declaration" if found_end and text.strip() else found_at(text, line, column)
    return Mistake(line, column, f"found {quoted}, expected {_either(words)}")


def _word(terminal: str) -> str:
    if terminal in _SAY:
        return _SAY[terminal]
    definition = next((t for t in _grammar().terminals if t.name == terminal), None)
    if definition is not None and not str(definition.pattern.value).isalpha():
        return f"`{definition.pattern.value}`"
    return terminal


def _either(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _end(text: str) -> tuple[int, int]:
    """Place behind the last word of a text that ends too early."""
    return place_of(text, len(without_comments(text).rstrip()))
