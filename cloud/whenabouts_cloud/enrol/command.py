"""`whenabouts-cloud enrol`: give gateways, ingest, publisher and broker their certificates, and take them back."""

import contextlib
import json
import re
import shlex
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from whenabouts_cloud.enrol import folder as folders
from whenabouts_cloud.enrol.authority import AUTHORITY_DAYS, day
from whenabouts_cloud.enrol.folder import AuthorityFolder, opened
from whenabouts_cloud.enrol.mosquitto import CONFIGURATION
from whenabouts_cloud.enrol.names import PUBLISHER, EnrolError, identity_of, ingest_identity, shown
from whenabouts_cloud.enrol.register import Register
from whenabouts_protocol.topics import is_name

DAYS = 365
BROKER_FILE = "broker.toml"
TLS_PORT = 8883
RESTART = "restart mosquitto, so that it reads its files again: systemctl restart mosquitto (its sessions are kept)"

_dir = click.option(
    "--dir", "folder", required=True, type=click.Path(path_type=Path, file_okay=False), help="Folder of the authority.",
    envvar="WHENABOUTS_AUTHORITY", show_envvar=True,
)  # fmt: skip
_passphrase = click.option(
    "--passphrase-file", type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="File with the passphrase of the authority's key, on its first line.",
)  # fmt: skip
_out = click.option(
    "--out",
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for the files; made if missing.",
)
_days = click.option(
    "--days",
    default=DAYS,
    show_default=True,
    type=click.IntRange(1, AUTHORITY_DAYS),
    help="How long the certificate is valid.",
)
_replace = click.option("--replace", "replaces", is_flag=True, help="Revoke the earlier certificates of this name.")


@click.group()
def enrol() -> None:
    """Decide who may speak: certificates for gateways, ingest, publisher and broker, and the broker's access rules.

    A gateway's certificate bears its site and name, and the broker lets it publish only below these.

    \b
    Start with:  whenabouts-cloud enrol init --dir ca
                 whenabouts-cloud enrol broker --dir ca --out broker --host broker.example
                 whenabouts-cloud enrol gateway warehouse dock-1 --dir ca --out dock-1
                 whenabouts-cloud enrol ingest --dir ca --out ingest
    """


@enrol.command("init")
@_dir
@_passphrase
def init(folder: Path, passphrase_file: Path | None) -> None:
    """Make an authority: a key and a certificate, valid for ten years. Whoever has the key can let anybody in."""
    with _faults():
        folders.create(folder, _phrase(passphrase_file), _now_s())
    click.echo(
        f"{folder}: a new authority; keep {folder / folders.KEY} secret, and a copy of the folder in a safe place"
    )


@enrol.command("gateway")
@click.argument("site")
@click.argument("name")
@_dir
@_out
@_passphrase
@_days
@_replace
@click.option(
    "--stream", "streams", multiple=True, metavar="PATTERN",
    help="A stream it may publish, such as dock/tags or dock/+; repeatable. Without it any, or as before.",
)  # fmt: skip
@click.option(
    "--group", "groups", multiple=True, metavar="GROUP",
    help="A group it is a member of; repeatable. Without it none, or as before.",
)  # fmt: skip
@click.option("--broker", metavar="HOST:PORT", help="Broker for broker.toml; the one of `enrol broker` by default.")
@click.option(
    "--installed-in", metavar="FOLDER", help="Where the gateway will have the files, for broker.toml; --out by default."
)
def gateway(
    site: str, name: str, folder: Path, out: Path, passphrase_file: Path | None, days: int, replaces: bool,
    streams: tuple[str, ...], groups: tuple[str, ...], broker: str | None, installed_in: str | None,
) -> None:  # fmt: skip
    """Give a gateway a certificate, or a new one before the old ends.

    Writes ca.crt, client.crt, client.key, and broker.toml, a table for the gateway's edge.toml.
    """
    with _faults(), opened(folder, _phrase(passphrase_file)) as ca:
        identity = identity_of(site, name)
        for pattern in streams:
            _require_pattern(pattern)
        for group in groups:
            if not is_name(group):
                raise EnrolError(f"--group: found {group!a}, expected a name like those of gateways")
        host, port = _address(broker, ca.register)
        returns = identity in ca.register.gateways and ca.register.gateways[identity].revoked
        ca.register = ca.register.enrolled(identity, streams, groups)
        issued = ca.enrol_client(identity, out, _now_s(), days, replaces)
        table = broker_table(host, port, identity, Path(installed_in) if installed_in else out.resolve())
        folders.write_public(out / BROKER_FILE, table.encode())
    click.echo(
        f"{shown(identity)}: certificate until {day(issued.ends_s)} in {out}; {BROKER_FILE} is for its edge.toml"
    )
    if broker is None and not ca.register.brokers:
        click.echo(
            f"no broker is known yet: {BROKER_FILE} names {host}:{port}; run `enrol broker` first, or give --broker"
        )
    _tell_brokers(ca, bool(ca.register.gateways[identity].groups) or replaces or returns)


