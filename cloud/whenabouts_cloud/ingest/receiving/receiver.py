"""The reception in a process of its own, so that it receives while the ingest decodes and writes.

In one process the two would share Python's interpreter: while one message of thousands of readings is decoded, each read of
the socket waits, the broker's queue grows under a flood, and the readings of all other gateways wait in it.

The two processes talk over a socket pair, in turns: a call, its answer. The receiving process ends when its end of the pair
is closed, however the ingest ended. If it ends itself, the ingest starts another; what was not acknowledged comes again.
"""

import socket
import subprocess
import sys
from collections.abc import Sequence
from multiprocessing.connection import Connection, wait
from typing import Any

from whenabouts_cloud.broker.connection import BrokerError, Credentials
from whenabouts_cloud.ingest.receiving.reception import LEAVE_S, Confirmed, Received

MODULE = "whenabouts_cloud.ingest.receiving.receiver_main"
LEFT_S = LEAVE_S + 1.0  # longest wait for the end of the process


class ReceiverLost(BrokerError):
    """The receiving process has ended, and the connection with it."""


class Receiver:
    """A `Reception` in another process; the same calls. The process starts with `connect`."""

    def __init__(
        self, host: str, port: int, client_id: str, credentials: Credentials, log_format: str = "text",
        sites: Sequence[str] = (),
    ) -> None:  # fmt: skip
        self._settings = (host, port, client_id, credentials, tuple(sites), log_format)
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe: Connection | None = None
        self._stopped, self._stop = socket.socketpair()

    @property
    def pid(self) -> int | None:
        """Number of the process, None if there is none."""
        return None if self._process is None else self._process.pid

    def connect(self) -> str:
        """Start the process and connect; returns the version of MQTT in use, or nothing if stopped.

        Raises:
            BrokerError: the broker cannot be reached, or refuses the connection.
            ReceiverLost: the process has ended.
        """
        self._start()
        self._send("connect", *self._settings)
        if self._stopped in wait([self._pipe, self._stopped]):  # type: ignore[list-item]
            self._kill()  # it may wait for a name server; nothing is lost
            return ""
        failure, version = self._receive()
        if failure:
            raise BrokerError(failure)
        return str(version)

    def take(self, timeout_s: float) -> Received:
        """What came, waiting up to timeout_s for the first message.

        Raises:
            ReceiverLost: the process has ended.
        """
        self._send("take", timeout_s)
        return Received(*self._receive())

    def confirm(self, confirmed: Confirmed) -> None:
        """Acknowledge messages to the broker, and send acknowledgements to gateways.

        Raises:
            ReceiverLost: the process has ended.
        """
        self._send("confirm", confirmed)

    def stop(self) -> None:
        """Make `connect` return; callable from any thread."""
        self._stop.send(b".")

    def close(self) -> None:
        """Let the process disconnect, and end it. The broker keeps the session."""
        process, self._process = self._process, None
        if process is None:
            return
        assert self._pipe is not None
        self._pipe.close()
        try:
            process.wait(LEFT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _start(self) -> None:
        self.close()
        ours, theirs = socket.socketpair()
        # In a group of its own: Ctrl-C is for the ingest, which ends it. -P: imports nothing from the working directory.
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", MODULE, str(theirs.fileno())], pass_fds=[theirs.fileno()], process_group=0
        )
        theirs.close()
        self._pipe = Connection(ours.detach())

    def _kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self.close()

    def _send(self, *call: Any) -> None:
        if self._pipe is None or self._pipe.closed:
            raise ReceiverLost("there is no receiving process")
        try:
            self._pipe.send(call)
        except OSError as error:
            raise ReceiverLost(f"the receiving process has ended ({error})") from None

    def _receive(self) -> Any:
        assert self._pipe is not None
        try:
            return self._pipe.recv()
        except (EOFError, OSError):
            raise ReceiverLost("the receiving process has ended") from None
