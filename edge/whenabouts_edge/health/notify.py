"""Reports the agent's state to the service manager: READY=1, WATCHDOG=1, STOPPING=1 and a line of text, by
sd_notify(3).

One datagram to the socket named in the environment, a path or an abstract name with @ in front. Without a reachable
socket nothing is reported: the agent runs the same by hand.

The watchdog is fed while readings can flow: `Flow` checks that received readings get into the spool. A silent reader,
an absent broker and a full spool are faults that a restart does not mend; they do not stop the feeding.
"""

import os
import socket
from collections.abc import Mapping
from typing import Any

from whenabouts_protocol.logs import Log

FEEDS_A_PERIOD = 3  # the service manager requires one
STUCK_S = 20.0  # if no reading gets into the spool for this long, none will; a slow card pauses for 5

log = Log(__name__)


class Notifier:
    """Sends messages to the service manager named in the environment. watchdog_s: how often it expects to be fed, or
    None.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._address = _address(environment.get("NOTIFY_SOCKET", ""))
        self._said = ""
        self._complained = False
        self.watchdog_s = None if self._address is None else _watchdog_s(environment, os.getpid())

    def ready(self) -> None:
        """Report that the agent has started: ports are being opened, the spool accepts readings."""
        self._report("READY=1")

    def feed(self) -> None:
        """Feed the watchdog: readings can flow."""
        self._report("WATCHDOG=1")

    def stopping(self) -> None:
        """Report that the orderly end has begun."""
        self._report("STOPPING=1")

    def say(self, text: str) -> None:
        """Report a line about the agent's state if it has changed."""
        if text != self._said:
            self._said = text
            self._report("STATUS=" + " ".join(text.split()))

    def _report(self, message: str) -> None:
        if self._address is None:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sock:
                sock.setblocking(False)
                sock.sendto(message.encode(), self._address)
        except OSError as error:
            if not self._complained:
                log.warning("service.unreachable", message=message.split("=")[0], error=error)
            self._complained = True
        else:
            self._complained = False


class Flow:
    """Checks that accepted readings get settled: stored, or refused and counted."""

    def __init__(self) -> None:
        self._settled = -1
        self._moved_s = 0.0

    def moves(self, now_s: float, accepted: int, settled: int) -> bool:
        """Call it regularly with the counts so far; False if some readings have waited for STUCK_S without any
        progress.
        """
        if settled != self._settled or accepted == settled:
            self._settled, self._moved_s = settled, now_s
        return now_s - self._moved_s < STUCK_S


def summary(status: Mapping[str, Any]) -> str:
    """The agent's status in one line."""
    readers = status["readers"].values()
    reading = sum(reader["state"] in ("reading", "finished") for reader in readers)
    broker = "connected" if status["broker"]["connected"] else "not connected"
    full = f", {status['refused']} readings refused" if status["refused"] else ""
    return f"{reading} of {len(readers)} readers reading, broker {broker}, clock {status['clock']['state']}{full}"


def _address(name: str) -> str | None:
    if name.startswith("@"):
        return "\0" + name[1:]
    if name and not name.startswith("/"):
        log.warning("service.bad_socket", "expected a path or an abstract name in NOTIFY_SOCKET", found=name)
    return name if name.startswith("/") else None


def _watchdog_s(environment: Mapping[str, str], pid: int) -> float | None:
    """The feeding period that the service manager expects of this process, None if it expects none."""
    period_us, of = environment.get("WATCHDOG_USEC", ""), environment.get("WATCHDOG_PID", str(pid))
    if not (period_us.isascii() and period_us.isdigit() and int(period_us) and of == str(pid)):
        return None
    return int(period_us) / 1e6
