"""A gateway as the broker sees it: a window of batches at QoS 1, sent again until the cloud has confirmed them."""

import threading
import time

import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion

from support.cloud.ingest import at, batch, birth, heartbeat
from whenabouts_protocol import decode_ack

WINDOW = 12  # batches on their way
RESEND_S = 1.0


class MqttGateway:
    """Publishes `count` readings of boot 0 in batches of `size`; `acked` follows the cloud. Runs in its own thread."""

    def __init__(self, name: str, port: int, count: int, size: int) -> None:
        self.name, self.count, self.acked = name, count, -1
        self._port, self._size = port, size
        self._changed, self._stopping = threading.Event(), False
        self._lost = False
        self._client = mqtt.Client(CallbackAPIVersion.VERSION2, client_id=f"wa-{name}")
        self._client.on_connect, self._client.on_message = self._on_connect, self._on_message
        self._client.reconnect_delay_set(1, 1)
        self._client.connect("127.0.0.1", port)
        self._client.loop_start()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    @property
    def done(self) -> bool:
        """True if the cloud has confirmed everything."""
        return self.acked == self.count - 1

    def send_heartbeat(self, frontier_us: int) -> None:
        """Send a watermark: everything before it is published, as all readings are."""
        message = heartbeat(self.name, 0, frontier_us, {0: (self.acked + 1, self.count - 1)})
        self._client.publish(at(self.name, "heartbeat"), message, qos=0)

    def close(self) -> None:
        """End the thread and the connection."""
        self._stopping = True
        self._changed.set()
        self._thread.join()
        self._client.disconnect()
        self._client.loop_stop()

    def _run(self) -> None:
        next_seq, moved_s = 0, time.monotonic()
        while not self._stopping and not self.done:
            if self._lost or time.monotonic() - moved_s > RESEND_S:
                self._lost, next_seq, moved_s = False, self.acked + 1, time.monotonic()
            while next_seq < self.count and next_seq - self.acked <= WINDOW * self._size:
                size = min(self._size, self.count - next_seq)
                self._client.publish(at(self.name), batch(self.name, 0, next_seq, size), qos=1)
                next_seq += size
            before = self.acked
            self._changed.wait(RESEND_S / 4)
            self._changed.clear()
            if self.acked > before:
                moved_s = time.monotonic()

    def _on_connect(self, client: mqtt.Client, _u: object, _f: object, _r: object, _p: object) -> None:
        client.publish(at(self.name, "birth"), birth(self.name), qos=1, retain=True)
        client.subscribe(at(self.name, "ack"), qos=1)
        self._lost = True
        self._changed.set()

    def _on_message(self, _c: mqtt.Client, _u: object, message: mqtt.MQTTMessage) -> None:
        reach = decode_ack(message.payload).landed.get(0, -1)
        if reach > self.acked:
            self.acked = reach
            self._changed.set()
