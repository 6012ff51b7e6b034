"""A real MQTT broker on a free port of the loopback, for simulations and tests: started, killed, started again.

mosquitto if it is installed, otherwise the embedded amqtt in its own process. Readiness is an MQTT CONNACK, not a waiting
time. Both end with the thread that started them.
`EMBEDDED_LACKS` lists what the embedded broker lacks compared with mosquitto, tried with paho 2.2; none of these gaps loses
a reading that waits in a spool for the cloud's own acknowledgement. 2000 messages at QoS 1 take the embedded broker 0.4 s,
mosquitto 0.2 s.
"""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from whenabouts_sim.stack.parent_death import with_parent

HOST = "127.0.0.1"
Kind = Literal["mosquitto", "embedded"]

# Daemons are often installed outside users' search paths.
SBIN = os.pathsep.join(("/usr/sbin", "/usr/local/sbin", "/opt/homebrew/sbin"))

# A slow machine importing amqtt needs about two seconds; a broker that is not ready after this time has failed.
START_S_MAX = 20.0
STOP_S_MAX = 5.0
POLL_S = 0.02

# MQTT 3.1.1 CONNECT, clean session, keep-alive 10 s, client id "ready?"; the answer is 20 02 00 00.
CONNECT = b"\x10\x12\x00\x04MQTT\x04\x02\x00\x0a\x00\x06ready?"
CONNACK = b"\x20\x02\x00\x00"
DISCONNECT = b"\xe0\x00"

DATABASE = "mosquitto.db"

EMBEDDED_LACKS = (
    "MQTT 5: such a CONNECT is refused",
    "shared subscriptions: $share/... is taken for a plain filter and matches nothing",
    "redelivery: messages that a client has not acknowledged after 5 s, or when it disconnects, are dropped",
    "persistence: sessions and retained messages end with its process",
    "retained messages go to every new connection if anybody subscribed to them, at QoS 0",
    "messages that waited for a persistent session arrive with the retain flag set",
)


class BrokerError(RuntimeError):
    """The broker could not be started."""


def find_mosquitto() -> str | None:
    """Path of the mosquitto daemon, None if there is none."""
    return shutil.which("mosquitto") or shutil.which("mosquitto", path=SBIN)


def which_broker() -> Kind:
    """The broker that `running_broker` takes on this machine."""
    return "mosquitto" if find_mosquitto() else "embedded"


