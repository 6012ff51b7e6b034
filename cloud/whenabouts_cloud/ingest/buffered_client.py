"""paho's client, reading its socket in large pieces.

paho asks the socket for a byte, then for the length, then for the rest of each packet. Each of these calls gives other
threads the interpreter, and waits to get it back: while the ingest decodes, messages would arrive at some hundred a second.
"""

import paho.mqtt.client as mqtt
from paho.mqtt.enums import MQTTErrorCode

READ_BYTES = 256 << 10


class BufferedClient(mqtt.Client):
    """Hands out what was read before it asks the socket again."""

    _read = b""
    _at = 0

    def loop_read(self, max_packets: int = 1) -> MQTTErrorCode:
        """Process what has arrived; the socket is not seen as readable for what is buffered here."""
        result = super().loop_read(max_packets)
        while result == MQTTErrorCode.MQTT_ERR_SUCCESS and self._at < len(self._read):
            result = super().loop_read(max_packets)
        return result

    def reconnect(self) -> MQTTErrorCode:
        """Connect again; nothing of the earlier connection is left."""
        self._read, self._at = b"", 0
        return super().reconnect()

    def _sock_recv(self, bufsize: int) -> bytes:
        if self._at >= len(self._read):
            self._read, self._at = super()._sock_recv(READ_BYTES), 0
        piece = self._read[self._at : self._at + bufsize]
        self._at += len(piece)
        return piece
