"""Runs the application on a socket that is already open, so that its address is known before the first request.

Signals are the caller's business (`orderly_end`): uvicorn's own handlers are not installed.
"""

import contextlib
import socket
from collections.abc import Callable, Iterator

import uvicorn

from whenabouts_cloud.dashboard.server.app import Site

CONCURRENCY = 200  # connections and requests at once; more are answered 503
HEADER_BYTES = 16 << 10
KEEP_ALIVE_S = 15
GRACE_S = 2  # for requests that are being answered when the server ends


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
            http="h11",
            ws="none",
            loop="asyncio",
            lifespan="on",
            log_config=None,
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
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    opened = socket.socket(family, socket.SOCK_STREAM)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind((host, port))
        opened.listen(128)
    except OSError:
        opened.close()
        raise
    return opened
