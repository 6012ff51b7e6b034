"""The command `doctor` of whenabouts-edge: checks what the agent needs and suggests a fix for each fault."""

import json
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from serial.tools.list_ports import comports

from whenabouts_edge.config.options import config_option, json_option, load
from whenabouts_edge.config.settings import HTTP, LLRP, MQTT, Config
from whenabouts_edge.health import access, facts, findings
from whenabouts_edge.health.findings import Finding
from whenabouts_edge.install.files import PORT_GROUP, user_of
from whenabouts_edge.install.plan import UNIT
from whenabouts_edge.readers.reader_clock import in_words

SHOWN = ("connected", "mqtt", "problem", "troubles")  # of the connection in the status


@click.command()
@config_option
@json_option
def doctor(config_file: Path, as_json: bool) -> None:
    """Check ports, user, clock, broker and disk, with a fix for each fault.

    Changes nothing, opens no serial port and does not disturb a running agent. As an ordinary user it sees less than with
    sudo. Exit code 1 if there is a fault.

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
    status = _agent_status(Path(config.state_dir))
    agent_pid = status["pid"] if status else None
    results = [findings.of_user(user, PORT_GROUP, facts.group_id(PORT_GROUP))]
    for port in facts.ports(config.readers, agent_pid):
        if not port.port.startswith((LLRP, HTTP, MQTT)):
            results += findings.of_port(port, user)
    results += examine_network(config, status)
    results += findings.of_modems(facts.modems(comports()), facts.is_modem_managed())
    results += examine_files(config)
    results += findings.of_clock(facts.clock(config.clock))
    if status:  # a second login could cost the agent its connection, where the certificate gives the name
        results += access.of_connection(status["broker"], config.broker)
    else:
        results.append(findings.of_broker(facts.broker(config.broker)))
    results += findings.of_disk(facts.disk(config, agent_pid), user)
    return results


def examine_network(config: Config, status: dict[str, Any] | None) -> Iterator[Finding]:
    """Findings about readers on the network. A second connection would be refused, so the running agent is believed."""
    for reader in config.readers:
        if not reader.port.startswith((LLRP, HTTP, MQTT)):
            continue
        if status:
            state, problem, clock = status["readers"].get(reader.name, ("", "", ""))
            state = f"the agent says: {', '.join(filter(None, (state, clock)))}" if state else ""
        else:
            problem = facts.llrp_problem(reader.port) if reader.port.startswith(LLRP) else ""
            state = "answers" if reader.port.startswith(LLRP) else ""
        yield findings.of_network(reader.name, reader.port, state, problem)


def examine_files(config: Config) -> list[Finding]:
    """Findings about the files that the agent reads, for the agent's user on this machine."""
    user = facts.user(_service_user())
    return [*(findings.of_file(file, user) for file in facts.files(config)), *examine_access(config)]


def examine_access(config: Config) -> list[Finding]:
    """Findings about certificates, passwords and the rights of their files."""
    return [
        *(finding for file in facts.files(config) for finding in access.of_rights(file)),
        *access.of_certificates(facts.certificates(config.broker), time.time()),
        *access.of_password(config.broker),
    ]


def is_installed() -> bool:
    """True if this machine is a gateway: the agent's service is installed."""
    return _service_user() is not None


def _service_user() -> str | None:
    """The user of the installed service, None if it is not installed."""
    try:
        return user_of(Path(UNIT).read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return None


def _agent_status(state_dir: Path) -> dict[str, Any] | None:
    """The status of the agent that writes it, None if it does not run or cannot be seen."""
    try:
        status = json.loads((state_dir / "status.json").read_text())
        seen = {"pid": int(status["pid"]), "broker": {key: status["broker"][key] for key in SHOWN}}
        readers = status["readers"].items()
        seen["readers"] = {name: (one["state"], one["problem"], in_words(one)) for name, one in readers}
        return seen if status["running"] and os.path.exists(f"/proc/{seen['pid']}") else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
