"""`whenabouts-cloud ingest`: land readings from the broker."""

import json
import time
from dataclasses import asdict
from pathlib import Path

import click

from whenabouts_cloud.broker.connection import BrokerError
from whenabouts_cloud.broker.credential_warnings import certificate_ends_s
from whenabouts_cloud.commands.broker_options import broker_options, credentials
from whenabouts_cloud.commands.options import log_format_option, metrics_file_option, place, seconds
from whenabouts_cloud.health.recorder import Recorder
from whenabouts_cloud.health.writer import HealthWriter
from whenabouts_cloud.ingest.bridge import Bridge
from whenabouts_cloud.ingest.holding import LandingError
from whenabouts_cloud.ingest.landing_writer import Landing
from whenabouts_cloud.ingest.metrics import metrics
from whenabouts_cloud.ingest.owners import Owners, OwnersError, OwnersFile
from whenabouts_cloud.ingest.receiving.receiver import Receiver
from whenabouts_cloud.ingest.service import IngestService
from whenabouts_cloud.landing.layout import INGEST_NAME, PART
from whenabouts_cloud.landing.store import Store
from whenabouts_cloud.metrics_file import MetricsFile
from whenabouts_cloud.orderly_end import orderly_end
from whenabouts_protocol.logs import Log, write_logs
from whenabouts_protocol.topics import is_name

log = Log(__name__)

REPORT_S = 2.0
END_S = 15.0  # far longer than a flush and a disconnect take


def _name(_context: click.Context, _option: click.Parameter, value: str | None) -> str | None:
    if value is not None and not INGEST_NAME.fullmatch(value):
        raise click.BadParameter(f"found {value!r}, expected 1 to 63 letters, digits, and after the first . _ -")
    return value


def _lease(_context: click.Context, _option: click.Parameter, value: float) -> float:
    if value < 1.0:
        raise click.BadParameter("expected at least 1s: it is renewed three times in this time")
    return value


