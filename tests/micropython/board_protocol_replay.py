"""Replays a file of cases, one JSON array a line, and prints each that differs from what CPython found; then the counts.

["prob", [a_min, a_max, b_min, b_max, lo, hi], [deadline, delay, within, between]]   doubles as hexadecimal; equal to the
last bit where numerator and denominator fit a double, else (this VM rounds each large integer) within 4 units of it
["batch", hex, hex of the fields as CBOR]
["message", type, hex]
["bytes", hex, what each decoder said: 1 for a value, 0 for WireError]
"""

import json
import struct
import sys

import whenabouts_protocol as protocol
from whenabouts_protocol import cbor
from whenabouts_protocol import probability as p
from whenabouts_protocol.errors import WireError
from whenabouts_protocol.messages.batch import decode_batch, encode_batch
from whenabouts_protocol.reading import FIELDS

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
DECODERS = (
    decode_batch,
    protocol.decode_birth,
    protocol.decode_status,
    protocol.decode_heartbeat,
    protocol.decode_ack,
)


def prob(args, expected):
    a_min, a_max, b_min, b_max, lo, hi = args
    ends = (a_min, a_max, b_min, b_max)
    results = (
        (p.prob_deadline(*ends, hi), p.ratio_deadline(*ends, hi)),
        (p.prob_delay(*ends, lo), p.ratio_delay(*ends, lo)),
        (p.prob_within(*ends, hi), p.ratio_within(*ends, hi)),
        (p.prob_between(*ends, lo, hi), p.ratio_between(*ends, lo, hi)),
    )
    for n in range(4):
        value, ratio = results[n]
        other = struct.unpack(">d", bytes.fromhex(expected[n]))[0]
        if value != other and (ratio[1] <= 1 << 53 or abs(value - other) > 4.5e-16 * other):
            return False
    return True


def batch(data, fields):
    data = bytes.fromhex(data)
    readings = decode_batch(data)
    fields_again = cbor.dumps([[getattr(r, f) for f in FIELDS] for r in readings])
    return fields_again == bytes.fromhex(fields) and encode_batch(readings) == data and decode_batch(data) == readings


def message(kind, data):
    data = bytes.fromhex(data)
    return ENCODE[kind](DECODE[kind](data)) == data


def hostile(data, expected):
    results = []
    for decode in DECODERS:
        try:
            decode(bytes.fromhex(data))
            results.append(1)
        except WireError:
            results.append(0)
    return results == expected


CHECKS = {"prob": prob, "batch": batch, "message": message, "bytes": hostile}
counts = {}
with open(sys.argv[1]) as cases:
    for line in cases:
        case = json.loads(line)
        counts[case[0]] = counts.get(case[0], 0) + 1
        try:
            if not CHECKS[case[0]](*case[1:]):
                print("DIFFERS", line)
        except Exception as error:
            print("RAISED", type(error).__name__, error, line)
print(" ".join([f"{name}={counts[name]}" for name in sorted(counts)]))
