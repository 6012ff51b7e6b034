"""The commands of `whenabouts-edge`: run and monitor the agent, record and inspect serial traffic.

Exit codes: 0 fine, 1 a problem was found, 2 wrong usage or configuration. Results go to stdout, messages to stderr.
"""

import asyncio
import faulthandler
import functools
import json
import os
import signal
import sqlite3
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import click

from whenabouts_edge.agent.agent import Agent
from whenabouts_edge.capture.command import capture, trace
from whenabouts_edge.capture.replay_command import replay
from whenabouts_edge.clock.choose import host_clock
from whenabouts_edge.config import load as configuration
from whenabouts_edge.config.options import config_option, json_option, load
from whenabouts_edge.config.settings import Config
from whenabouts_edge.config.settings import sample as sample_text
from whenabouts_edge.flash.command import flash_command, provision_command
from whenabouts_edge.health.access import date
from whenabouts_edge.health.doctor import doctor, examine_access, examine_files, is_installed
from whenabouts_edge.health.findings import needs_a_look
from whenabouts_edge.health.notify import Notifier
from whenabouts_edge.install.command import install
from whenabouts_edge.readers.reader_clock import in_words
from whenabouts_edge.rules.rule_host import RulesFileError
from whenabouts_edge.store.spool import SpoolError
from whenabouts_protocol.logs import FORMATS, write_logs

END_S = 25.0  # the systemd unit kills without a message after 30
STALE_S = 10.0  # an older status file means that the agent hangs or was killed


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="whenabouts")
def main() -> None:
    """The agent on a gateway: stamps readings with the interval that certainly contains their time and publishes them.

    \b
    Start with:  whenabouts-edge sample-config > edge.toml
                 whenabouts-edge check --config edge.toml
                 whenabouts-edge run --config edge.toml
    """


@main.command()
@config_option
@click.option(
    "--log-level",
    default="info",
    type=click.Choice(["debug", "info", "warning"]),
    show_default=True,
    help="Least severe messages to log on stderr.",
)
@click.option(
    "--log-format", type=click.Choice(FORMATS), default="text", show_default=True, envvar="WHENABOUTS_LOG_FORMAT",
    show_envvar=True, help="Log on stderr as lines of key=value, or as JSON.",
)  # fmt: skip
def run(config_file: Path, log_level: str, log_format: str) -> None:
    """Run the agent until SIGTERM or Ctrl-C.

    At the end it stores all readings and publishes for up to five seconds; the rest is sent after the next start. If it
    still runs after 25 s, for example because the disk hangs, it prints the stack of each thread and exits with code 1.

    \b
    Example:  whenabouts-edge run --config /etc/whenabouts/edge.toml
    """
    config = load(config_file)
    write_logs(log_format, log_level)
    os.umask(0o077)  # readings are nobody else's; the metrics file has its own mode
    try:
        asyncio.run(_run(config))
    except SpoolError as error:
        raise click.ClickException(str(error)) from None
    except RulesFileError as error:
        click.echo(str(error), err=True)
        sys.exit(2)


async def _run(config: Config) -> None:
    agent = Agent(config, host_clock(config.clock), Notifier(os.environ))
    loop = asyncio.get_running_loop()

    @functools.cache  # a second signal does not extend the time
    def end() -> None:
        faulthandler.dump_traceback_later(END_S, exit=True)  # its thread needs neither the loop nor the disk
        agent.stop()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, end)
    await agent.run()