def _sites(_context: click.Context, _option: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    sites = tuple(dict.fromkeys(site.strip() for value in values for site in value.split(",")))
    for site in sites:
        if site.startswith("$share"):
            raise click.BadParameter(
                f"found {site!r}, a shared subscription: the broker would scatter the numbers of one gateway over several "
                "ingests, and none could tell which are missing, or confirm any. Divide the gateways by site instead: "
                "--name a --site warehouse for one ingest, --name b --site shop for the other"
            )
        if not is_name(site):
            raise click.BadParameter(f"found {site!r}, expected the name of a site: no / + #, first no $ or .")
    return sites


@click.command()
@broker_options
@click.option(
    "--landing", required=True, type=place(must_exist=False), envvar="WHENABOUTS_LANDING", show_envvar=True,
    help="Folder of the Parquet files, made when absent; or URI in an object store, such as s3://bucket/landing.",
)  # fmt: skip
@click.option(
    "--lease", "lease_s", default="30s", show_default=True, type=seconds(("s", "m")), callback=_lease,
    help="In an object store: another ingest takes over from this one when it has not heard of it for so long.",
)  # fmt: skip
@click.option("--client-id", help="Name of the session at the broker; kept in the landing by default.")
@click.option(
    "--name", callback=_name, help="Of this ingest, if several share a landing: it writes to LANDING/ingest=NAME."
)
@click.option(
    "--site",
    "sites",
    multiple=True,
    callback=_sites,
    help="Land only the gateways of this site; may be repeated, or several with commas. Each site needs one ingest.",
)
@click.option("--json", "as_json", is_flag=True, help="Progress as JSON lines on stdout.")
@click.option(
    "--gateways",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="File that says which gateway may publish which streams; read again when it changes. Others are refused.",
)
@click.option(
    "--ahead-margin-s",
    type=click.IntRange(min=0),
    default=600,
    show_default=True,
    help="Readings that begin later than now and this go to LANDING/_ahead.",
)
@metrics_file_option("every 2 s")
@log_format_option
def ingest(
    broker: tuple[str, int],
    landing: Store,
    lease_s: float,
    client_id: str | None,
    name: str | None,
    sites: tuple[str, ...],
    username: str | None,
    password_file: Path | None,
    ca_file: str | None,
    cert_file: str | None,
    key_file: str | None,
    as_json: bool,
    gateways: Path | None,
    ahead_margin_s: int,
    metrics_file: Path | None,
    log_format: str,
) -> None:
    """Land the readings of all gateways as Parquet files, durable before they are acknowledged.

    Repeats are dropped by (gateway, boot, seq); messages that cannot be decoded go to LANDING/_dead with the reason. Ends on
    SIGTERM or Ctrl-C after a last flush; the broker keeps the session meanwhile. If that takes more than 15 s, as on a
    hanging disk, it exits with code 70 and reports what it waited for; nothing acknowledged is lost.

    In an object store the ingest holds a lease. One that was killed is followed by another when the lease has ended; one
    that was paused for longer, and lost it, ends with exit code 1 and lands nothing more.

    Several ingests can share a landing: each has a --name, and the sites that it lands. A gateway's readings must all go to
    one of them at a time; it may move to another, as when one ingest takes over the sites of one that has failed.

    \b
    Example:  whenabouts-cloud ingest --broker localhost:1883 --landing ./landing
              whenabouts-cloud ingest --broker localhost:1883 --landing ./landing --name a --site warehouse
    """
    write_logs(log_format)
    asking = credentials(username, password_file, ca_file, cert_file, key_file)
    try:
        watched = None if gateways is None else OwnersFile(gateways)
        owners = Owners() if watched is None else watched.owners
        store = Landing(landing.at_folder(f"{PART}{name}" if name else ""), lease_s)
    except (LandingError, OwnersError) as error:
        raise click.ClickException(str(error)) from None
    health = Recorder(name or "")
    try:
        bridge = Bridge(store, owners=owners, ahead_margin_us=ahead_margin_s * 1_000_000, sites=sites, health=health)
    except (LandingError, OSError) as error:
        store.close()
        raise click.ClickException(str(error)) from None
    session = client_id or f"wa-ingest-{store.session}"
    service = IngestService(Receiver(*broker, session, asking, log_format, sites), bridge, f"{broker[0]}:{broker[1]}")
    ends_s = None if cert_file is None else certificate_ends_s(Path(cert_file))
    report = _Reporter(
        bridge, service, health, as_json, None if metrics_file is None else MetricsFile(metrics_file), ends_s
    )

    def tick() -> None:
        if watched is not None:
            watched.look()
        report.tick()

    health_writer = HealthWriter(store.store, health)
    with orderly_end(service.stop, END_S):
        try:
            health_writer.start()
            service.connect()
            log.info("ingest.started", landing=landing.uri)
            service.run(tick, REPORT_S)
        except (BrokerError, LandingError) as error:
            raise click.ClickException(str(error)) from None
        finally:
            service.close()
            store.close()
            report.record_health(last=True)
            health_writer.close()
        report.last()


QUIET = (
    "messages",
    "files",
    "frontiers",
    "health_records",
    "health_thinned",
)  # change with every message, or mean nothing to a person
SHOWN = {
    "repeats": "repeats", "conflicts": "conflicts", "refused": "refused at gateways", "invalid": "invalid at gateways",
    "ahead": "from the future", "other_sites": "messages of other sites", "over_budget": "messages over budget",
    "forgotten": "numbers confirmed elsewhere", "clocks_ahead": "gateways with a clock ahead",
    "qos0_dropped": "messages of QoS 0 dropped", "dead_dropped": "dead letters not kept",
    "health_dropped": "health records not kept", "health_failed": "health records not written yet",
}  # fmt: skip


class _Reporter:
    """Reports the counts when they have changed."""

    def __init__(
        self, bridge: Bridge, service: IngestService, health: Recorder, as_json: bool, metrics_file: MetricsFile | None,
        certificate_ends_s: float | None,
    ) -> None:  # fmt: skip
        self._bridge, self._service, self._health, self._as_json = bridge, service, health, as_json
        self._metrics_file = metrics_file
        self._certificate_ends_s = certificate_ends_s  # of the one in use: it was read at the start
        self._reported: dict[str, int] = {}
        self._reported_s = time.monotonic()

    def tick(self) -> None:
        counts = self._counts()
        if any(counts[name] != self._reported.get(name, 0) for name in counts if name not in QUIET):
            self._report("ingest.progress", counts)
        self._write_metrics()
        self.record_health()

    def last(self) -> None:
        self._report("ingest.stopped", self._counts())
        self._write_metrics()

    def record_health(self, last: bool = False) -> None:
        service = self._service
        self._health.ingest(
            self._counts(), self._bridge.dead_letters(), service.connected, time.time_ns() // 1000, last
        )

    def _counts(self) -> dict[str, int]:
        counts = asdict(self._bridge.counters) | {"qos0_dropped": self._service.dropped}
        return counts | asdict(self._health.counters)

    def _report(self, event: str, counts: dict[str, int]) -> None:
        now_s = time.monotonic()
        rate = (counts["landed"] - self._reported.get("landed", 0)) / max(now_s - self._reported_s, 1e-3)
        self._reported, self._reported_s = counts, now_s
        reasons = self._bridge.dead_letters()
        if self._as_json:
            click.echo(json.dumps({**counts, "dead_letters": reasons}))
            return
        text = f"landed {counts['landed']} readings in {counts['files']} files ({rate:.0f}/s)"
        text += "".join(f", {counts[name]} {shown}" for name, shown in SHOWN.items() if counts[name])
        if counts["dead"]:
            text += f", {counts['dead']} dead letters ({', '.join(f'{n} {reason}' for reason, n in reasons.items())})"
        log.info(event, text, landed=counts["landed"], files=counts["files"])

    def _write_metrics(self) -> None:
        if self._metrics_file is not None:
            bridge, service = self._bridge, self._service
            self._metrics_file.write(metrics(
                bridge.counters, bridge.by_gateway, bridge.dead_letters(), bridge.frontiers(), time.time_ns() // 1000,
                service.dropped, service.connected, self._certificate_ends_s, self._health.counters,
            ))  # fmt: skip
