"""The broker for machines without mosquitto: amqtt 0.12 on 127.0.0.1.

Run as `python -m whenabouts_sim.embedded_broker PORT`.

Two settings make it fit. Its own plugin for anonymous access marks sessions as anonymous, and
the broker forgets those within a second of disconnecting, whatever clean_session says; so access is granted by a plugin
that does not mark them. And its logging and $SYS plugins are left out.
"""

from __future__ import annotations

import asyncio
import logging
import sys

from amqtt.broker import Broker
from amqtt.plugins.base import BaseAuthPlugin
from amqtt.session import Session


class Welcome(BaseAuthPlugin):  # type: ignore[misc]  # amqtt.* is imported as Any
    """Lets everybody in and marks nobody: the listener is on the loopback only."""

    async def authenticate(self, *, session: Session) -> bool:
        """Always true."""
        return True


async def serve(port: int) -> None:
    """Serves until cancelled."""
    broker = Broker(
        {
            "listeners": {"default": {"type": "tcp", "bind": f"127.0.0.1:{port}"}},
            "plugins": {"whenabouts_sim.embedded_broker.Welcome": {}},
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
