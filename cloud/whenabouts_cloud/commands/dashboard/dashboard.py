"""`whenabouts-cloud dashboard`: see readings, results and gateways in a browser."""

import ipaddress
import json
import ssl
from dataclasses import asdict
from pathlib import Path

import click

from whenabouts_cloud.commands.broker_options import credentials, optional_broker_options
from whenabouts_cloud.commands.options import log_format_option, place
from whenabouts_cloud.dashboard.board import Board, streams_of
from whenabouts_cloud.dashboard.data.landed import LandedIndex
from whenabouts_cloud.dashboard.questions.rule_book import RuleBook
from whenabouts_cloud.dashboard.results.health_state import HealthState
from whenabouts_cloud.dashboard.results.result_index import ResultIndex
from whenabouts_cloud.dashboard.server.about import About
from whenabouts_cloud.dashboard.server.access import LOGIN_BYTES, Logins
from whenabouts_cloud.dashboard.server.app import Guard, site_of
from whenabouts_cloud.dashboard.server.serving import listening, serving
from whenabouts_cloud.landing.store import Store
from whenabouts_cloud.orderly_end import orderly_end
from whenabouts_protocol.logs import write_logs

END_S = 10.0  # far longer than open answers are given
LEAST_TOKEN, LEAST_PASSWORD = 16, 8  # letters
MOST_USERS = 100
FILE = click.Path(path_type=Path, exists=True, dir_okay=False)

EXAMPLE = """\b
Example:
  whenabouts-cloud dashboard --landing landing --results results --rule rules.wa
"""


@click.command("dashboard", epilog=EXAMPLE)
@click.option(
    "--landing", required=True, type=place(must_exist=False), envvar="WHENABOUTS_LANDING", show_envvar=True,
    help="Folder or URI the ingest lands readings in, such as s3://bucket/landing.",
)  # fmt: skip
@click.option(
    "--results", multiple=True, type=place(must_exist=False),
    help="Folder or URI of results, as given to a job as --out; may be repeated.",
)  # fmt: skip
@click.option("--rule", "rule_file", type=FILE, help="File with streams and rules; read again when it changes.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen at.")
@click.option(
    "--port", default=8080, show_default=True, type=click.IntRange(0, 65535), help="Port to listen at; 0: a free one."
)
@click.option("--serve-cert", type=FILE, help="Certificate of this server; turns TLS on.")
@click.option("--serve-key", type=FILE, help="Key of that certificate.")
@click.option("--token-file", type=FILE, help="File with a token that each visitor needs.")
@click.option("--login-file", type=FILE, help="File of visitors, a USER:PASSWORD a line.")
@optional_broker_options
@click.option("--allow-publish", is_flag=True, help="Let visitors publish rules to the broker's gateways.")
@click.option("--json", "as_json", is_flag=True, help="Print the address as a JSON object.")
@log_format_option
def dashboard(
    landing: Store,
    results: tuple[Store, ...],
    rule_file: Path | None,
    host: str,
    port: int,
    serve_cert: Path | None,
    serve_key: Path | None,
    token_file: Path | None,
    login_file: Path | None,
    broker: tuple[str, int] | None,
    username: str | None,
    password_file: Path | None,
    ca_file: str | None,
    cert_file: str | None,
    key_file: str | None,
    allow_publish: bool,
    as_json: bool,
    log_format: str,
) -> None:
    """Show readings with their uncertainty, results, rules, gateways and ingests on a page; live or long ago.

    Folders are enough: neither a broker nor a running job is needed, and nothing is written. The page is served on loopback;
    at any other --host only with TLS (--serve-cert, --serve-key) and a login (--token-file or --login-file). With a token a
    browser enters by /?token=TOKEN, a program by the header `Authorization: Bearer TOKEN`.
    """
    write_logs(log_format)
    if not landing.exists():
        raise click.BadParameter(
            f"found nothing at {landing.uri}, expected the folder that an ingest lands readings in; correct the path, "
            f"or start `whenabouts-cloud ingest --broker HOST:PORT --landing {landing.uri}` first",
            param_hint="--landing",
        )
    if allow_publish and broker is None:
        raise click.UsageError("--allow-publish: found no --broker, expected the one that the gateways use")
    _check_tls(serve_cert, serve_key)
    logins = _logins(token_file, login_file)
    try:
        opened = listening(host, port)
    except OSError as error:
        raise click.ClickException(
            f"--port {port}: cannot listen at {host} ({error.strerror}); choose another --port, or 0 for a free one"
        ) from None
    with opened:
        address, bound = opened.getsockname()[:2]
        alone = ipaddress.ip_address(address).is_loopback
        if not alone and (serve_cert is None or logins is None):
            raise click.UsageError(
                f"--host {host}: found an address that others can reach, expected TLS and a login: --serve-cert and "
                "--serve-key, and --token-file or --login-file; or leave it out and use a tunnel, such as ssh -L"
            )
        publishing = {}
        if broker is not None:
            asking = credentials(username, password_file, ca_file, cert_file, key_file)
            publishing = {"broker": broker, "credentials": asdict(asking)}
        hosts = frozenset(("localhost", "127.0.0.1", "::1", host.lower())) if alone else None
        about = About(
            landing.uri, tuple(store.uri for store in results), rule_file,
            None if broker is None else f"{broker[0]}:{broker[1]}", allow_publish, publishing,
        )  # fmt: skip
        board = board_of(landing, results, rule_file)
        site = site_of(board, about, Guard(hosts, logins, serve_cert is not None))
        server = serving(site, *(None if file is None else str(file) for file in (serve_cert, serve_key)))
        shown = f"[{host}]" if ":" in host else host
        url = f"http{'' if serve_cert is None else 's'}://{shown}:{bound}/"
        click.echo(json.dumps({"address": url}) if as_json else f"Dashboard: {url}  (Ctrl-C ends it)")
        with orderly_end(server.stop, END_S), board:
            server.run([opened])


