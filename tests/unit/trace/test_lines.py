"""Lines of a trace file whose end a power cut damaged (`trace.lines`)."""

import pytest

from whenabouts_edge.trace.format import LINE_BYTES_MAX, TraceError
from whenabouts_edge.trace.lines import Line, read_lines


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", []),
        (b"one\r\ntwo\n", [Line(1, b"one", False), Line(2, b"two", False)]),
        (b"one\ntw", [Line(1, b"one", False), Line(2, b"tw", True)]),
        (b"one\ntw" + bytes(100_000), [Line(1, b"one", False), Line(2, b"tw", True)]),
        (b"one\n" + bytes(3), [Line(1, b"one", False), Line(2, b"", True)]),
    ],
)
def test_only_the_last_line_is_torn(tmp_path, content, expected):
    """By a missing line feed, or by the zero bytes that a file system leaves."""
    (tmp_path / "x").write_bytes(content)
    assert list(read_lines(tmp_path / "x")) == expected


@pytest.mark.parametrize("content", [b"o\0ne\ntwo\n", b"one" + bytes(70_000) + b"two\n", b"\0\n"])
def test_zero_bytes_inside_are_damage(tmp_path, content):
    """They are not the file's tail."""
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(TraceError, match="line 1: found zero bytes inside"):
        list(read_lines(tmp_path / "x"))


def test_a_line_has_a_limit(tmp_path):
    """The longest line is read, one byte more is an error."""
    (tmp_path / "x").write_bytes(b"x" * (LINE_BYTES_MAX - 1) + b"\n")
    assert len(next(read_lines(tmp_path / "x")).data) == LINE_BYTES_MAX - 1
    (tmp_path / "x").write_bytes(b"x" * LINE_BYTES_MAX + b"\n")
    with pytest.raises(TraceError, match="expected a shorter line"):
        list(read_lines(tmp_path / "x"))
