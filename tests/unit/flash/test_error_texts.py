"""Which errors of a board's program lose their texts: those that no handler could show."""

import ast

import pytest

from whenabouts_edge.flash.error_texts import drop_error_texts

ONE = """
class Quiet(ValueError):
    pass

class Shown(ValueError):
    pass

class Own(ValueError):
    def __init__(self, text):
        self.text = text

def fails(n):
    if n == 0:
        raise Quiet(f"found {n}")
    if n == 1:
        raise Shown("one")
    if n == 2:
        raise Own("two")
    raise ValueError("three")
"""
TWO = """
def told(n):
    try:
        fails(n)
    except Quiet:
        return "quiet"
    except (Shown, OSError) as error:
        return str(error)
"""


@pytest.fixture
def names():
    """What both modules define once the texts are gone."""
    trees = {"one": ast.parse(ONE), "two": ast.parse(TWO)}
    drop_error_texts(trees)
    found: dict[str, object] = {}
    for tree in trees.values():
        exec(ast.unparse(tree), found)
    return found


def test_an_error_that_a_handler_names_keeps_its_text(names):
    """In whatever module the handler stands."""
    assert [names["told"](n) for n in range(2)] == ["quiet", "one"]


@pytest.mark.parametrize(("n", "kind", "text"), [(0, "Quiet", ""), (1, "Shown", "one"), (3, "ValueError", "three")])
def test_what_is_raised_is_the_same_error(names, n, kind, text):
    """Without its text where nobody asks for it; the language's own errors are left alone."""
    with pytest.raises(ValueError) as caught:  # noqa: PT011  # its type and text are looked at
        names["fails"](n)
    assert (type(caught.value).__name__, str(caught.value)) == (kind, text)


def test_an_error_that_needs_its_text_keeps_it(names):
    """Its class does something with it."""
    with pytest.raises(names["Own"]) as caught:
        names["fails"](2)
    assert caught.value.text == "two"
