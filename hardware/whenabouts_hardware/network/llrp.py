"""LLRP, the protocol of fixed UHF readers on a network: Impinj, Zebra (Motorola), ThingMagic, Alien, Kathrein and others.

The reader reports each tag when it sees it. Nothing states how long that takes inside a reader: `latency_us` assumes it.
The network's delay is not assumed but measured, see `llrp_dialogue`.
"""

from whenabouts_hardware.network.llrp_decoder import LlrpDecoder
from whenabouts_hardware.network.llrp_dialogue import LlrpDialogue
from whenabouts_hardware.reader import Reader, Sighting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from whenabouts_hardware.frame import Frame

_ATTRS = ("antenna", "rssi")


def _tags(frame: "Frame") -> "list[Sighting]":
    if frame.kind != "tags":
        return []
    records: Any = frame.fields["tags"]
    return [
        Sighting(
            record["epc"].upper(), {name: record[name] for name in _ATTRS if name in record}, None, record["count"]
        )
        for record in records
    ]


READER = Reader(
    LlrpDecoder,
    0,
    200_000,
    "assumed time inside a reader that reports each tag at once; no source gives it",
    _tags,
    own_keys={
        "power_cdbm": (
            0,
            4000,
            "transmit power in hundredths of dBm; the next lower level of the reader counts.",
            2700,
        ),
        "rf_mode": (0, 65535, "identifier of an RF mode of the reader, as its data sheet names it.", 1002),
        "session": (0, 3, "Gen2 session of the inventory; in 2 and 3 a tag answers once for a long time.", 1),
        "population": (1, 65535, "number of tags to expect in view.", 32),
        "clock_ppm": (
            1,
            1000,
            "most drift of the reader's clock, if nothing sets or steps it; its times then make stamps narrower.",
            100,
        ),
    },
    converse=LlrpDialogue,
)
