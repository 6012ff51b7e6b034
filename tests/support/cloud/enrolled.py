"""A mosquitto that runs with the files of `enrol broker`, and clients that have certificates for it."""

import contextlib
import ssl
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import paho.mqtt.client as mqtt
from click.testing import CliRunner
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion

from support.waiting import until
from whenabouts_cloud.cli import main
from whenabouts_sim.stack.broker import find_mosquitto, free_port

HOST = "localhost"
WAIT_S = 10.0
MQTT_5, MQTT_3 = MQTTProtocolVersion.MQTTv5, MQTTProtocolVersion.MQTTv311


def enrol(*arguments: object) -> str:
    """Run `whenabouts-cloud enrol`; returns its output."""
    result = CliRunner().invoke(main, ["enrol", *map(str, arguments)])
    assert result.exit_code == 0, result.output
    return result.output


class Client:
    """A connection as whoever the files of `folder` belong to. `heard`: (topic, payload) in the order of arrival."""

    def __init__(
        self, port: int, folder: Path | None, version: MQTTProtocolVersion = MQTT_5, client_id: str = "",
        ca: Path | None = None, will: tuple[str, bytes] | None = None, tls: ssl._SSLMethod | None = None,
        **session: object,
    ) -> None:  # fmt: skip
        self.heard: list[tuple[str, bytes]] = []
        self.connections, self.refused = 0, ""
        self._reasons: dict[int, str] = {}
        self._subscribed = threading.Event()
        self._left = threading.Event()
        clean = {} if version == MQTT_5 else {"clean_session": True}
        client = self.client = mqtt.Client(
            CallbackAPIVersion.VERSION2, client_id, protocol=version, reconnect_on_failure=False, **clean
        )
        if will is not None:
            client.will_set(*will, qos=1, retain=True)
        ca = ca or (folder / "ca.crt" if folder else None)
        if ca is not None:
            files = (str(folder / "client.crt"), str(folder / "client.key")) if folder else ()
            client.tls_set(str(ca), *files, **({"tls_version": tls} if tls is not None else {}))
        client.on_connect, client.on_disconnect = self._connected, self._disconnected
        client.on_publish = lambda _c, _u, mid, reason, _p: self._reasons.__setitem__(mid, str(reason))
        client.on_subscribe = lambda *_: self._subscribed.set()
        client.on_message = lambda _c, _u, message: self.heard.append((message.topic, message.payload))
        try:
            client.connect(HOST, port, **session)
        except OSError as error:
            self.refused = str(error)
            return
        client.loop_start()
        until(lambda: self.connections or self.refused, "an answer of the broker", WAIT_S)

    def publish(self, topic: str, payload: bytes = b"x", retain: bool = False) -> str:
        """Publish at QoS 1; returns the reason code of the acknowledgement, or why the connection ended."""
        info = self.client.publish(topic, payload, qos=1, retain=retain)
        until(lambda: info.mid in self._reasons or self.refused, f"an answer to {topic}", WAIT_S)
        reason = self._reasons.get(info.mid, self.refused)
        return "Success" if reason == "No matching subscribers" else reason

    def subscribe(self, *topics: str) -> None:
        """Returns when the broker has answered."""
        self._subscribed.clear()
        self.client.subscribe([(topic, 1) for topic in topics])
        assert self._subscribed.wait(WAIT_S)

    def close(self, abruptly: bool = False) -> None:
        """Leave, or break the connection so that the broker publishes the last will."""
        sock = self.client.socket()
        if abruptly and sock is not None:
            sock.close()
        self.client.disconnect()
        self.client.loop_stop()

    def _connected(self, _c: object, _u: object, _f: object, reason: object, _p: object) -> None:
        if reason.is_failure:  # type: ignore[attr-defined]
            self.refused = str(reason)
        else:
            self.connections += 1

    def _disconnected(self, _c: object, _u: object, _f: object, reason: object, _p: object) -> None:
        self.refused = self.refused or str(reason) or "disconnected"


@dataclass
class EnrolledBroker:
    """A folder with authority `ca`, the broker's files `broker`, and one folder for each identity."""

    folder: Path
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None
    options: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.ca, self.files = self.folder / "ca", self.folder / "broker"
        enrol("init", "--dir", self.ca)
        enrol("broker", "--dir", self.ca, "--out", self.files, "--port", self.port, *self.options)

    def gateway(self, site: str, name: str, *options: object) -> Path:
        """Enrol a gateway; returns its files' folder."""
        out = self.folder / f"{site}.{name}"
        enrol("gateway", site, name, "--dir", self.ca, "--out", out, *options)
        return out

    def cloud(self, who: str) -> Path:
        """Enrol `ingest` or `publisher`; returns its files' folder."""
        out = self.folder / who
        enrol(who, "--dir", self.ca, "--out", out)
        return out

    @contextlib.contextmanager
    def client(self, *arguments: object, **options: object) -> Iterator[Client]:
        """A client that leaves at the end of the block."""
        made = Client(self.port, *arguments, **options)  # type: ignore[arg-type]
        try:
            yield made
        finally:
            made.close()

    def start(self, user: str | None = None) -> None:
        """Start mosquitto with the written file, from another folder and maybe as another user; wait until it lets in."""
        program = find_mosquitto()
        assert program is not None
        watch = self.folder / "watch"
        if not watch.exists():
            enrol("publisher", "--dir", self.ca, "--out", watch)
        log = self.folder / "log"
        with log.open("ab") as file:
            process = self.process = subprocess.Popen(
                [program, "-c", self.files / "mosquitto.conf"], stdout=file, stderr=file, cwd="/", user=user
            )

        def answers() -> bool:
            assert process.poll() is None, log.read_text()
            with self.client(watch) as client:
                return client.connections == 1

        until(answers, lambda: f"mosquitto; its log: {log.read_text()}", WAIT_S)

    def stop(self) -> None:
        """End mosquitto, which writes its sessions."""
        if self.process is not None:
            self.process.terminate()
            self.process.wait(WAIT_S)


@contextlib.contextmanager
def enrolled_broker(folder: Path) -> Iterator[EnrolledBroker]:
    """A broker that runs until the end of the block."""
    broker = EnrolledBroker(folder)
    broker.start()
    try:
        yield broker
    finally:
        broker.stop()
