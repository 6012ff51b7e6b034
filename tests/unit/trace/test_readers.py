"""Files of pyserial's real spy:// and of ThingMagic's library, read and written as traces."""

import contextlib
import os
import pty
import tty

import pytest
import serial

from support.files.own_captures import TRANSPORT
from support.files.trace_checks import check_transport, check_written_again
from whenabouts_edge.trace import Record, TraceError, open_trace, to_spy
from whenabouts_edge.trace.transport import to_transport
from whenabouts_hardware.readers.m6e_frames import KEEPALIVE, START_CONTINUOUS


def test_a_transport_capture_parses_whole(tmp_path):
    """Every head line is a record, every frame has the length it states; written again it is equal."""
    check_transport(TRANSPORT)
    check_written_again(TRANSPORT, tmp_path / "again.transport")


def test_bytes_in_no_frame_have_no_place_in_a_transport_file(tmp_path):
    """Frames that reads have cut are put together, at the time of their last byte; noise is left out and counted."""
    frame = KEEPALIVE
    records = [
        Record("tx", 0, 1, START_CONTINUOUS),
        Record("rx", 1, 5, b"\0\0" + frame[:3]),
        Record("rx", 5, 6),
        Record("rx", 6, 9, frame[3:] + frame),
        Record("error", 9, 10, error="gone"),
    ]
    path, warnings = tmp_path / "t.transport", []
    path.write_text("".join(to_transport(records, warnings.append)))
    given = [(r.direction, r.return_ns, r.data) for r in open_trace(path).records()]
    assert given == [("tx", 1, START_CONTINUOUS), ("rx", 9, frame), ("rx", 9, frame)]
    assert warnings == ["2 bytes are in no good frame of a ThingMagic reader and were left out"]


def test_a_transport_capture_cut_anywhere_gives_what_is_whole(tmp_path):
    """A cut drops no complete line and is never an error once the head line is there."""
    content = TRANSPORT.read_bytes()[:700]
    all_data = [record.data for record in open_trace(TRANSPORT).records()]
    for cut in range(content.index(b"\n") + 1, len(content)):
        path = tmp_path / "cut.transport"
        path.write_bytes(content[:cut])
        given = [record.data for record in open_trace(path).records()]
        assert given[:-1] == all_data[: len(given) - 1]
        assert all_data[len(given) - 1].startswith(given[-1])


def test_other_lines_in_a_transport_capture_are_errors(tmp_path):
    """File and line number are named."""
    path = tmp_path / "x.transport"
    lines = TRANSPORT.read_text().splitlines(keepends=True)
    path.write_text("".join([*lines[:2], "what is this\n", *lines[2:]]))
    with pytest.raises(TraceError, match=r"x\.transport line 3: found .*what is this.* expected a head line"):
        list(open_trace(path).records())


@pytest.mark.parametrize("options", ["", "&all", "&color", "&all&color"])
def test_a_file_of_the_real_spy_comes_back_byte_for_byte(tmp_path, options):
    """A recording of pyserial's spy:// over a pseudo-terminal gives the same reads and writes, in order."""
    master, slave = pty.openpty()
    tty.setraw(slave)
    path = tmp_path / "spy.txt"
    expected = []
    with serial.serial_for_url(f"spy://{os.ttyname(slave)}?file={path}{options}", timeout=10) as port:
        for size in (1, 15, 16, 17, 32, 33, 300):
            data = bytes(index % 256 for index in range(size))
            os.write(master, data)
            assert port.read(size) == data
            expected.append(("rx", data))
            port.write(data[::-1])
            expected.append(("tx", data[::-1]))
        port.reset_input_buffer()
        port.timeout = 0
        assert port.read(1) == b""
        with contextlib.suppress(OSError):  # a pseudo-terminal has no such line; spy:// has noted it by then
            port.rts = False
        port.timeout = 10
        os.write(master, b"end")
        assert port.read(3) == b"end"
        expected.append(("rx", b"end"))
    os.close(master)
    os.close(slave)
    trace = open_trace(path)
    records = list(trace.records())
    assert (trace.format, trace.head.wall_us, trace.warnings) == ("spy", None, [])
    assert [(record.direction, record.data) for record in records] == expected
    assert all(record.entry_ns <= record.return_ns for record in records)
    # entry: start of the file until the buffer was emptied, that moment afterwards
    assert {record.entry_ns for record in records[:-1] if record.direction == "rx"} == {-500_000}
    assert records[-1].entry_ns > -500_000 or records[-1].return_ns < 2_000_000
    assert records[-1].entry_ns >= records[-2].return_ns - 1_000_000


