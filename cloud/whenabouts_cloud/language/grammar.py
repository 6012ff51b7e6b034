"""Parses text to a tree, or reports its first syntax error: place, found text and expected text.

One grammar with three start symbols: `start` is a declaration of a rule file, `pattern` the body of a rule about events in
an order, `verdict` that of one about states without what concerns streams.
"""

import functools
import re
from pathlib import Path
from typing import Any, Literal, NamedTuple

from lark import Lark, Token, Tree, UnexpectedCharacters, UnexpectedToken

from whenabouts_cloud.language.errors import Mistake

Start = Literal["start", "pattern", "verdict"]

TOO_DEEP = "hundreds of parts inside each other, expected fewer"
MAX_DIGITS = 32  # of a number: a limit in years takes 18 as microseconds

_MANY_DIGITS = re.compile(rf"\d{{{MAX_DIGITS}}}")
_WORD = re.compile(r'"[^"\n]*"?|[A-Za-z_0-9.]+|[<>!=]=?|\S')
_SAY = {
    "NAME": "a name", "STRING": 'a name in quotes such as "dock/tags"', "NUMBER": "a number", "WORD": "a unit",
    "$END": "the end of the declaration", "PLACE": "CLOUD or EDGE", "SIGN": "`-`", "OPERATOR": "`=`",
    "AGGREGATE": "SUM, MIN, MAX or AVG", "SUM_SIGN": "`+`", "PRODUCT_SIGN": "`*`",
}  # fmt: skip


class Part(NamedTuple):
    """A part of a text, the index at which it begins there, and its line and column, from 1."""

    text: str
    at: int = 0
    line: int = 1
    column: int = 1

    def place(self, line: int, column: int) -> tuple[int, int]:
        """The line and column in the whole text of a line and column in this part."""
        return self.line + line - 1, column + (self.column - 1 if line == 1 else 0)


def tree_of(part: Part, beginning: Start, whole: str, mistakes: list[Mistake]) -> "Tree[Token] | None":
    """Parse a part of a text, or return None with a mistake; its tokens have their places in the whole."""
    text = part.text
    try:
        tree = _placed(_grammar().parse(text, start=beginning), part)
        return tree if _MANY_DIGITS.search(text) is None else _with_short_numbers(tree, mistakes)
    except RecursionError:
        mistakes.append(Mistake(part.line, part.column, f"found a declaration with {TOO_DEEP}"))
    except UnexpectedCharacters as error:
        expected = _expected_after(text[: error.pos_in_stream], beginning)
        found = found_at(whole, part.at + (error.pos_in_stream or 0))
        mistakes.append(_unexpected(found, part.place(error.line, error.column), expected))
    except UnexpectedToken as error:
        at_end = error.token.type == "$END"
        place = _end(text) if at_end else (error.line, error.column)
        # Words that only a rule allows after a pattern fit the parser state of both start symbols but lead to no end.
        expected = error.accepts or error.expected or _expected_after(text[: error.pos_in_stream], beginning)
        if at_end:
            found = "the end of the declaration" if whole.strip() else "the end of the file"
        else:
            found = found_at(whole, part.at + (error.pos_in_stream or 0))
        mistakes.append(_unexpected(found, part.place(*place), expected))
    return None


def found_at(text: str, at: int) -> str:
    """Text at an index, as a mistake quotes it."""
    word = _WORD.match(text, at)
    if word is None:
        return "the end of the file" if text.find("\n", at) < 0 else "the end of the line"
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
    return Lark(
        text, parser="lalr", propagate_positions=True, maybe_placeholders=False, start=["start", "pattern", "verdict"]
    )


def _expected_after(text: str, beginning: Start) -> set[str]:
    """Terminals that may follow a correct text; the lexer would name all that it accepts in its state anywhere."""
    try:
        _grammar().parse(text, start=beginning)
    except UnexpectedToken as error:
        return set(error.accepts or error.expected)
    return {"$END"}


def _placed(tree: "Tree[Token]", part: Part) -> "Tree[Token]":
    """The tree with the places of the whole text."""
    if part.at:
        seen: list[Any] = [*tree.scan_values(lambda x: isinstance(x, Token))]
        seen += [one.meta for one in tree.iter_subtrees() if not one.meta.empty]
        for one in seen:
            one.line, one.column = part.place(one.line, one.column)
    return tree


def _with_short_numbers(tree: "Tree[Token]", mistakes: list[Mistake]) -> "Tree[Token] | None":
    """The tree if its numbers have few digits: thousands are no number for Python, and a mistake of whoever wrote them."""
    numbers = tree.scan_values(lambda x: isinstance(x, Token) and x.type == "NUMBER")
    long = [x for x in numbers if len(x) > MAX_DIGITS]
    text = f"expected at most {MAX_DIGITS}"
    mistakes += [Mistake(x.line or 1, x.column or 1, f"found a number of {len(x)} digits, {text}") for x in long]
    return None if long else tree


def _unexpected(found: str, place: tuple[int, int], expected: set[str]) -> Mistake:
    names = sorted(expected - {"COMMENT"})
    words = list(dict.fromkeys(_said(name) for name in names))
    return Mistake(*place, f"found {found}, expected {_either(words)}")


def _said(terminal: str) -> str:
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
