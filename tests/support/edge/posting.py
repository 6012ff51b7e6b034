"""Events as readers publish them by themselves, with a true moment for each tag."""

import json
import time

EPC = "30395DFA8101C340{:08X}"


def impinj(number: int, **more: object) -> dict[str, object]:
    """An event of Impinj's IoT device interface."""
    tag = {"epcHex": EPC.format(number), "antennaPort": 1 + number % 2, "peakRssiCdbm": -5250, "frequency": 865700}
    stamp = "2000-01-01T00:00:00.000000000Z"  # no bound comes from it
    return {
        "timestamp": stamp,
        "hostname": "impinj-14-46-36",
        "eventType": "tagInventory",
        "tagInventoryEvent": tag | more,
    }


def zebra(number: int, **more: object) -> dict[str, object]:
    """An event of Zebra's IoT Connector."""
    tag = {"eventNum": number, "format": "epc", "idHex": EPC.format(number).lower(), "antenna": 1 + number % 2}
    data = tag | {"peakRssi": -52, "channel": 865.7, "reads": 1} | more
    return {"data": data, "timestamp": "2000-01-01T00:00:00.000+0000", "type": "CUSTOM"}


def text(events: object) -> bytes:
    """The message of these events."""
    return json.dumps(events).encode()


def now_us() -> int:
    """The host's clock, which stamps count in."""
    return time.monotonic_ns() // 1000
