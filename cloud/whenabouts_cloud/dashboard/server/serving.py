"""Runs the application on a socket that is already open, so that its address is known before the first request.

Signals are the caller's business (`orderly_end`): uvicorn's own handlers are not installed. A connection that brings no
whole request for some time, or takes no answer, is closed, as uvicorn alone would keep it for ever.
"""

import asyncio
import contextlib
import socket
from collections.abc import Callable, Iterator
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from whenabouts_cloud.dashboard.server.app import Site

CONCURRENCY = 200  # connections and requests at once; more are answered 503
HEADER_BYTES = 16 << 10  # of a request, and of what waits behind it
KEEP_ALIVE_S = 15
PATIENCE_S = 15.0  # a connection on which nothing has moved for one to two of these is closed
GRACE_S = 2  # for requests that are being answered when the server ends


class PatientProtocol(H11Protocol):
    """A connection that is closed when its next request does not come, or its answer is not taken."""

    patience_s = PATIENCE_S

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._seen: Any = self.cycle
        self._look_later()

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.cancel()
        super().connection_lost(exc)

    def _look_later(self) -> None:
        self._timer = self.loop.call_later(self.patience_s, self._look)

    def _look(self) -> None:
        waits = self.cycle is None or self.cycle.response_complete or self.flow.write_paused
        if waits and self.cycle is self._seen:
            self.transport.abort()
            return
        self._seen = self.cycle if waits else object()
        self._look_later()


class Serving(uvicorn.Server):
    """A server whose end is asked for by `stop`, from any thread. ending: called before it waits for its requests."""

    def __init__(self, config: uvicorn.Config, ending: Callable[[], None]) -> None:
        super().__init__(config)
        self._ending = ending

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals alone."""
        yield

    def stop(self) -> None:
        """End soon."""
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the streams of news, then wait for the others."""
        self._ending()
        await super().shutdown(sockets)


def serving(site: Site, cert_file: str | None = None, key_file: str | None = None) -> Serving:
    """A server of an application; with a certificate and its key it speaks TLS."""
    return Serving(
        uvicorn.Config(
            site.app,
            http=PatientProtocol,
            ws="none",
            loop="asyncio",
            lifespan="on",
            log_config=None,
            log_level="error",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=CONCURRENCY,
            h11_max_incomplete_event_size=HEADER_BYTES,
            timeout_keep_alive=KEEP_ALIVE_S,
            timeout_graceful_shutdown=GRACE_S,
            ssl_certfile=cert_file,
            ssl_keyfile=key_file,
        ),
        site.end,
    )


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens at an address; port 0 takes a free one.

    Raises:
        OSError: the address is in use, or not one of this machine.
    """
    family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    opened = socket.socket(family, kind)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind(address)
        opened.listen(128)
    except OSError:
        opened.close()
        raise
    return opened