class RunningBroker:
    """A broker process on `port` of 127.0.0.1 with its files in `directory` (made if missing).

    mosquitto keeps its state there and finds it again after `restart`.
    """

    def __init__(self, directory: Path, port: int = 0, kind: Kind | None = None) -> None:
        self.directory = directory
        self.kind: Kind = kind or which_broker()
        self.port = port or free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._configuration: Path | None = None
        self._tls: ssl.SSLContext | None = None
        directory.mkdir(parents=True, exist_ok=True)

    @property
    def log(self) -> Path:
        """The broker's log."""
        return self.directory / "broker.log"

    @property
    def pid(self) -> int | None:
        """Process id, None while it does not run."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    def secure(self, configuration: Path, tls: ssl.SSLContext) -> None:
        """Makes the next start use this configuration of mosquitto, which lets in who connects as `tls` does."""
        self._configuration, self._tls = configuration, tls

    def start(self) -> None:
        """Starts the broker and returns when it accepts clients.

        Raises:
            BrokerError: the port is taken, or the broker ended or gave no answer in time; the text ends with its log.
        """
        _require_free(self.port)
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
                preexec_fn=with_parent(),
            )
        deadline_s = time.monotonic() + START_S_MAX
        while not _answers(self.port, self._tls):
            code = self._process.poll()
            if code is not None or time.monotonic() > deadline_s:
                self.kill()
                state = f"ended with code {code}" if code is not None else f"gave no answer for {START_S_MAX:.0f} s"
                tail = self.log.read_text(errors="replace")[-500:]
                raise BrokerError(
                    f"{self.kind} on port {self.port}: {state}, expected it to accept clients; {self.log} ends: {tail}"
                )
            time.sleep(POLL_S)

    def save(self) -> None:
        """Lets mosquitto write its state now, as it does by itself every two seconds; returns when it is written.

        Raises:
            BrokerError: the embedded broker, which has no such state, or nothing was written in time.
        """
        if self.kind != "mosquitto" or self._process is None:
            raise BrokerError(f"save: found broker {self.kind}, pid {self.pid}, expected a running mosquitto")
        database = self.directory / DATABASE
        before_ns = _written_ns(database)
        self._process.send_signal(signal.SIGUSR1)
        deadline_s = time.monotonic() + STOP_S_MAX
        while _written_ns(database) == before_ns:
            if time.monotonic() > deadline_s:
                raise BrokerError(
                    f"save: {database} not written in {STOP_S_MAX:.0f} s, expected it at once; see {self.log}"
                )
            time.sleep(POLL_S)

    def stop(self) -> None:
        """Ends the broker with SIGTERM; mosquitto writes its state."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Ends the broker as a power cut would."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        """Starts the broker again on the same port, with the state in its directory."""
        self.stop()
        self.start()

    def _end(self, how: signal.Signals) -> None:
        if self._process is None:
            return
        self._process.send_signal(how)
        try:
            self._process.wait(STOP_S_MAX)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def _command(self) -> list[str]:
        if self.kind == "embedded":
            if importlib.util.find_spec("amqtt") is None:
                raise BrokerError(
                    "broker: found neither mosquitto nor the embedded one; apt-get install mosquitto, or "
                    "pip install 'whenabouts[embedded-broker]'"
                )
            return [sys.executable, "-m", "whenabouts_sim.stack.embedded_broker", str(self.port)]
        mosquitto = find_mosquitto()
        if mosquitto is None:
            raise BrokerError(
                f"mosquitto: found neither in PATH nor in {SBIN}; install it, or take the broker of kind 'embedded'"
            )
        config = self._configuration
        if config is None:
            config = self.directory / "mosquitto.conf"
            config.write_text(mosquitto_config(self.port, self.directory))
        return [mosquitto, "-c", str(config)]


def mosquitto_config(port: int, directory: Path) -> str:
    """Configuration of a mosquitto that queues without limit and saves its state every two seconds.

    `user`: started as root, mosquitto would give up its rights and could not write into the directory any more.
    """
    return "\n".join(
        (
            f"listener {port} {HOST}",
            "allow_anonymous true",
            f"user {pwd.getpwuid(os.getuid()).pw_name}",
            "persistence true",
            f"persistence_location {directory.resolve()}/",
            "autosave_interval 1",
            "max_queued_messages 0",
            "max_queued_bytes 0",
            "max_inflight_messages 1000",
            "set_tcp_nodelay true",
            "log_dest stderr",
            "log_type error",
            "log_type warning",
            "log_type notice",
            "",
        )
    )


def _written_ns(path: Path) -> int | None:
    """Time at which the file was last replaced, None while there is none."""
    return path.stat().st_mtime_ns if path.exists() else None


def free_port() -> int:
    """A port of the loopback that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def _require_free(port: int) -> None:
    """Refuses a port that is taken: the process that has it would answer in the new broker's place."""
    with socket.socket() as probe:
        # As the brokers do: connections of a broker that has just ended do not block the port.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            raise BrokerError(
                f"port {port} of {HOST}: {error.strerror}, expected it free; take another or 0"
            ) from error


@contextmanager
def running_broker(directory: Path, port: int = 0, kind: Kind | None = None) -> Iterator[RunningBroker]:
    """A broker that runs while the block does; port 0 takes a free one, kind None takes `which_broker()`."""
    broker = RunningBroker(directory, port, kind)
    broker.start()
    try:
        yield broker
    finally:
        broker.stop()


def _answers(port: int, tls: ssl.SSLContext | None) -> bool:
    """True if an MQTT client is accepted on the port."""
    try:
        with (
            socket.create_connection((HOST, port), timeout=1.0) as line,
            tls.wrap_socket(line, server_hostname=HOST) if tls else line as connection,
        ):
            connection.sendall(CONNECT)
            answer = connection.recv(len(CONNACK))
            connection.sendall(DISCONNECT)
            return answer == CONNACK
    except OSError:
        return False
