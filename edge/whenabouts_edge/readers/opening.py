"""Opens a reader's port, whatever kind it is."""

from whenabouts_edge.readers.port import Port, open_port
from whenabouts_edge.readers.tcp import open_tcp

LLRP = "llrp://"


def open_reader(url: str, baud: int) -> Port:
    """The open port of a reader.

    Raises:
        PortError: it cannot be opened.
    """
    return open_tcp(url) if url.startswith(LLRP) else open_port(url, baud)
