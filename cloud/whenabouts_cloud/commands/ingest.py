"""`whenabouts-cloud ingest`: from the broker to the landing."""

import json
import logging
import sys
import time
from dataclasses import asdict
from pathlib import Path

import click

from whenabouts_cloud.broker.connection import BrokerError
from whenabouts_cloud.commands.broker_options import broker_options, credentials
from whenabouts_cloud.ingest.bridge import Bridge
from whenabouts_cloud.ingest.landing_writer import Landing, LandingError
from whenabouts_cloud.ingest.service import IngestService
from whenabouts_cloud.orderly_end import orderly_end

REPORT_S = 2.0
END_S = 15.0  # far above what a flush and a farewell take


@click.command()
@broker_options
@click.option("--landing", required=True, type=click.Path(path_type=Path, file_okay=False), envvar="WHENABOUTS_LANDING",
              show_envvar=True, help="Folder of the Parquet files; made when absent.")  # fmt: skip
@click.option("--client-id", help="Name of the session at the broker; kept in the landing by default.")
@click.option("--json", "as_json", is_flag=True, help="Progress as JSON lines on stdout.")
def ingest(
    broker: tuple[str, int],
    landing: Path,
    client_id: str | None,
    username: str | None,
    password_file: Path | None,
    ca_file: str | None,
    cert_file: str | None,
    key_file: str | None,
    as_json: bool,
) -> None:
    """Land the readings of all gateways as Parquet files, durable before they are acknowledged.

    Repeats are dropped by (gateway, boot, seq); what cannot be decoded goes to LANDING/_dead with its reason. Ends on
    SIGTERM or Ctrl-C after a last flush; the broker keeps the session meanwhile. An end that takes more than 15 s, as on a
    disk that stands still, is cut short with exit code 70 and what it waited for; nothing acknowledged is lost by that.

    \b
    Example:  whenabouts-cloud ingest --broker localhost:1883 --landing ./landing
    """
    logging.basicConfig(level="INFO", stream=sys.stderr, format="%(asctime)s %(levelname)s %(message)s")
    asking = credentials(username, password_file, ca_file, cert_file, key_file)
    try:
        store = Landing(landing)
        bridge = Bridge(store)
    except LandingError as error:
        raise click.ClickException(str(error)) from None
    name = client_id or f"wa-ingest-{store.session}"
    service = IngestService(*broker, bridge, name, asking)
    report = _Reporter(bridge, service, as_json)
    with orderly_end(service.stop, END_S):
        try:
            service.connect()
            service.run(report.tick, REPORT_S)
        except BrokerError as error:
            raise click.ClickException(str(error)) from None
        finally:
            service.close()
            store.close()
        report.last()


class _Reporter:
    """Says what has landed, when something has changed."""

    def __init__(self, bridge: Bridge, service: IngestService, as_json: bool) -> None:
        self._bridge, self._service, self._as_json = bridge, service, as_json
        self._told: dict[str, int] = {}
        self._told_s = time.monotonic()

    def tick(self) -> None:
        counters = asdict(self._bridge.counters)
        if any(counters[what] != self._told.get(what, 0) for what in ("landed", "dead", "repeats", "refused", "unfit")):
            self._tell(counters)

    def last(self) -> None:
        self._tell(asdict(self._bridge.counters))

    def _tell(self, counters: dict[str, int]) -> None:
        now_s = time.monotonic()
        rate = (counters["landed"] - self._told.get("landed", 0)) / max(now_s - self._told_s, 1e-3)
        self._told, self._told_s = counters, now_s
        if self._as_json:
            qos0_dropped = self._service.dropped
            click.echo(
                json.dumps({**counters, "qos0_dropped": qos0_dropped, "dead_letters": self._bridge.dead_letters()})
            )
            return
        text = f"landed {counters['landed']} readings in {counters['files']} files ({rate:.0f}/s)"
        for what in ("repeats", "conflicts"):
            text += f", {counters[what]} {what}" if counters[what] else ""
        for what in ("refused", "unfit"):
            text += f", {counters[what]} {what} at gateways" if counters[what] else ""
        if counters["dead"]:
            reasons = ", ".join(f"{count} {reason}" for reason, count in self._bridge.dead_letters().items())
            text += f", {counters['dead']} dead letters ({reasons})"
        click.echo(text, err=True)
