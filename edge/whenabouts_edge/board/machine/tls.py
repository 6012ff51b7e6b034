"""A connection with TLS: a certificate of the file must vouch for the server's name. Loaded only where configured.

The handshake continues with every attempt to read or write, so nothing waits for it. Certificates have dates: the
system's clock must be right before the first connection.
"""

import binascii
import ssl

from whenabouts_edge.board.machine.net import READ_BYTES, Tcp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# CPython raises these where MicroPython returns None.
_LATER: "Any" = (getattr(ssl, "SSLWantReadError", None), getattr(ssl, "SSLWantWriteError", None))


def certificates(pem: str) -> "list[bytes]":
    """The certificates of a PEM file in DER, which every board reads.

    Raises:
        ValueError: there is none, or it is not base64.
    """
    decoded: list[bytes] = []
    lines: list[str] | None = None
    for line in pem.split("\n"):
        line = line.strip()
        if line == "-----BEGIN CERTIFICATE-----":
            lines = []
        elif line == "-----END CERTIFICATE-----" and lines is not None:
            decoded.append(binascii.a2b_base64("".join(lines)))
            lines = None
        elif lines is not None:
            lines.append(line)
    if not decoded:
        raise ValueError("ca_file: found no certificate, expected PEM")
    return decoded


class Tls(Tcp):
    """One TLS connection; cert_file and key_file: shown to the server on request.

    Raises OSError when it cannot begin or a file cannot be read, ValueError when a file holds nothing usable.
    """

    def __init__(
        self, host: str, port: int, ca_file: str, cert_file: "str | None" = None, key_file: "str | None" = None
    ) -> None:
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._context.verify_mode = ssl.CERT_REQUIRED  # type: ignore[attr-defined,unused-ignore]  # stubs lack it
        with open(ca_file) as file:
            for certificate in certificates(file.read()):
                self._context.load_verify_locations(cadata=certificate)
        if cert_file is not None:
            self._context.load_cert_chain(cert_file, key_file)
        self._host = host
        self._line: Any = None
        super().__init__(host, port)

    def is_open(self) -> bool:
        """Return True if bytes can be sent. Raises OSError when the connection was refused or broke."""
        if self._line is None and super().is_open():
            self._line = self._context.wrap_socket(
                self._socket, server_hostname=self._host, do_handshake_on_connect=False
            )
        return self._line is not None

    def write(self, data: bytes) -> int:
        """Send bytes; returns how many were taken. Raises OSError when the connection broke or the server is not trusted."""
        return self._tried(self._line.write, data) or 0

    def read(self) -> "bytes | None":
        """Decrypted bytes that have arrived; see `Tcp.read`."""
        data: bytes | None = self._tried(self._line.read, READ_BYTES)
        return data

    def close(self) -> None:
        """Close the connection."""
        if self._line is not None:
            self._line.close()
        super().close()

    def _tried(self, call: "Any", argument: "Any") -> "Any":
        try:
            return call(argument)
        except ValueError as error:  # MicroPython raises it for a certificate that does not fit
            raise OSError(str(error)) from None
        except OSError as error:
            if type(error) in _LATER:
                return None
            raise
