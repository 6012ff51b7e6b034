"""Text and its UTF-8, and the examples in the docstrings."""

import doctest
import importlib
import pkgutil

import pytest
from hypothesis import given
from hypothesis import strategies as st

import whenabouts_protocol
from whenabouts_protocol import utf8


@pytest.mark.parametrize("module", [m.name for m in pkgutil.iter_modules(whenabouts_protocol.__path__)])
def test_examples_in_docstrings(module):
    """The examples in docstrings give the results that they show."""
    assert doctest.testmod(importlib.import_module(f"whenabouts_protocol.{module}")).failed == 0


@given(st.text())
def test_text_has_a_form_unless_it_holds_a_surrogate(text):
    """utf8 and text_of are each other's reverse."""
    try:
        data = text.encode()
    except UnicodeEncodeError:
        with pytest.raises(UnicodeError):
            utf8.utf8(text)
        return
    assert utf8.utf8(text) == data
    assert utf8.text_of(data) == text
    assert not utf8.is_forbidden(data)


def _sequence(code, length=None):
    length = length or (2 if code < 0x800 else 3 if code < 0x10000 else 4)
    tail = [0x80 | code >> 6 * n & 0x3F for n in range(length - 2, -1, -1)]
    return bytes([(0xF00 >> length & 0xFF) | code >> 6 * (length - 1), *tail])


def test_the_check_by_hand_agrees_with_the_interpreter_on_every_code_point():
    """For each number in UTF-8 shape, shortest and overlong, by itself and between others."""
    for code in [*range(0x80, 0x11000), *range(0x11000, 0x200000, 97), 0x10FFFF, 0x110000, 0x1FFFFF]:
        for length in range(2 if code < 0x800 else 3 if code < 0x10000 else 4, 5):
            data = b"a" + _sequence(code, length) + b"b"
            try:
                data.decode()
                allowed = True
            except UnicodeDecodeError:
                allowed = False
            assert utf8.is_forbidden(data) != allowed, data.hex()
