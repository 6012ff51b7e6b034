"""`whenabouts-cloud dashboard`: see readings, results and gateways in a browser."""

from pathlib import Path

import click

from whenabouts_cloud.commands.options import log_format_option, place
from whenabouts_cloud.dashboard.board import Board
from whenabouts_cloud.dashboard.server.app import About, site_of
from whenabouts_cloud.dashboard.server.serving import listening, serving
from whenabouts_cloud.landing.store import Store
from whenabouts_cloud.orderly_end import orderly_end
from whenabouts_protocol.logs import write_logs

END_S = 10.0

EXAMPLE = """\b
Example:
  whenabouts-cloud dashboard --landing landing --results results --rule rules.wa
"""


@click.command("dashboard", epilog=EXAMPLE)
@click.option("--landing", required=True, type=place(), help="Folder or URI the ingest lands readings in.")
@click.option("--results", multiple=True, type=place(must_exist=False), help="Folder or URI of results.")
@click.option(
    "--rule", "rule_file", type=click.Path(path_type=Path, dir_okay=False), help="File with streams and rules."
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen at.")
@click.option("--port", default=8080, show_default=True, type=click.IntRange(0, 65535), help="0 takes a free one.")
@log_format_option
def dashboard(
    landing: Store, results: tuple[Store, ...], rule_file: Path | None, host: str, port: int, log_format: str
) -> None:
    """Serve a page that shows readings with their uncertainty, results, rules, gateways and ingests; live or long ago."""
    write_logs(log_format)
    board = Board({})
    site = site_of(board, About(landing.uri, tuple(store.uri for store in results), rule_file))
    try:
        opened = listening(host, port)
    except OSError as error:
        raise click.ClickException(f"--port {port}: cannot listen at {host}:{port} ({error.strerror})") from None
    server = serving(site)
    click.echo(f"Dashboard: http://{host}:{opened.getsockname()[1]}/  (Ctrl-C ends it)")
    with orderly_end(server.stop, END_S), board:
        server.run([opened])