@main.command()
@config_option
@json_option
def check(config_file: Path, as_json: bool) -> None:
    """Check a configuration file.

    Reports all mistakes, each with its line; exit code 2 if there is one. Also reports files in it that the agent could not
    read; exit code 1 for them on a gateway, where the service is installed.

    \b
    Example:  whenabouts-edge check --config edge.toml
    """
    try:
        config = configuration.load(config_file)
    except configuration.ConfigError as error:
        if as_json:
            click.echo(json.dumps({"ok": False, "mistakes": error.mistakes}))
        else:
            for mistake in error.mistakes:
                click.echo(mistake, err=True)
        sys.exit(2)
    missing = needs_a_look(examine_files(config))
    problem = bool(missing) and is_installed()
    readers = [{"name": r.name, "kind": r.kind, "port": r.port, "stream": r.stream} for r in config.readers]
    group = config.group
    if as_json:
        reported = {"name": group.name, "members": ["/".join(p) for p in group.peers]} if group else None
        names = {"site": config.site, "gateway": config.gateway, "readers": readers, "group": reported}
        files = [{"found": finding.found, "fix": finding.fix} for finding in missing]
        click.echo(json.dumps({"ok": not problem, **names, "files": files}))
        sys.exit(1 if problem else 0)
    for finding in missing:
        click.echo(f"LOOK  {finding.area}: {finding.found}\n      -> {finding.fix}", err=True)
    if missing and not problem:
        click.echo("      the agent is not installed here: run `doctor` on the gateway, where it matters", err=True)
    if problem:
        sys.exit(1)
    broker = config.broker
    click.echo(f"{config_file}: fine. Gateway {config.site}/{config.gateway}, broker {broker.host}:{broker.port}.")
    for reader in readers:
        click.echo(f"  reader {reader['name']}: {reader['kind']} on {reader['port']}, stream {reader['stream']}")
    for one in config.readers:
        if one.presence:
            click.echo(f"  presence at {one.name}: left after {one.presence.leave_ms} ms, stream {one.presence.stream}")
    if group:
        click.echo(
            f"  group {group.name} with {', '.join('/'.join(peer) for peer in group.peers)}, stream {group.stream}"
        )
        for state in group.states:
            click.echo(f"  state {state.name}: {'presence' if state.on_at is None else 'measure'} in {state.stream}")


@main.command()
@config_option
@json_option
def status(config_file: Path, as_json: bool) -> None:
    """Show the status of the agent.

    Readers, clock bound, connection and spool. Exit code 1 if there is a problem.

    \b
    Example:  whenabouts-edge status --config /etc/whenabouts/edge.toml
    """
    config = load(config_file)
    path = Path(config.state_dir) / "status.json"
    try:
        state: dict[str, Any] = json.loads(path.read_text())
    except PermissionError:
        raise click.ClickException(f"{path}: found no permission to read; run it with sudo") from None
    except (OSError, ValueError, RecursionError) as error:
        raise click.ClickException(f"{path}: cannot read ({error}); has the agent run with this state_dir?") from None
    try:
        age_s = time.time() - state["written_us"] / 1e6
        problems = _problems(state, age_s)
        problems += [f"{finding.area}: {finding.found}" for finding in needs_a_look(examine_access(config))]
        if not state["running"] or age_s > STALE_S:
            state["spool"] = _stored(Path(config.state_dir) / "spool.sqlite") or state["spool"]
        lines = _shown(state, age_s, problems)
    except (KeyError, TypeError, AttributeError, ValueError):
        raise click.ClickException(f"{path}: found no status of this version; restart the agent") from None
    if as_json:
        click.echo(json.dumps({**state, "age_s": round(age_s, 1), "problems": problems}))
    else:
        click.echo("\n".join(lines))
    sys.exit(1 if problems else 0)


@main.command("sample-config")
def sample_config() -> None:
    """Print a configuration with every option.

    Each option is explained; defaults are commented out.

    \b
    Example:  whenabouts-edge sample-config > edge.toml
    """
    click.echo(sample_text())


main.add_command(install)
main.add_command(doctor)
main.add_command(capture)
main.add_command(replay)
main.add_command(trace)
main.add_command(provision_command)
main.add_command(flash_command)