def board_of(landing: Store, results: tuple[Store, ...], rule_file: Path | None) -> Board:
    """The indices of a landing and of results, and the rules of a file."""
    landed = LandedIndex(landing)
    return Board(landed, ResultIndex(results), HealthState(landing), RuleBook(rule_file, lambda: streams_of(landed)))


def _check_tls(cert_file: Path | None, key_file: Path | None) -> None:
    if (cert_file is None) != (key_file is None):
        raise click.UsageError("found one of --serve-cert and --serve-key, expected both or none")
    if cert_file is None or key_file is None:
        return
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(cert_file, key_file, password=lambda: b"")
    except (OSError, ValueError) as error:
        raise click.UsageError(
            f"--serve-cert {cert_file}: found {error}, expected a certificate in PEM and its key without a password"
        ) from None


def _logins(token_file: Path | None, login_file: Path | None) -> Logins | None:
    if token_file is not None and login_file is not None:
        raise click.UsageError("found --token-file and --login-file, expected one of them")
    if token_file is not None:
        [token] = _lines("--token-file", token_file, 1)
        if not LEAST_TOKEN <= len(token) <= LOGIN_BYTES:
            raise click.UsageError(
                f"--token-file {token_file}: found {len(token)} letters, expected {LEAST_TOKEN} to {LOGIN_BYTES}, "
                "such as those of `openssl rand -hex 16`"
            )
        return Logins(token)
    if login_file is None:
        return None
    users = _lines("--login-file", login_file, MOST_USERS)
    for number, user in enumerate(users, 1):
        name, _, password = user.partition(b":")
        if not name or len(password) < LEAST_PASSWORD or len(user) > LOGIN_BYTES:
            raise click.UsageError(
                f"--login-file {login_file}, line {number}: expected USER:PASSWORD with {LEAST_PASSWORD} letters or more"
            )
    return Logins(None, users)


def _lines(option: str, file: Path, most: int) -> list[bytes]:
    try:
        lines = [line for line in file.read_bytes().splitlines() if line.strip()]
    except OSError as error:
        raise click.UsageError(f"{option} {file}: cannot read ({error.strerror})") from None
    if not 1 <= len(lines) <= most:
        raise click.UsageError(
            f"{option} {file}: found {len(lines)} lines, expected {'one' if most == 1 else '1 to 100'}"
        )
    return lines
