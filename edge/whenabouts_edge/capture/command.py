"""The commands `capture` and `trace` of whenabouts-edge: record a port, inspect a recording.

Results go to stdout, messages to stderr. Exit codes: 0 fine, 1 fault of the port, the disk or the trace, 2 wrong usage.
"""

import json
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import click

from whenabouts_edge.capture.capture import TRACE_BYTES_MAX, Captured, Recorder
from whenabouts_edge.capture.capture import capture as capture_port
from whenabouts_edge.readers.port import Port, PortError, open_port
from whenabouts_edge.trace.format import Head, TraceError
from whenabouts_edge.trace.reader import Trace, open_trace
from whenabouts_edge.trace.spy import to_spy
from whenabouts_edge.trace.transport import to_transport

PROGRESS_NS = 1_000_000_000
"""At most one progress line a second."""

ERRORS_SHOWN_MAX = 20
"""Number of error texts kept for the summary; further errors are only counted."""


@click.command()
@click.argument("port")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--baud",
    default=115_200,
    show_default=True,
    envvar="WHENABOUTS_CAPTURE_BAUD",
    show_envvar=True,
    type=click.IntRange(min=1),
    help="Baud rate.",
)
@click.option(
    "--framing",
    default="8N1",
    show_default=True,
    envvar="WHENABOUTS_CAPTURE_FRAMING",
    show_envvar=True,
    help="Data bits, parity (N E O M S), stop bits.",
)
@click.option(
    "--duration",
    type=click.FloatRange(min=0, min_open=True),
    envvar="WHENABOUTS_CAPTURE_DURATION",
    show_envvar=True,
    help="Seconds after which to stop; without it Ctrl-C stops.",
)
@click.option(
    "--bytes-max",
    default=TRACE_BYTES_MAX,
    show_default=True,
    envvar="WHENABOUTS_CAPTURE_BYTES_MAX",
    show_envvar=True,
    type=click.IntRange(min=1024),
    help="Size of FILE at which to stop.",
)
@click.option("--force", is_flag=True, help="Overwrite FILE.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
def capture(
    port: str, file: Path, baud: int, framing: str, duration: float | None, bytes_max: int, force: bool, as_json: bool
) -> None:
    """Record the data received on PORT into FILE, with times that bound each arrival.

    PORT is a device path or any pyserial URL. The recording can be played back as replay://FILE wherever a port is
    expected.

    \b
    Example:
      whenabouts-edge capture /dev/ttyUSB0 dock.trace --baud 115200 --duration 60
    """
    settings = _settings(port, baud, framing)
    if file.exists() and not force:
        raise click.UsageError(f"{file} exists; choose another name, or --force to overwrite it")
    started_ns = time.monotonic_ns()
    try:
        opened = open_port(
            port, baud, bytesize=settings.bytesize or 8, parity=settings.parity or "N", stopbits=settings.stopbits or 1
        )
    except PortError as error:
        raise click.ClickException(str(error)) from None
    with opened, stopped_by_signal() as stopped:
        for note in opened.notes:
            click.echo(f"{port}: {note}", err=True)
        click.echo(f"{port}: recording into {file}, Ctrl-C stops", err=True)
        stop = _Stop(stopped, duration, opened)
        try:
            with file.open("wb" if force else "xb") as sink:
                captured = capture_port(
                    opened,
                    sink,
                    time.monotonic_ns,
                    lambda: time.time_ns() // 1000,
                    stop,
                    settings=settings,
                    trace_bytes_max=bytes_max,
                    progress=_progress(started_ns),
                )
        except OSError as error:
            raise click.ClickException(
                f"{file}: cannot be written: {error.strerror or error}; check folder and permission"
            ) from None
    _report(file, captured, as_json)


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
@click.option(
    "--spy", "as_spy", is_flag=True, help="Print the traffic as a hex dump in the format of pyserial's spy://."
)
@click.option(
    "--transport",
    "as_transport",
    is_flag=True,
    help="Print the frames of an M6e in the format of ThingMagic's library.",
)
def trace(file: Path, as_json: bool, as_spy: bool, as_transport: bool) -> None:
    """Summarise or print a recording of serial traffic.

    FILE is a recording of `capture`, of pyserial's spy:// or of ThingMagic's library.

    \b
    Example:
      whenabouts-edge trace dock.trace --spy
    """
    if as_json + as_spy + as_transport > 1:
        raise click.UsageError("--json, --spy and --transport exclude each other")

    def warn(text: str) -> None:
        click.echo(f"{file}: {text}", err=True)

    try:
        opened = open_trace(file)
        if as_spy or as_transport:
            for line in _spy_lines(opened) if as_spy else to_transport(opened.records(), warn):
                click.echo(line, nl=False)
        else:
            _print_summary(opened, summarise(opened), as_json)
    except (OSError, TraceError) as error:
        raise click.ClickException(str(error)) from None
    for warning in opened.warnings:
        warn(warning)


@dataclass(slots=True)
class Summary:
    """Content of a trace; `start_ns` and `end_ns` are None if it has no records."""

    records: int = 0
    rx_records: int = 0
    rx_bytes: int = 0
    tx_records: int = 0
    tx_bytes: int = 0
    start_ns: int | None = None
    end_ns: int | None = None
    error_records: int = 0
    errors: list[str] = field(default_factory=list)

    @property
    def duration_s(self) -> float:
        """Time from the first record's entry to the last return."""
        return 0.0 if self.start_ns is None or self.end_ns is None else (self.end_ns - self.start_ns) / 1e9


def summarise(opened: Trace) -> Summary:
    """Counts over one pass of a trace, in constant memory.

    Raises:
        OSError, TraceError: as Trace.records.
    """
    summary = Summary()
    for record in opened.records():
        summary.records += 1
        summary.start_ns = record.entry_ns if summary.start_ns is None else summary.start_ns
        summary.end_ns = record.return_ns if summary.end_ns is None else max(summary.end_ns, record.return_ns)
        if record.direction == "rx":
            summary.rx_records += 1
            summary.rx_bytes += len(record.data)
        elif record.direction == "tx":
            summary.tx_records += 1
            summary.tx_bytes += len(record.data)
        else:
            summary.error_records += 1
            if len(summary.errors) < ERRORS_SHOWN_MAX:
                summary.errors.append(record.error)
    return summary


def _settings(port: str, baud: int, framing: str) -> Head:
    bits, parity, stop = framing[:1], framing[1:2].upper(), framing[2:]
    if bits not in ("5", "6", "7", "8") or parity not in ("N", "E", "O", "M", "S") or stop not in ("1", "1.5", "2"):
        raise click.BadParameter(
            f"found {framing!r}, expected data bits 5 to 8, parity N, E, O, M or S, stop bits 1, 1.5 or 2, as in 8N1",
            param_hint="--framing",
        )
    return Head(port, baud=baud, bytesize=int(bits), parity=parity, stopbits=1.5 if stop == "1.5" else int(stop))


class _Stop:
    """True when a capture must end: a signal, the duration since the first call, or a replay at its end."""

    def __init__(self, stopped: threading.Event, duration_s: float | None, port: Port) -> None:
        self._stopped = stopped
        self._duration_ns = None if duration_s is None else int(duration_s * 1e9)
        self._asked_ns: int | None = None
        self._port = port
        self._replay_finished = False

    def __call__(self) -> bool:
        finished, self._replay_finished = self._replay_finished, self._port.replay_finished
        now_ns = time.monotonic_ns()
        self._asked_ns = self._asked_ns or now_ns
        late = self._duration_ns is not None and now_ns - self._asked_ns >= self._duration_ns
        return (
            late or self._stopped.is_set() or finished
        )  # one more read after a replay's end: end=disconnect raises there


@contextmanager
def stopped_by_signal() -> Iterator[threading.Event]:
    """An event set by Ctrl-C or a service manager's TERM: a capture ends between two records, never inside one."""
    stopped = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stopped
        return
    before = {number: signal.signal(number, lambda *_: stopped.set()) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stopped
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _progress(started_ns: int) -> Callable[[Recorder], None]:
    said_ns, said_bytes = started_ns, 0

    def say(recorder: Recorder) -> None:
        nonlocal said_ns, said_bytes
        now_ns = time.monotonic_ns()
        if now_ns - said_ns < PROGRESS_NS:
            return
        rate = (recorder.rx_bytes - said_bytes) / ((now_ns - said_ns) / 1e9)
        said_ns, said_bytes = now_ns, recorder.rx_bytes
        click.echo(
            f"\r{recorder.rx_bytes} bytes, {recorder.chunks} chunks, {rate:.0f} bytes/s ",
            err=True,
            nl=not sys.stderr.isatty(),
        )

    return say


def _report(file: Path, captured: Captured, as_json: bool) -> None:
    if as_json:
        fields = asdict(captured)
        fields["duration_s"] = fields.pop("duration_ns") / 1e9
        click.echo(json.dumps({"file": str(file), **fields}))
    else:
        seconds = captured.duration_ns / 1e9
        click.echo(
            f"{file}: {captured.rx_bytes} bytes in {captured.chunks} chunks, {seconds:.1f} s, ended: {captured.reason}"
        )
    if captured.reason != "stopped":
        raise click.ClickException(captured.error)


def _print_summary(opened: Trace, summary: Summary, as_json: bool) -> None:
    if as_json:
        fields: dict[str, Any] = asdict(summary)
        head = asdict(opened.head)
        click.echo(
            json.dumps(
                {
                    "file": str(opened.path),
                    "format": opened.format,
                    "duration_s": summary.duration_s,
                    **fields,
                    "head": head,
                    "warnings": opened.warnings,
                }
            )
        )
        return
    head_text = f"{opened.head.port}, {opened.head.baud or 'unknown'} Bd"
    click.echo(f"{opened.path}: {opened.format} trace of {head_text}")
    click.echo(f"  {summary.records} records in {summary.duration_s:.3f} s")
    click.echo(f"  received {summary.rx_bytes} bytes in {summary.rx_records} records")
    click.echo(f"  sent     {summary.tx_bytes} bytes in {summary.tx_records} records")
    for error in summary.errors:
        click.echo(f"  error: {error}")


def _spy_lines(opened: Trace) -> Iterator[str]:
    records = opened.records()
    first = next(records, None)
    if first is not None:
        yield from to_spy([first], first.entry_ns)
        yield from to_spy(records, first.entry_ns)
