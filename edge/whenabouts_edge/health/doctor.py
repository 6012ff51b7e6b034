"""The command `doctor` of whenabouts-edge: checks what the agent needs and suggests a fix for each fault."""

import json
import os
import sys
from dataclasses import asdict
from pathlib import Path

import click

from whenabouts_edge.config.options import config_option, json_option, load
from whenabouts_edge.config.settings import Config
from whenabouts_edge.health import facts, findings
from whenabouts_edge.health.findings import Finding
from whenabouts_edge.install.files import PORT_GROUP, user_of
from whenabouts_edge.install.plan import UNIT


@click.command()
@config_option
@json_option
def doctor(config_file: Path, as_json: bool) -> None:
    """Check ports, user, clock, broker and disk, with a fix for each fault.

    Changes nothing, opens no port and does not disturb a running agent. As an ordinary user it sees less than with sudo.
    Exit code 1 if there is a fault.

    \b
    Example:  sudo whenabouts-edge doctor --config /etc/whenabouts/edge.toml
    """
    results = examine(load(config_file))
    if as_json:
        reported = [{**asdict(finding), "fine": finding.fine} for finding in results]
        click.echo(json.dumps({"ok": not findings.needs_a_look(results), "findings": reported}))
    else:
        for finding in results:
            click.echo(f"{'fine' if finding.fine else 'LOOK'}  {finding.area}: {finding.found}")
            if finding.fix:
                click.echo(f"      -> {finding.fix}")
    sys.exit(1 if findings.needs_a_look(results) else 0)


def examine(config: Config) -> list[Finding]:
    """All findings on this machine; takes up to the broker's time-out."""
    user = facts.user(_service_user())
    agent_pid = _agent_pid(Path(config.state_dir))
    results = [findings.of_user(user, PORT_GROUP, facts.group_id(PORT_GROUP))]
    for port in facts.ports(config.readers, agent_pid):
        results += findings.of_port(port, user)
    results += examine_files(config)
    results += findings.of_clock(facts.clock(config.clock))
    results.append(findings.of_broker(facts.broker(config.broker, config.gateway)))
    results += findings.of_disk(facts.disk(config, agent_pid), user)
    return results


def examine_files(config: Config) -> list[Finding]:
    """Findings about the files that the agent reads, for the agent's user on this machine."""
    user = facts.user(_service_user())
    return [findings.of_file(file, user) for file in facts.files(config)]


def is_installed() -> bool:
    """True if this machine is a gateway: the agent's service is installed."""
    return _service_user() is not None


def _service_user() -> str | None:
    """The user of the installed service, None if it is not installed."""
    try:
        return user_of(Path(UNIT).read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return None


def _agent_pid(state_dir: Path) -> int | None:
    """The process of the agent that writes this status, None if it does not run or cannot be seen."""
    try:
        status = json.loads((state_dir / "status.json").read_text())
        pid = int(status["pid"]) if status["running"] else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return pid if pid is not None and os.path.exists(f"/proc/{pid}") else None
