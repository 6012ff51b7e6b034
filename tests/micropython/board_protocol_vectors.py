"""Golden vectors on the board: argv names batches.json, messages.json and refused.json, one entry a line after splitting."""

import json
import sys

import whenabouts_protocol as protocol
from whenabouts_protocol.errors import WireError
from whenabouts_protocol.messages.batch import decode_batch, encode_batch
from whenabouts_protocol.reading import Reading

ENCODE = {
    "birth": protocol.encode_birth,
    "status": protocol.encode_status,
    "heartbeat": protocol.encode_heartbeat,
    "ack": protocol.encode_ack,
}
DECODE = {
    "birth": protocol.decode_birth,
    "status": protocol.decode_status,
    "heartbeat": protocol.decode_heartbeat,
    "ack": protocol.decode_ack,
}
# Names that only the vectors use: flashed code numbers names that stand nowhere as a text, as those of `options` do.
NAMES = (
    "boot",
    "bound_us",
    "build",
    "certificate_ends_s",
    "clock_source",
    "clock_state",
    "condition",
    "frontier_us",
    "gateway",
    "group",
    "landed",
    "published",
    "refused",
    "site",
    "spool_bytes",
    "spool_readings",
    "streams",
    "invalid",
    "view",
)
TYPES = {"birth": protocol.Birth, "status": protocol.Status, "heartbeat": protocol.Heartbeat, "ack": protocol.Ack}


def check(row):
    data = bytes.fromhex(row["hex"])
    if "readings" in row:
        readings = [Reading(**options) for options in row["readings"]]
        return encode_batch(readings) == data and decode_batch(data) == readings
    if "fields" in row:
        options = row["fields"]
        for name in ("published", "landed"):
            if name in options:
                options[name] = {boot: tuple(n) if name == "published" else n for boot, n in options[name]}
        assert all(name in NAMES for name in options)
        message = TYPES[row["type"]](**options)
        kind = row["type"]
        return ENCODE[kind](message) == data and DECODE[kind](data) == message
    try:
        decode_batch(data)
        return False
    except WireError as error:
        return row["reason"] in str(error)


count = 0
with open(sys.argv[1]) as rows:
    for line in rows:
        row = json.loads(line)
        count += 1
        if not check(row):
            print("DIFFERS", row["name"])
print("rows", count)
