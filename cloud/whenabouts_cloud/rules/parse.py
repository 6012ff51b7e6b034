"""Rule text -> streams and rules, or every mistake of the file with its place.

The text is cut at the words STREAM and RULE first and each declaration is parsed alone, with its place in the file kept, so
that one slip hides no other. What is grammatical but makes no sense (unknown stream, OVER 0) is found by `checks`.
"""

import functools
import re
from collections.abc import Iterator
from pathlib import Path

from lark import Lark, Token, Tree, UnexpectedCharacters, UnexpectedToken

from whenabouts_cloud.rules.checks import Checker
from whenabouts_cloud.rules.errors import Mistake, RuleError
from whenabouts_cloud.rules.model import RuleFile

MAX_FILE_BYTES = 1 << 20  # a rule file is written by hand; more is the wrong file

# Comments and names in quotes are skipped, so that a STREAM in them begins nothing.
_DECLARATION = re.compile(r'#[^\n]*|"[^"\n]*"|\b(STREAM|RULE)\b')

_SAY = {
    "NAME": "a name", "STRING": 'a name in quotes such as "dock/tags"', "NUMBER": "a number", "WORD": "a unit",
    "$END": "the end of the declaration", "LATER": "SEQ", "PLACE": "CLOUD or EDGE", "SIGN": "`-`", "OPERATOR": "`=`",
}  # fmt: skip


def parse_rules(text: str, file: str = "rules") -> RuleFile:
    """The streams and rules of a text; `file` is what mistakes are reported under.

    Raises:
        RuleError: the text has mistakes; all of them that can be told apart.
    """
    mistakes: list[Mistake] = []
    trees: list[Tree[Token]] = []
    for declaration in _declarations(text, mistakes):
        try:
            trees.append(_grammar().parse(declaration))
        except UnexpectedCharacters as error:
            expected = _expected_after(declaration[: error.pos_in_stream])
            mistakes.append(_unexpected(text, error.line, error.column, expected))
        except UnexpectedToken as error:
            at_end = error.token.type == "$END"
            line, column = _end(declaration) if at_end else (error.line, error.column)
            mistakes.append(_unexpected(text, line, column, error.accepts or error.expected, at_end))
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


@functools.cache
def _grammar() -> Lark:
    text = Path(__file__).with_name("grammar.lark").read_text(encoding="utf-8")
    return Lark(text, parser="lalr", propagate_positions=True, maybe_placeholders=False)


def _declarations(text: str, mistakes: list[Mistake]) -> Iterator[str]:
    """Each declaration with everything before it blanked, so that lines and columns stay those of the file."""
    starts = [m.start() for m in _DECLARATION.finditer(text) if m[1]]
    before = _without_comments(text[: starts[0]] if starts else text)
    if before.strip() or not starts:
        line, column = _place(text, len(before) - len(before.lstrip()))
        mistakes.append(Mistake(line, column, f"found {_found(text, line, column)}, expected STREAM or RULE"))
    blank = re.sub(r"[^\n]", " ", text)
    for start, end in zip(starts, [*starts[1:], len(text)][: len(starts)], strict=True):
        yield blank[:start] + text[start:end]


def _expected_after(beginning: str) -> set[str]:
    """What may follow a beginning that is right; the lexer alone would name all that its state can meet anywhere."""
    try:
        _grammar().parse(beginning)
    except UnexpectedToken as error:
        return set(error.accepts or error.expected)
    return {"$END"}


def _unexpected(text: str, line: int, column: int, expected: set[str], found_end: bool = False) -> Mistake:
    names = sorted(expected - {"COMMENT"})
    words = list(dict.fromkeys(_word(name) for name in names))
    if "LATER" in names and "CORRELATE" in names:
        words = ["CORRELATE"]
    found = "the end of the declaration" if found_end else _found(text, line, column)
    return Mistake(line, column, f"found {found}, expected {_either(words)}")


def _word(terminal: str) -> str:
    if terminal in _SAY:
        return _SAY[terminal]
    definition = next((t for t in _grammar().terminals if t.name == terminal), None)
    if definition is not None and not str(definition.pattern.value).isalpha():
        return f"`{definition.pattern.value}`"
    return terminal


def _either(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _found(text: str, line: int, column: int) -> str:
    lines = text.split("\n")
    rest = lines[line - 1][column - 1 :] if line <= len(lines) else ""
    word = re.match(r'"[^"]*"?|[A-Za-z_0-9.]+|[<>!=]=?|\S', rest)
    if word is None:
        return "the end of the file" if line >= len(lines) else "the end of the line"
    return f"a quote that does not close ({word[0]})" if word[0].count('"') == 1 else word[0]


def _place(text: str, at: int) -> tuple[int, int]:
    return text.count("\n", 0, at) + 1, at - (text.rfind("\n", 0, at) + 1) + 1


def _end(declaration: str) -> tuple[int, int]:
    """Where a declaration ends that stopped too early: behind its last word."""
    return _place(declaration, len(_without_comments(declaration).rstrip()))


def _without_comments(text: str) -> str:
    """The text of the same length with blanks for comments."""
    return re.sub(r'("[^"\n]*")|#[^\n]*', lambda m: m[1] or " " * len(m[0]), text)
