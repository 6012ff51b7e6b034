"""A door in front of a broker that lets in MQTT 3.1.1 only, as a broker that knows no other."""

import contextlib
import socket
import threading
from collections.abc import Iterator

WRONG_VERSION = b"\x20\x02\x00\x01"  # CONNACK of 3.1.1
LEVEL_5 = b"\x00\x04MQTT\x05"


@contextlib.contextmanager
def only_3(port: int) -> Iterator[int]:
    """The port of the door, open until the end of the block; behind it stands the broker on `port`."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=_serve, args=(server, port), daemon=True).start()
        yield server.getsockname()[1]


def _serve(server: socket.socket, port: int) -> None:
    with contextlib.suppress(OSError):  # the server is closed at the end
        while True:
            threading.Thread(target=_let_in, args=(server.accept()[0], port), daemon=True).start()


def _let_in(client: socket.socket, port: int) -> None:
    with client, contextlib.suppress(OSError):
        first = client.recv(4096)
        if LEVEL_5 in first:
            client.sendall(WRONG_VERSION)
            return
        with socket.create_connection(("127.0.0.1", port)) as broker:
            broker.sendall(first)
            back = threading.Thread(target=_carry, args=(broker, client), daemon=True)
            back.start()
            _carry(client, broker)
            back.join()


def _carry(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            sink.sendall(data)
    for one in (source, sink):
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