def _problems(state: dict[str, Any], age_s: float) -> list[str]:
    problems = []
    if not state["running"]:
        problems.append("the agent is stopped")
    elif age_s > STALE_S:
        problems.append(f"the agent has not written its status for {age_s:.0f} s: killed or hanging")
    if not state["broker"]["connected"]:
        problems.append(f"broker: {state['broker']['problem'] or 'not connected'}")
    problems += [f"broker: {trouble}" for trouble in state["broker"]["troubles"]]
    if state["clock"]["state"] != "bounded":
        problems.append(f"clock: {state['clock']['state']}; check that time synchronisation runs")
    if state["refused"]:
        problems.append(f"spool: {state['refused']} readings refused because it was full")
    group = state["group"]
    if group and group["absent"] and state["broker"]["connected"]:
        problems.append(
            f"group {group['name']}: not in the view: {', '.join(group['absent'])}; are their agents running?"
        )
    for name, reader in state["readers"].items():
        if reader["state"] not in ("reading", "finished") or (reader["state"] == "reading" and reader["problem"]):
            problems.append(f"reader {name}: {reader['state']}: {reader['problem']}")
    return problems


def _connection(broker: dict[str, Any]) -> str:
    """The connection in words."""
    end_s = broker["certificate_end_s"]
    until = f", certificate until {date(end_s)}" if end_s else ""
    return f"connected, MQTT {broker['mqtt']}{until}" if broker["connected"] else f"not connected{until}"


def _stored(spool: Path) -> dict[str, Any] | None:
    """Depth of the spool of a stopped agent; None if it cannot be read."""
    try:
        with closing(sqlite3.connect(f"file:{spool}?mode=ro", uri=True)) as db:
            row = db.execute("SELECT coalesce(sum(readings), 0), coalesce(sum(length(payload)), 0) FROM message")
            readings, size = row.fetchone()
    except sqlite3.Error:
        return None
    return {"readings": readings, "bytes": size}


def _shown(state: dict[str, Any], age_s: float, problems: list[str]) -> list[str]:
    bound_us = state["clock"]["bound_us"]
    bound = "unknown" if bound_us is None else f"{bound_us / 1000:.1f} ms"
    by = f" by {state['clock']['source']}" if state["clock"].get("source") else ""
    never = state["clock"].get("never_dated")
    lines = [
        f"{state['site']}/{state['gateway']}  boot {state['boot']}  written {age_s:.0f} s ago",
        f"  clock   {state['clock']['state']}{by}, bound {bound}"
        + (f", {never} readings stored with unknown time" if never else ""),
        f"  broker  {_connection(state['broker'])}",
        f"  spool   {state['spool']['readings']} readings, {state['spool']['bytes']} bytes",
    ]
    group = state["group"]
    if group:
        view = f"view {group['view']:012x}: {', '.join(group['members'])}" if group["members"] else "no view yet"
        values = ", ".join(f"{name} {value}" for name, value in sorted(group["values"].items())) or "unknown"
        lines.append(f"  group   {group['name']}, {view}")
        lines.append(f"  state   {group['state']} of vector clock {tuple(group['clock'])}: {values}")
    for name, reader in state["readers"].items():
        damaged = sum(reader.get(c, 0) for c in ("bad_checksum", "bad_byte", "bad_content", "lost_end", "overruns"))
        invalid = f", {reader['invalid']} invalid readings" if reader.get("invalid") else ""
        clock = f", {in_words(reader)}" if in_words(reader) else ""
        count = f"{reader['readings']} readings, {damaged} damaged frames"
        lines.append(f"  reader  {name}: {reader['state']}, {count}{invalid}{clock}")
    for name, there in state.get("presence", {}).items():
        ignored = f", {there['untracked']} reads beyond the limit of tags" if there["untracked"] else ""
        lines.append(
            f"  tags    {name}: {there['present']} present, {there['entered']} entered, {there['left']} left{ignored}"
        )
    return [*lines, *(f"  ! {problem}" for problem in problems)]


if __name__ == "__main__":
    main()
