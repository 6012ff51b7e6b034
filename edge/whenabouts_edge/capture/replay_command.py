"""The command `replay` of whenabouts-edge: plays a recording out of a port, or through the agent.

Exit codes: 0 fine, also after Ctrl-C; 1 fault of the port, the trace or the agent; 2 wrong usage.
"""

import asyncio
import json
import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict, replace
from decimal import Decimal
from pathlib import Path
from urllib.parse import quote

import click

from whenabouts_edge.agent.agent import Agent
from whenabouts_edge.capture.command import stopped_by_signal
from whenabouts_edge.capture.playback import ANSWER_POLL_MS, Played, PortEnd, PtyEnd, play
from whenabouts_edge.clock.choose import host_clock
from whenabouts_edge.config.options import load
from whenabouts_edge.config.settings import Config
from whenabouts_edge.readers.port import PortError, open_port
from whenabouts_edge.rules.rule_host import RulesFileError
from whenabouts_edge.serial_handlers.protocol_replay import speed_of
from whenabouts_edge.store.spool import SpoolError
from whenabouts_edge.trace.format import TraceError
from whenabouts_edge.trace.player import Player
from whenabouts_edge.trace.reader import Trace, open_trace

DONE_LOOK_S = 0.05


def _checked(_context: click.Context, _option: click.Parameter, speed: str) -> str:
    try:
        speed_of(speed)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
    return speed


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--pty", type=click.Path(path_type=Path), help="Make a pseudo-terminal at this path and play out of it.")
@click.option("--port", help="Play out of this serial port, to what is connected to it.")
@click.option(
    "--config",
    "config_file",
    type=click.Path(path_type=Path),
    help="Run the agent of this configuration with FILE in place of its reader's port.",
)
@click.option("--reader", help="With --config: name of the reader; not needed if it has only one.")
@click.option("--baud", type=click.IntRange(min=1), help="With --port: baud rate; that of the recording by default.")
@click.option(
    "--speed",
    default="1",
    show_default=True,
    envvar="WHENABOUTS_REPLAY_SPEED",
    show_envvar=True,
    metavar="NUMBER|max",
    callback=_checked,
    help="10 plays ten times as fast, max leaves no time between records.",
)
@click.option(
    "--match", is_flag=True, help="Hold the data after a recorded write until the program has written the same bytes."
)
@click.option("--loop", is_flag=True, help="Begin again after the end; Ctrl-C stops.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
def replay(
    file: Path,
    pty: Path | None,
    port: str | None,
    config_file: Path | None,
    reader: str | None,
    baud: int | None,
    speed: str,
    match: bool,
    loop: bool,
    as_json: bool,
) -> None:
    """Play the recording FILE with its own timing: out of a port, out of a pseudo-terminal, or through the agent.

    FILE is a recording of `capture`, of pyserial's spy:// or of hs-mercury-api. With --pty, the replay begins when a program
    has opened the pseudo-terminal, which is removed when everything was read. With --config, the agent stamps, stores and
    publishes the readings as if they happened now; it ends when all are stored and, within five seconds, published. Ctrl-C
    stops at any time.

    \b
    Examples:
      whenabouts-edge replay dock.trace --pty /tmp/dock
      whenabouts-edge replay dock.trace --port /dev/ttyUSB1 --speed 2
      whenabouts-edge replay dock.trace --config edge.toml --reader dock
    """
    if [pty is None, port is None, config_file is None].count(False) != 1:
        raise click.UsageError("expected one of --pty, --port and --config")
    if reader is not None and config_file is None:
        raise click.UsageError("--reader belongs to --config")
    if baud is not None and port is None:
        raise click.UsageError("--baud belongs to --port")
    try:
        trace = open_trace(file)
        if config_file is not None:
            _through_agent(load(config_file), reader, file, speed, match, loop, as_json)
            return
        with stopped_by_signal() as stopped:
            if pty is not None:
                played = _out_of_pty(trace, pty, _player(trace, speed, match, loop), stopped)
            else:
                assert port is not None
                played = _out_of_port(trace, port, baud, _player(trace, speed, match, loop), match, stopped)
    except (OSError, TraceError, PortError) as error:
        raise click.ClickException(str(error)) from None
    _report(file, played, as_json)
    for warning in trace.warnings:
        click.echo(f"{file}: {warning}", err=True)


def _player(trace: Trace, speed: str, match: bool, loop: bool) -> Callable[[int], Player]:
    number: Decimal | None = speed_of(speed)
    return lambda start_ns: Player(trace.records, start_ns, speed=number, match_tx=match, loop=loop)


def _out_of_pty(trace: Trace, path: Path, make: Callable[[int], Player], stopped: threading.Event) -> Played:
    try:
        far = PtyEnd(path)
    except FileExistsError:
        raise click.ClickException(f"{path}: found an existing file, expected none; choose another path") from None
    with closing(far):
        click.echo(f"{path}: waiting for a program to open it; Ctrl-C stops", err=True)
        return play(make, far, stopped)


def _out_of_port(
    trace: Trace, name: str, baud: int | None, make: Callable[[int], Player], match: bool, stopped: threading.Event
) -> Played:
    head = trace.head
    rate = baud or head.baud
    if rate is None:
        raise click.UsageError(f"{trace.path} has no baud rate; give it with --baud")
    with open_port(
        name,
        rate,
        bytesize=head.bytesize or 8,
        parity=head.parity or "N",
        stopbits=head.stopbits or 1,
        poll_ms=ANSWER_POLL_MS,
    ) as opened:
        click.echo(f"{name}: playing {trace.path} at {rate} Bd; Ctrl-C stops", err=True)
        return play(make, PortEnd(opened, match, stopped), stopped)


def _report(file: Path, played: Played, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps({"file": str(file), **asdict(played)}))
        return
    lost = f", {played.lost_bytes} of them while nobody had it open" if played.lost_bytes else ""
    differ = f", {played.mismatches} writes differed" if played.mismatches else ""
    click.echo(
        f"{file}: {played.sent_bytes} bytes of {played.records} records{lost}{differ}, "
        f"at most {played.late_us_max / 1000:.1f} ms late; {played.ended}"
    )


def _through_agent(
    config: Config, name: str | None, file: Path, speed: str, match: bool, loop: bool, as_json: bool
) -> None:
    names = [reader.name for reader in config.readers]
    if name is None and len(names) > 1:
        raise click.UsageError(f"found readers {', '.join(names)}; name the recorded one with --reader")
    chosen = [reader for reader in config.readers if name in (None, reader.name)]
    if not chosen:
        raise click.UsageError(f"--reader: found {name!r}, expected one of {', '.join(names)}")
    end = "loop" if loop else "block"
    url = f"replay://{quote(str(file))}?speed={speed}&end={end}{'&match=tx' if match else ''}"
    # Only that reader: the running agent holds the others' ports, and a group would see false states.
    alone = replace(config, readers=(replace(chosen[0], port=url),), group=None)
    try:
        with stopped_by_signal() as stopped:
            result = asyncio.run(_run(alone, stopped))
    except (SpoolError, RulesFileError) as error:
        raise click.ClickException(str(error)) from None
    if as_json:
        click.echo(json.dumps({"file": str(file), **result}))
    else:
        click.echo(
            f"{file}: {result['readings']} readings of {result['frames']} frames, "
            f"{result['waiting']} wait in the spool; {result['ended']}"
        )
    if result["problem"]:
        raise click.ClickException(str(result["problem"]))


async def _run(config: Config, stopped: threading.Event) -> dict[str, int | str]:
    agent = Agent(config, host_clock(config.clock))
    running = asyncio.create_task(agent.run())
    [state] = agent.readers.values()
    while not running.done() and not stopped.is_set() and state.state not in ("finished", "lost"):
        await asyncio.sleep(DONE_LOOK_S)
    problem = state.problem if state.state == "lost" else ""
    agent.stop()
    await running
    return {
        "ended": "stopped" if stopped.is_set() else "port lost" if problem else "end of trace",
        "problem": problem,
        "frames": state.counters.get("frames", 0),
        "readings": agent.spool_state.next_seq,
        "waiting": agent.spool_state.readings,
    }
