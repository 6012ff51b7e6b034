"""Zebra FX7500, FX9600, FXR90 and ATR7000 with the IoT Connector: tag data events, over MQTT or HTTP POST.

    {"type": "CUSTOM", "timestamp": "...+0000",
     "data": {"eventNum": 17, "format": "epc", "idHex": "...", "antenna": 1, "peakRssi": -52, "channel": 911.75, "reads": 1}}

antenna, peakRssi (dBm) and the rest are in it if the mode of the reader asks for them (tagMetaData). After
zebradevs.github.io/rfid-ziotc-docs, and the decoder of reelyactive/barnowl-zebra bc6c792, which found several events in one
message without anything between. Events without data.idHex, as heartbeats are, are passed over.

A reader may report a tag only once in a time that is set in it (reportFilter), and keeps events through an outage
(batching, retention): `latency_us` must be longer than all of that.
"""

from whenabouts_hardware.network.documents import DocumentDecoder, epc, tags, whole
from whenabouts_hardware.reader import Reader, Sighting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class ZebraDecoder(DocumentDecoder):
    """Events of the IoT Connector's data interface."""

    def sighting(self, event: "dict[str, Any]") -> "Sighting | None":
        tag = event.get("data")
        if type(tag) is not dict or "idHex" not in tag:
            return None
        attrs: dict[str, int] = {}
        whole(attrs, "antenna", tag.get("antenna"))
        whole(attrs, "rssi", tag.get("peakRssi"))
        reads = tag.get("reads")
        return Sighting(epc(tag["idHex"]), attrs, None, reads if type(reads) is int and reads > 0 else 1)


READER = Reader(
    ZebraDecoder, 0, 1_000_000, "assumed time from a sighting to its message; no source gives it", tags, publishes=True
)