@enrol.command("ingest")
@_dir
@_out
@_passphrase
@_days
@_replace
@click.option("--name", help="Of this ingest, if several share a landing: as in `ingest --name`.")
@click.option(
    "--site", "sites", multiple=True, metavar="SITE",
    help="With --name: a site that it lands, and no other; repeatable. Without it all, or as before.",
)  # fmt: skip
def ingest(
    folder: Path, out: Path, passphrase_file: Path | None, days: int, replaces: bool, name: str | None,
    sites: tuple[str, ...],
) -> None:  # fmt: skip
    """Give an ingest a certificate: it may read readings, of all sites or of some, and acknowledge them.

    Each of several ingests needs a certificate of its own: a broker keeps one connection for each.
    """
    with _faults():
        identity = ingest_identity(name)
        if sites and name is None:
            raise EnrolError("--site: found no --name, expected one: the ingest without a name lands all sites")
        for site in sites:
            if not is_name(site):
                raise EnrolError(f"--site: found {site!a}, expected the name of a site: no / + #, first no $ or .")
    if name is not None:
        with _faults(), opened(folder, _phrase(passphrase_file)) as ca:
            ca.register = ca.register.with_ingest(identity, sites or ca.register.ingests.get(identity, ()))
            sites = ca.register.ingests[identity]
            ca.save(_now_s())
    options = _cloud(identity, folder, out, passphrase_file, days, replaces, name is not None)
    gateways = shlex.quote(str(folder / folders.GATEWAYS))
    named = "".join(f" --site {shlex.quote(site)}" for site in sites)
    named = f" --name {name}{named}" if name is not None else ""
    click.echo(f"  whenabouts-cloud ingest {options} --gateways {gateways} --landing ./landing{named}")


@enrol.command("publisher")
@_dir
@_out
@_passphrase
@_days
@_replace
def publisher(folder: Path, out: Path, passphrase_file: Path | None, days: int, replaces: bool) -> None:
    """Give those who publish rules a certificate: it may read births, and give gateways their rules."""
    click.echo(f"  whenabouts-cloud publish rules.wa {_cloud(PUBLISHER, folder, out, passphrase_file, days, replaces)}")


@enrol.command("broker")
@_dir
@_out
@_passphrase
@_days
@click.option("--port", default=TLS_PORT, show_default=True, type=click.IntRange(1, 65535), help="Port to listen on.")
@click.option(
    "--host", "hosts", multiple=True,
    help="Name or address by which clients reach the broker; repeatable, the first goes into broker.toml. "
    "Without it localhost, this machine's name and 127.0.0.1.",
)  # fmt: skip
@click.option("--bind", metavar="ADDRESS", help="Listen on this address only.")
@click.option(
    "--user",
    help="User that mosquitto becomes when root starts it. Without it mosquitto if it can enter --out, else you.",
)
def broker(
    folder: Path, out: Path, passphrase_file: Path | None, days: int, port: int, hosts: tuple[str, ...],
    bind: str | None, user: str | None,
) -> None:  # fmt: skip
    """Write mosquitto's configuration, access rules and certificate.

    The folder is remembered, and other commands keep its access rules and its list of revoked certificates up to date.
    """
    names = hosts or tuple(dict.fromkeys(("localhost", socket.gethostname(), "127.0.0.1")))
    with _faults(), opened(folder, _phrase(passphrase_file)) as ca:
        issued, owner = ca.enrol_broker(out, names, port, _now_s(), days, bind, user)
    configuration = shlex.quote(str(out.resolve() / CONFIGURATION))
    click.echo(
        f"broker: certificate for {', '.join(names)} until {day(issued.ends_s)} in {out}; root starts it as user {owner}"
    )
    click.echo(f"  mosquitto -c {configuration}")
    _tell_brokers(ca, False)


@enrol.command("revoke")
@click.argument("site")
@click.argument("name")
@_dir
@_passphrase
def revoke(site: str, name: str, folder: Path, passphrase_file: Path | None) -> None:
    """Refuse a gateway from now on: all its certificates, and its right to publish. `enrol gateway` lets it in again."""
    with _faults(), opened(folder, _phrase(passphrase_file)) as ca:
        identity = identity_of(site, name)
        if identity not in ca.register.gateways:
            raise EnrolError(f"{shown(identity)}: found no such gateway, expected one that `enrol list` names")
        ca.register = ca.register.revoked(identity, _now_s())
        ca.save(_now_s())
    click.echo(f"{shown(identity)}: revoked")
    _tell_brokers(ca, True)


