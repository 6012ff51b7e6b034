"""Our trace format and its damaged files: what is tolerated, and the texts of errors."""

from pathlib import Path

import pytest

from whenabouts_edge.trace import Head, Record, TraceError, decode_head, encode_head, encode_record, open_trace
from whenabouts_edge.trace.format import ERROR_CHARS_MAX, LINE_BYTES_MAX, RECORD_BYTES_MAX, decode_record

HEAD = Head("/dev/ttyUSB0", 81_234_567_890, 1_767_225_600_000_000, 115_200, 8, "N", 1, 1500)
RECORDS = [
    Record("rx", 10, 30, b"\xff\x00\x03\x1d\x0c"),
    Record("tx", 40, 41, b"\x00"),
    Record("rx", 41, 90),
    Record("error", 90, 95, error="device disconnected"),
]


def write(path: Path, *lines: bytes) -> Path:
    path.write_bytes(b"".join(lines))
    return path


def whole() -> list[bytes]:
    return [encode_head(HEAD), *map(encode_record, RECORDS)]


def test_lines_are_what_the_page_shows():
    """The documented example and the encoder agree to the byte."""
    assert encode_head(HEAD) == (
        b'{"whenabouts_trace":1,"wall_us":1767225600000000,"monotonic_ns":81234567890,"port":"/dev/ttyUSB0",'
        b'"baud":115200,"bytesize":8,"parity":"N","stopbits":1,"clock_bound_us":1500}\n'
    )
    assert encode_record(RECORDS[0]) == b'{"d":"rx","entry_ns":10,"return_ns":30,"hex":"ff00031d0c"}\n'
    assert encode_record(RECORDS[3]) == b'{"d":"error","entry_ns":90,"return_ns":95,"error":"device disconnected"}\n'


def test_a_head_without_wall_time_and_settings_comes_back():
    """An unknown value is null and comes back as None."""
    assert decode_head(encode_head(Head("x"))) == Head("x")


def test_a_file_comes_back_as_often_as_asked(tmp_path):
    """records() reads from the beginning each time and warns of nothing."""
    trace = open_trace(write(tmp_path / "a", *whole()))
    assert (trace.format, trace.head) == ("whenabouts", HEAD)
    assert list(trace.records()) == RECORDS
    assert list(trace.records()) == RECORDS
    assert trace.warnings == []


def test_a_file_cut_anywhere_gives_the_records_before_the_cut(tmp_path):
    """Every prefix of a trace that holds its head can be read; a torn line is dropped and reported."""
    lines = whole()
    content = b"".join(lines)
    for cut in range(len(lines[0]), len(content) + 1):
        trace = open_trace(write(tmp_path / "cut", content[:cut]))
        complete = [
            r for k, r in enumerate(RECORDS) if cut >= len(b"".join(lines[: k + 2])) - 1
        ]  # the line feed may go
        assert list(trace.records()) == complete
        clean = content[:cut].endswith((b"\n", b"}"))
        assert len(trace.warnings) == (0 if clean else 1), cut


@pytest.mark.parametrize("zeros", [1, 4096, LINE_BYTES_MAX + 10])
def test_a_tail_of_zero_bytes_is_a_torn_end(tmp_path, zeros):
    """Blocks that a file system had not yet written are dropped and reported, however many."""
    lines = whole()
    for tail in (b"", lines[2][:12]):
        trace = open_trace(write(tmp_path / "zeros", *lines, tail, bytes(zeros)))
        assert list(trace.records()) == RECORDS
        assert len(trace.warnings) == 1
        assert "the file ends inside it" in trace.warnings[0]


@pytest.mark.parametrize(
    ("line", "problem", "expected"),
    [
        (b"nonsense\n", "'nonsense'", "one JSON object"),
        (b"[1]\n", "[1]", "one JSON object"),
        (b"\n", "''", "one JSON object"),
        (b'{"d":"up","entry_ns":1,"return_ns":2}\n', "'up'", '"rx", "tx" or "error"'),
        (b'{"d":"rx","return_ns":2,"hex":""}\n', '"entry_ns": nothing', "an integer"),
        (b'{"d":"rx","entry_ns":true,"return_ns":2,"hex":""}\n', '"entry_ns": True', "an integer"),
        (b'{"d":"rx","entry_ns":1.5,"return_ns":2,"hex":""}\n', '"entry_ns": 1.5', "an integer"),
        (b'{"d":"rx","entry_ns":3,"return_ns":2,"hex":""}\n', "entry_ns 3 after return_ns 2", "entry_ns <= return_ns"),
        (b'{"d":"rx","entry_ns":1,"return_ns":2,"hex":"f"}\n', "'f'", "hexadecimal"),
        (b'{"d":"rx","entry_ns":1,"return_ns":2,"hex":"ff 00"}\n', "'ff 00'", "hexadecimal"),
        (b'{"d":"error","entry_ns":1,"return_ns":2}\n', '"error": nothing', "a text"),
        (b'{"d":"rx"}\0\0{"d":"rx"}\n', "zero bytes inside", "text"),
        (b'{"d":"' + b"x" * LINE_BYTES_MAX + b'"}\n', f"more than {LINE_BYTES_MAX} bytes", "shorter line"),
        (b"[" * 100_000 + b"\n", "[[[", "one JSON object"),
    ],
)
def test_a_malformed_line_is_an_error_with_its_place(tmp_path, line, problem, expected):
    """File, line number, what was found and what was expected; the records before it have been given."""
    path = write(tmp_path / "bad", *whole()[:2], line, *whole()[2:])
    given = []
    with pytest.raises(TraceError) as caught:
        given.extend(open_trace(path).records())
    text = str(caught.value)
    assert text.startswith(f"{path} line 3: ")
    assert problem in text
    assert expected in text


def test_reading_is_lazy(tmp_path):
    """A bad line is met only when reading comes to it."""
    records = open_trace(write(tmp_path / "bad", *whole(), b"nonsense\n")).records()
    assert [next(records) for _ in RECORDS] == RECORDS
    with pytest.raises(TraceError):
        next(records)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"hello\n",
        b'{"whenabouts_trace":2}\n',
        b'{"whenabouts_trace":1}\n',
        b'{"whenabouts_trace":1,"wall',
        b"\0" * 99,
    ],
)
def test_what_is_no_trace_is_refused(tmp_path, content):
    """Empty files, other texts, unknown versions and cut heads are named as such, with the file."""
    path = write(tmp_path / "other", content)
    with pytest.raises(TraceError, match=r"other.*found .*expected "):
        open_trace(path)


def test_unknown_fields_are_ignored():
    """A later version may have more fields."""
    assert decode_record(b'{"d":"tx","entry_ns":1,"return_ns":2,"hex":"00","more":[1]}') == Record("tx", 1, 2, b"\0")


def test_a_writer_keeps_the_limits():
    """Too much data and times the wrong way round are refused, a long error text is cut; the longest record fits."""
    with pytest.raises(ValueError, match="expected at most"):
        encode_record(Record("rx", 0, 1, bytes(RECORD_BYTES_MAX + 1)))
    with pytest.raises(ValueError, match="after return_ns"):
        encode_record(Record("rx", 2, 1))
    assert len(encode_record(Record("rx", 2**63, 2**63, bytes(RECORD_BYTES_MAX)))) <= LINE_BYTES_MAX
    line = encode_record(Record("error", 0, 1, error="\U0001f4a5" * 10_000))
    assert len(line) <= LINE_BYTES_MAX
    assert decode_record(line).error == "\U0001f4a5" * ERROR_CHARS_MAX
