"""Opens a reader's port, whatever kind it is."""

from pathlib import Path

from whenabouts_edge.config.settings import HTTP, LLRP, MQTT, ReaderConfig
from whenabouts_edge.readers.http_listener import HttpListener
from whenabouts_edge.readers.mqtt_listener import MqttListener
from whenabouts_edge.readers.port import PortError, ReaderPort, open_port
from whenabouts_edge.readers.tcp import open_tcp
from whenabouts_hardware import READERS

TOKEN_BYTES_MAX = 1024


def open_reader(reader: ReaderConfig) -> ReaderPort:
    """The open port of a reader.

    Raises:
        PortError: it cannot be opened.
    """
    if reader.port.startswith(LLRP):
        return open_tcp(reader.port)
    if reader.port.startswith(HTTP):
        return HttpListener(reader.port, None if reader.token_file is None else token(reader.token_file))
    if reader.port.startswith(MQTT) and reader.broker is not None:
        client_id = f"{reader.broker.client_id}-{reader.name}"
        return MqttListener(reader.port.removeprefix(MQTT), reader.broker, client_id)
    return open_port(reader.port, reader.baud or READERS[reader.kind].baud)


def token(path: str) -> str:
    """The first line of a token's file.

    Raises:
        PortError: it cannot be read, or is empty.
    """
    try:
        with Path(path).open("rb") as file:
            found = file.read(TOKEN_BYTES_MAX).decode().split("\n")[0].strip()
    except (OSError, UnicodeError) as error:
        raise PortError(f"token_file {path}: cannot read it ({error}); correct token_file, or its rights") from error
    if not found:
        raise PortError(f"token_file {path}: found no text on its first line, expected the token")
    return found