def test_our_spy_text_comes_back(tmp_path):
    """to_spy() writes what the reader of spy files reads; errors and silence are skipped by it."""
    records = [
        Record("rx", 1_000_000_000, 1_250_000_000, bytes(range(40))),
        Record("rx", 1_250_000_000, 1_300_000_000),
        Record("tx", 1_400_000_000, 1_500_000_000, b"0123456789abcdef"),
        Record("error", 1_500_000_000, 1_600_000_000, error="gone\nfor good"),
    ]
    path = tmp_path / "spy.txt"
    path.write_text("".join(to_spy(records, 1_000_000_000)))
    assert path.read_text().splitlines()[-2:] == [
        "000000.500 TX   0000  30 31 32 33 34 35 36 37  38 39 61 62 63 64 65 66  0123456789abcdef",
        "000000.600 ERR  gone for good",
    ]
    given = list(open_trace(path).records())
    assert [(r.direction, r.data, r.return_ns) for r in given] == [
        ("rx", bytes(range(40)), 250_500_000),
        ("tx", b"0123456789abcdef", 500_500_000),
    ]


def test_lines_of_two_threads_lie_between_each_other(tmp_path):
    """A chunk goes on after lines of the other direction, and chunks come in the order in which they began."""
    path = tmp_path / "spy.txt"
    rx = list(to_spy([Record("rx", 0, 1_000_000, bytes(40))], 0))
    tx = list(to_spy([Record("tx", 0, 0, bytes(range(20)))], 0))
    path.write_text("".join([rx[0], tx[0], rx[1], rx[2], tx[1]]))
    trace = open_trace(path)
    assert [(r.direction, r.data) for r in trace.records()] == [("rx", bytes(40)), ("tx", bytes(range(20)))]
    assert trace.warnings == []


def test_a_clock_set_back_during_a_spy_is_reported(tmp_path):
    """Times never fall; what follows keeps its distances."""
    path = tmp_path / "spy.txt"
    times_s = (10.0, 4.0, 4.5)
    path.write_text("".join(f"{time:010.3f} RX   0000  {'41':49} {'A':16}\n" for time in times_s))
    trace = open_trace(path)
    assert [record.return_ns for record in trace.records()] == [10_000_500_000, 10_000_500_000, 10_500_500_000]
    assert trace.warnings == ["line 2: the clock was set back by 6.000 s"]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("000000.100 RX   0020  41\n", "offset 0000 or the number of bytes so far"),
        ("000000.100 RX   0000  4G\n", "up to 16 bytes as pairs"),
        ("000000.100 RX   0000  \n", "1 to 16 bytes"),
        ("000000.100 RX   what\n", "an offset"),
        ("what\n", "seconds, a label and a value"),
    ],
)
def test_a_damaged_spy_line_is_an_error_with_its_place(tmp_path, line, expected):
    """File, line number, found and expected are named."""
    path = tmp_path / "spy.txt"
    path.write_text("000000.000 Q-RX reset_input_buffer\n" + line)
    with pytest.raises(TraceError, match=rf"spy\.txt line 2: found .*expected {expected}"):
        list(open_trace(path).records())


def test_a_torn_spy_line_is_dropped_and_reported(tmp_path):
    """A cut at any place gives the whole lines before it."""
    lines = list(to_spy([Record("rx", 0, 10**6, bytes(range(20))), Record("tx", 0, 10**6, b"abc")], 0))
    content = "".join(lines)
    path = tmp_path / "spy.txt"
    for cut in range(len(lines[0]), len(content)):
        path.write_text(content[:cut])
        trace = open_trace(path)
        data = [record.data for record in trace.records()]
        whole_rx = bytes(range(20)) if cut >= len(lines[0] + lines[1]) - 1 else bytes(range(16))
        assert data == [whole_rx] + [b"abc"] * (cut == len(content) - 1)
