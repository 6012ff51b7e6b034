"""Options of every command that connects to the broker: its address and the credentials."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from whenabouts_cloud.broker.connection import Credentials
from whenabouts_cloud.broker.credential_warnings import unwise
from whenabouts_protocol.logs import Log

log = Log(__name__)


def broker_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds --broker (as host and port) and the options that `credentials` takes."""
    return _with_options(command, required=True)


def optional_broker_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the same options; without --broker it is None."""
    return _with_options(command, required=False)


def _with_options(command: Callable[..., Any], required: bool) -> Callable[..., Any]:
    file = click.Path(exists=True, dir_okay=False)
    for option in (
        click.option("--key-file", type=file, help="Key of that certificate."),
        click.option("--cert-file", type=file, help="Certificate for mutual TLS."),
        click.option("--ca-file", type=file, help="Certificates to trust; turns TLS on."),
        click.option(
            "--password-file",
            type=click.Path(path_type=Path, exists=True, dir_okay=False),
            help="File with its password.",
        ),
        click.option("--username", envvar="WHENABOUTS_BROKER_USER", show_envvar=True, help="User at the broker."),
        click.option(
            "--broker",
            required=required,
            callback=_host_port,
            envvar="WHENABOUTS_BROKER",
            show_envvar=True,
            help="HOST:PORT",
        ),
    ):
        command = option(command)
    return command


def credentials(
    username: str | None, password_file: Path | None, ca_file: str | None, cert_file: str | None, key_file: str | None
) -> Credentials:
    """Make the credentials from these options, and log what is unwise; refuses a password file without a line of text."""
    password = _password(password_file) if password_file else None
    made = Credentials(username, password, ca_file, cert_file, key_file)
    for text in unwise(made, password_file, time.time()):
        log.warning("broker.unwise", text)
    return made


def _host_port(_context: click.Context, _option: click.Parameter, value: str | None) -> tuple[str, int] | None:
    if value is None:
        return None
    host, _, port = value.rpartition(":")
    if ":" not in value:
        host, port = value, "1883"
    if not host or not (port.isascii() and port.isdecimal()) or not 0 < int(port) < 65536:
        raise click.BadParameter(f"found {value!r}, expected HOST:PORT such as localhost:1883")
    return host.strip("[]"), int(port)


def _password(path: Path) -> str:
    try:
        return path.read_text().splitlines()[0]
    except (OSError, UnicodeDecodeError, IndexError) as error:
        raise click.ClickException(f"password file {path}: found {error}, expected the password on a line") from None
