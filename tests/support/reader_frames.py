"""The published frames of all readers, under the names that their decoders have here."""

import json

from support.paths import shared_dir

OURS = {"pn532-hsu": "pn532", "m100-bb7e": "yrm100", "nmea": "line"}  # where the table has another name


def published() -> list[dict]:
    """Each with name, protocol, hex, bytes, valid, baud, wire_ms, fields, source."""
    vectors = json.loads((shared_dir() / "facts" / "rfid-vectors.json").read_text())
    return [vector | {"protocol": OURS.get(vector["protocol"], vector["protocol"])} for vector in vectors]
