"""Findings about the way to the broker: certificates, passwords, rights of files, the running connection. Pure."""

import ipaddress
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from whenabouts_edge.config.settings import BrokerConfig
from whenabouts_edge.health.findings import FileFacts, Finding

DAY_S = 86400
RENEW_DAYS = 30  # before the end of a certificate
SECRETS = ("password_file", "key_file", "token_file")


def of_rights(file: FileFacts) -> Iterator[Finding]:
    """Check that others cannot read a secret, nor replace what the agent trusts."""
    if file.path is None or file.path.kind != "file":
        return
    shown = f"{file.file} (mode {file.path.mode:o})"
    if file.key in SECRETS and file.path.mode & 0o004:
        yield Finding("files", f"{file.key}: everybody on this machine may read {shown}", f"sudo chmod o= {file.file}")
    elif file.path.mode & 0o002:
        yield Finding(
            "files", f"{file.key}: everybody on this machine may change {shown}", f"sudo chmod o-w {file.file}"
        )


def of_certificates(certificates: Sequence[tuple[str, str, int]], now_s: float) -> Iterator[Finding]:
    """Check the ends of certificates. certificates: key of the configuration, file, end in seconds since 1970."""
    for key, file, end_s in certificates:
        day = date(end_s)
        left = int((end_s - now_s) // DAY_S)
        fix = f"replace {file}; the agent takes it without a restart"
        if end_s <= now_s:
            yield Finding("certificate", f"{key}: {file} ended on {day}; the connection is refused", fix)
        elif left < RENEW_DAYS:
            yield Finding("certificate", f"{key}: {file} ends on {day}, in {left} days", fix)
        else:
            yield Finding("certificate", f"{key}: {file} is valid until {day}")


def of_password(broker: BrokerConfig) -> Iterator[Finding]:
    """Check that no password is sent through a network that others can read."""
    if broker.password_file and not broker.tls and not is_here(broker.host):
        yield Finding(
            "broker",
            f"{broker.host}: the password is sent without TLS, readable for anyone on the way",
            "set ca_file in [broker], and the port of the broker with TLS, usually 8883",
        )


def of_connection(connection: Mapping[str, Any], broker: BrokerConfig) -> Iterator[Finding]:
    """The connection of the running agent, from its status, and its troubles."""
    place = f"{broker.host}:{broker.port}"
    if connection["connected"]:
        how = "TLS" if broker.tls else "no TLS"
        yield Finding("broker", f"{place} serves the agent (MQTT {connection['mqtt']}, {how}, as {broker.client_id})")
    else:
        yield Finding("broker", f"{place}: {connection['problem']}", "see the log of agent and broker; it tries again")
    for trouble in connection["troubles"]:
        found, _, fix = trouble.rpartition("; ")
        yield Finding("broker", found, fix)


def date(end_s: int) -> str:
    """A time as a date, UTC."""
    return time.strftime("%Y-%m-%d", time.gmtime(end_s))


def is_here(host: str) -> bool:
    """True if the name or address is of this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.rstrip(".").lower() in ("localhost", "ip6-localhost")