@enrol.command("list")
@_dir
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def list_(folder: Path, as_json: bool) -> None:
    """Show who has which certificate, until when, and who is revoked; warns of what ends within 30 days."""
    with _faults():
        register, authority_ends_s = folders.registered(folder)
    now_s = _now_s()
    warnings = register.warnings(now_s, authority_ends_s)
    if as_json:
        click.echo(
            json.dumps({"certificates": [_row(register, one) for one in register.certificates], "warnings": warnings})
        )
        return
    for one in sorted(register.certificates, key=lambda one: (one.identity, one.ends_s)):
        state = f"revoked {day(one.revoked_s)}" if one.revoked_s else "ended" if one.ends_s <= now_s else "valid"
        click.echo(f"{shown(one.identity):<30} until {day(one.ends_s)}  {state:<18} {one.serial:x}")
    for warning in warnings:
        click.echo(f"warning: {warning}", err=True)


def broker_table(host: str, port: int, identity: str, folder: Path) -> str:
    """The `[broker]` table of a gateway's edge.toml; folder: where its files are. TOML's strings are written as JSON's."""
    values = {
        "host": host, "port": port, "client_id": identity, "ca_file": str(folder / folders.CERTIFICATE),
        "cert_file": str(folder / folders.CLIENT_CERTIFICATE), "key_file": str(folder / folders.CLIENT_KEY),
    }  # fmt: skip
    return "[broker]\n" + "".join(f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in values.items())


def _cloud(
    identity: str, folder: Path, out: Path, passphrase_file: Path | None, days: int, replaces: bool,
    access_changed: bool = False,
) -> str:  # fmt: skip
    """Issue a certificate of the cloud; returns the options of commands that use it."""
    with _faults(), opened(folder, _phrase(passphrase_file)) as ca:
        host, port = _address(None, ca.register)
        issued = ca.enrol_client(identity, out, _now_s(), days, replaces)
    click.echo(f"{identity}: certificate until {day(issued.ends_s)} in {out}")
    _tell_brokers(ca, replaces or access_changed)
    ca_file, cert_file, key_file = (
        shlex.quote(str(out / name)) for name in (folders.CERTIFICATE, folders.CLIENT_CERTIFICATE, folders.CLIENT_KEY)
    )
    return f"--broker {host}:{port} --ca-file {ca_file} --cert-file {cert_file} --key-file {key_file}"


def _row(register: Register, one: Any) -> dict[str, Any]:
    known = register.gateways.get(one.identity)
    return {
        "identity": one.identity, "serial": f"{one.serial:x}", "valid_until": day(one.ends_s), "ends_s": one.ends_s,
        "revoked": one.revoked_s is not None, "revoked_s": one.revoked_s,
        "streams": known and known.streams, "groups": known and known.groups,
    }  # fmt: skip


def _address(text: str | None, register: Register) -> tuple[str, int]:
    """The broker that was asked for, or the newest that this authority serves."""
    if text is None:
        return (register.brokers[-1].host, register.brokers[-1].port) if register.brokers else ("localhost", TLS_PORT)
    host, colon, port = text.rpartition(":")
    if not colon:
        host, port = text, str(TLS_PORT)
    if not host or not (port.isascii() and port.isdecimal()) or not 0 < int(port) < 65536:
        raise EnrolError(f"--broker: found {text!a}, expected HOST:PORT such as broker.example:8883")
    return host.strip("[]"), int(port)


def _require_pattern(pattern: str) -> None:
    """Refuse what can match no stream: + and # are whole levels, # is the last one."""
    if (
        not re.fullmatch(r"([^+#]*/)?(\+/([^+#]*/)?)*([^+#]*|\+|#)", pattern)
        or not pattern
        or not pattern.isprintable()
    ):
        raise EnrolError(
            f"--stream: found {pattern!a}, expected a stream such as dock/tags, or a pattern such as dock/+ or dock/#"
        )


def _tell_brokers(ca: AuthorityFolder, access_changed: bool) -> None:
    """Say what is left to do until brokers know."""
    for problem in ca.unreachable:
        click.echo(f"not written: {problem}; run `enrol broker` for it again, or copy its files", err=True)
    if access_changed and ca.register.brokers:
        click.echo(RESTART)


def _phrase(path: Path | None) -> bytes | None:
    if path is None:
        return None
    lines = path.read_bytes().splitlines()
    if not lines or not lines[0]:
        raise EnrolError(f"--passphrase-file {path}: found no text on its first line, expected the passphrase")
    return lines[0]


def _now_s() -> int:
    return int(time.time())


@contextlib.contextmanager
def _faults() -> Iterator[None]:
    """Errors as text, without a traceback."""
    try:
        yield
    except (EnrolError, OSError) as error:
        raise click.ClickException(str(error)) from None
