"""The broker for machines without mosquitto: amqtt 0.12 on 127.0.0.1.

Run as `python -m whenabouts_sim.stack.embedded_broker PORT`.

amqtt's own plugin for anonymous access marks sessions as anonymous, and the broker forgets those within a second of
disconnecting, whatever the value of clean_session; the plugin here lets everybody in and marks no session. It also repairs
take-over: if a client is back before its broken connection was noticed, the end of the old connection would leave the
persistent session marked as disconnected, and the client would get nothing.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections import Counter

from amqtt.broker import Broker
from amqtt.contexts import BaseContext
from amqtt.plugins.base import BaseAuthPlugin
from amqtt.session import Session


class Welcome(BaseAuthPlugin):  # type: ignore[misc]  # amqtt.* is imported as Any
    """Lets everybody in, because the listener is on the loopback only, and keeps sessions connected while a client is."""

    def __init__(self, context: BaseContext) -> None:
        super().__init__(context)
        self._connections: Counter[str] = Counter()

    async def authenticate(self, *, session: Session) -> bool:
        """Always true."""
        return True

    async def on_broker_client_connected(self, *, client_id: str, client_session: Session) -> None:
        """A connection begins, maybe before the client's old one has ended."""
        self._connections[client_id] += 1
        _keep_connected(client_session)

    async def on_broker_client_disconnected(self, *, client_id: str, client_session: Session) -> None:
        """A connection has ended, maybe one that was taken over."""
        self._connections[client_id] -= 1
        if self._connections[client_id] > 0:
            _keep_connected(client_session)
        else:
            del self._connections[client_id]


def _keep_connected(session: Session) -> None:
    if session.transitions.is_disconnected():
        session.transitions.connect()


async def serve(port: int) -> None:
    """Serves until cancelled."""
    broker = Broker(
        {
            "listeners": {"default": {"type": "tcp", "bind": f"127.0.0.1:{port}"}},
            "plugins": {"whenabouts_sim.stack.embedded_broker.Welcome": {}},
        }
    )
    await broker.start()
    await asyncio.Event().wait()


def main() -> None:
    """Serves on the port given as the only argument, until killed."""
    logging.basicConfig(level=logging.WARNING)
    asyncio.run(serve(int(sys.argv[1])))


if __name__ == "__main__":
    main()
