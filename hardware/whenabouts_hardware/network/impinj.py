"""Impinj R700 and later with the IoT device interface: events of kind tagInventory, over MQTT or a webhook.

    {"timestamp": "...Z", "hostname": "impinj-14-46-36", "eventType": "tagInventory",
     "tagInventoryEvent": {"epc": base64, "epcHex": "...", "antennaPort": 1, "peakRssiCdbm": -5200, "frequency": 865700}}

Which fields are in an event is a setting of the reader; epcHex or epc must be on. After platform.impinj.com, IoT device
interface, and the decoder of reelyactive/barnowl-impinj 0087221. Events of other kinds are passed over.

A reader may collect tags for a time that is set in it (reportingIntervalSeconds), and sends them again after an outage:
`latency_us` must be longer than all of that.
"""

from binascii import a2b_base64

from whenabouts_hardware.frame import as_hex
from whenabouts_hardware.network.documents import DocumentDecoder, epc, tags, whole
from whenabouts_hardware.reader import Reader, Sighting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class ImpinjDecoder(DocumentDecoder):
    """Events of the IoT device interface."""

    def sighting(self, event: "dict[str, Any]") -> "Sighting | None":
        tag = event.get("tagInventoryEvent")
        if type(tag) is not dict:
            return None
        key = tag.get("epcHex")
        if key is None and type(tag.get("epc")) is str:
            key = as_hex(a2b_base64(tag["epc"]))
        attrs: dict[str, int] = {}
        whole(attrs, "antenna", tag.get("antennaPort"))
        whole(attrs, "rssi", tag.get("peakRssiCdbm"), 100)
        whole(attrs, "freq_khz", tag.get("frequency"))
        return Sighting(epc(key), attrs, None, 1)


READER = Reader(
    ImpinjDecoder, 0, 1_000_000, "assumed time from a sighting to its message; no source gives it", tags, publishes=True
)
