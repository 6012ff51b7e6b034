"""Waits at the broker for the first heartbeat of a flashed board: the proof that files, configuration and network work.

A valid birth has a boot that was not there before and the build that was flashed; then a heartbeat of that boot must
follow. Meanwhile the output of the board is read, to report the reason if its main program fails.
"""

import contextlib
import queue
import ssl
import threading
import time
from dataclasses import dataclass
from typing import Any

import paho.mqtt.client as mqtt
import serial
from paho.mqtt.enums import CallbackAPIVersion

from whenabouts_edge.flash import FlashError
from whenabouts_edge.flash.identity import show
from whenabouts_edge.mqtt_client import stop_loop
from whenabouts_protocol import Birth, Heartbeat, decode_birth, decode_heartbeat
from whenabouts_protocol.errors import WireError
from whenabouts_protocol.topics import topic

CONNECT_S = 10.0
HEARD_BYTES = 4096  # last bytes of the board's output that are kept


@dataclass(frozen=True, slots=True)
class FirstHeartbeat:
    """The first heartbeat, and the time from the restart to it."""

    heartbeat: Heartbeat
    after_s: float


class FirstHeartbeatWatch:
    """Connected to the broker of a board's configuration while it is open.

    ca: trusted certificates, PEM, if the board uses TLS; identity: the board's certificates and key in PEM, b"" for
    none.

    Raises:
        FlashError: the broker cannot be reached from here.
    """

    def __init__(self, config: dict[str, Any], ca: bytes | None = None, identity: bytes = b"") -> None:
        broker = config["broker"]
        self._site, self._gateway, self._build = config["site"], config["gateway"], config["build"]
        self._place = f"broker {broker['host']}:{broker['port']}"
        self._heard: queue.Queue[tuple[str, bytes]] = queue.Queue()
        self._ready = threading.Event()
        self._refusal = ""
        self._client = mqtt.Client(CallbackAPIVersion.VERSION2)
        self._client.on_connect = self._connected
        self._client.on_subscribe = lambda *_: self._ready.set()
        self._client.on_message = lambda _client, _data, message: self._heard.put(
            (message.topic, bytes(message.payload))
        )
        try:
            if ca is not None:
                context = ssl.create_default_context(cadata=ca.decode(errors="replace"))
                if identity:
                    show(context, identity)
                self._client.tls_set_context(context)
            if "username" in broker:
                self._client.username_pw_set(broker["username"], broker.get("password"))
            self._client.connect(broker["host"], broker["port"], keepalive=30)
        except OSError as error:
            raise FlashError(self._unreachable(str(error))) from None
        self._client.loop_start()
        if not self._ready.wait(CONNECT_S) or self._refusal:
            self.close()
            raise FlashError(self._unreachable(self._refusal or "no answer"))

    def __enter__(self) -> "FirstHeartbeatWatch":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the connection."""
        self._client.disconnect()
        stop_loop(self._client)

    def before(self) -> "set[int]":
        """Boots that the broker knows so far: call it before the restart."""
        return {birth.boot for birth in self._births()}

    def wait(self, port: str, before: "set[int]", limit_s: float) -> FirstHeartbeat:
        """The first heartbeat of a boot that is not in `before`.

        Raises:
            FlashError: none came in limit_s, or the board's main program ended.
        """
        began = time.monotonic()
        boots: set[int] = set()
        with _Printed(port) as printed:
            while (left := began + limit_s - time.monotonic()) > 0:
                if printed.ended:
                    raise FlashError(
                        f"{port}: found the board's program ended, expected it to run; its output: {printed.last()}"
                    )
                with contextlib.suppress(queue.Empty):
                    message = _decoded(*self._heard.get(timeout=min(left, 0.2)))
                    if isinstance(message, Birth) and message.build == self._build and message.boot not in before:
                        boots.add(message.boot)
                    elif isinstance(message, Heartbeat) and message.boot in boots:
                        return FirstHeartbeat(message, time.monotonic() - began)
            raise FlashError(self._late(port, limit_s, bool(boots), printed.last()))

    def _births(self) -> "list[Birth]":
        births = []
        with contextlib.suppress(queue.Empty):
            while True:
                message = _decoded(*self._heard.get(timeout=0.2))
                if isinstance(message, Birth):
                    births.append(message)
        return births

    def _connected(self, client: mqtt.Client, _data: object, _flags: object, reason: Any, _properties: object) -> None:
        if reason.is_failure:
            self._refusal = str(reason)
            self._ready.set()
            return
        client.subscribe([(topic(self._site, self._gateway, leaf), 1) for leaf in ("birth", "heartbeat")])

    def _unreachable(self, problem: str) -> str:
        return (
            f"{self._place}: found {problem}, expected a connection for the board's first heartbeat; start the broker, or "
            "flash with --no-wait"
        )

    def _late(self, port: str, limit_s: float, was_born: bool, said: str) -> str:
        heard = "a birth but no heartbeat" if was_born else "nothing"
        look = (
            "its clock and heartbeat_ms"
            if was_born
            else "the name and password of the Wi-Fi network, that the board reaches the "
            "broker at this address, and user and password there"
        )
        return (
            f"{self._place}: found {heard} within {limit_s:.0f} s, expected a heartbeat of {self._site}/{self._gateway}; "
            f"check {look}; `python -m mpremote connect {port} repl` shows the board"
            + (f"; its output: {said}" if said else "")
        )


class _Printed:
    """The output of the board; `ended` if its main program has ended. A port that cannot be opened again gives no
    output.
    """

    def __init__(self, port: str) -> None:
        self._port, self._bytes = port, b""
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "_Printed":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()

    @property
    def ended(self) -> bool:
        return b"Traceback" in self._bytes and b"\n>>> " in self._bytes.replace(b"\r", b"")

    def last(self) -> str:
        """Its last two lines of output, as one line."""
        lines = [line.strip() for line in self._bytes.decode(errors="replace").splitlines()]
        reported = [line for line in lines if line and not line.startswith((">>>", "MicroPython v", 'Type "help'))]
        return " | ".join(reported[-2:])

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                with serial.serial_for_url(self._port, 115200, timeout=0.2) as line:
                    while not self._stopping.is_set():
                        self._bytes = (self._bytes + line.read(256))[-HEARD_BYTES:]
            except (OSError, ValueError):  # the port of a restarting board vanishes
                self._stopping.wait(0.2)


def _decoded(name: str, payload: bytes) -> "Birth | Heartbeat | None":
    try:
        return decode_birth(payload) if name.endswith("/birth") else decode_heartbeat(payload)
    except WireError:
        return None
