"""What an agent takes from each frame: the tags that were seen, and where a reader's search cycle begins.

Apart from `readers`, which a board needs at its start alone.
"""

from collections import namedtuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from whenabouts_hardware.frame import Frame

# A line silent for this long will not finish the frame it began: time to call `Decoder.flush`. Chosen, not measured:
# nine times the longest frame (255 bytes at 115200 Bd, 22 ms) leaves room for USB latency and ends before the next
# keep-alive.
GAP_US = 200_000
# One tag seen by a reader. key: EPC or card in upper-case hex. attrs: integers by name. ts_ms: milliseconds into the
# reader's search cycle, or None. read_count: sightings that this one stands for; with more than one it is unknown
# whether ts_ms is the first or the last of them.
Sighting = namedtuple("Sighting", ("key", "attrs", "ts_ms", "read_count"))

_ATTRS = ("freq_khz", "gpio", "phase", "rssi")
_ANTENNA_OF = {1: 1, 2: 2, 4: 3, 8: 4}  # of an antenna mask with one bit


def sightings(kind: str, frame: "Frame") -> "list[Sighting]":
    """The tags that a frame of this kind of reader reports; none if it is damaged or speaks of something else.

    Attributes of a UHF tag: rssi (dBm), antenna (transmitting port), freq_khz, phase (degrees), gpio, rssi_raw (of a
    UHFReader288, which names no unit), as far as the reader sent them; of a card none. The key of a 125 kHz card is version
    and id, ten digits, of a 13.56 MHz card its identifier. A sensor that sends lines has none (`observed`).

    Raises:
        ValueError: unknown kind.
    """
    if kind in ("rdm6300", "id12la"):
        return [Sighting(frame.raw[1:11].decode().upper(), {}, None, 1)] if frame.ok else []
    if kind == "line":
        return []
    if kind == "pn532":
        targets = frame.fields.get("targets") if frame.ok else None
        return [_sighting(one["uid"]) for one in targets if "uid" in one] if isinstance(targets, list) else []
    if kind == "uhfreader18":
        return _of_inventory(frame) if frame.ok else []
    if kind in ("m6e", "yrm100"):
        records = [frame.fields] if frame.kind == "tag" else frame.fields["tags"] if frame.kind == "tags" else ()
        return [_uhf(record) for record in records] if frame.ok and isinstance(records, list) else []
    return _of_package(kind, frame)


def _of_package(kind: str, frame: "Frame") -> "list[Sighting]":
    from whenabouts_hardware.catalogue import READERS, unknown  # loaded by who registered the package's

    reader = READERS.get(kind)
    if reader is None or reader.sightings is None:
        raise unknown(kind)
    found: list[Sighting] = reader.sightings(frame) if frame.ok else []
    return found


def _uhf(record: "dict[str, object]") -> Sighting:
    attrs = {name: record[name] for name in _ATTRS if name in record}
    antenna = record.get("antenna")
    if isinstance(antenna, str):
        attrs["antenna"] = int(antenna.split("/")[0])
    return Sighting(str(record["epc"]).upper(), attrs, record.get("ts_ms"), record.get("read_count", 1))


def _of_inventory(frame: "Frame") -> "list[Sighting]":
    if frame.kind == "active":
        return [_sighting(frame.fields["epc"])]
    records = frame.fields.get("tags")
    if not isinstance(records, list):
        return []
    mask = frame.fields.get("antenna_mask")
    found = []
    for record in records:
        attrs: dict[str, object] = {}
        if "rssi" in record:
            attrs["rssi_raw"] = record["rssi"]
        if mask in _ANTENNA_OF:
            attrs["antenna"] = _ANTENNA_OF[mask]
        found.append(_sighting(record["epc"], attrs))
    return found


def _sighting(key: object, attrs: "dict[str, object] | None" = None) -> Sighting:
    return Sighting(str(key).upper(), attrs or {}, None, 1)


def is_anchor(frame: "Frame") -> bool:
    """Whether a search cycle of a Mercury reader begins as this frame's first byte leaves it: a keep-alive.

    The milliseconds of the tags that follow count from there, to be trusted for one cycle: what follows a cycle without
    a keep-alive counts from a later beginning that no frame tells.
    """
    return frame.ok and frame.kind == "keepalive"
