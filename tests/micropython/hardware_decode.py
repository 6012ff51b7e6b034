"""Runs on the board's VM: decode each stream of a file, print the frames as one line of JSON each.

A line of the file: {"name": decoder, "mode": or null, "hex": stream, "cuts": sizes of the successive reads}.
"""

import json
import sys

from whenabouts_hardware.readers.catalogue import decoder, reader


def decode(case):
    """All that a case gives, as plain lists; the last read takes what is left."""
    facts = reader(case["name"])
    lines = decoder(case["name"], mode=case["mode"]) if case["mode"] else decoder(case["name"])
    stream = bytes.fromhex(case["hex"])
    frames = []
    at = 0
    for size in case["cuts"]:
        frames += lines.feed(stream[at : at + size])
        at += size
    frames += lines.feed(stream[at:])
    pending = lines.pending.hex()
    frames += lines.flush()
    return {
        "frames": [
            [f.kind, f.fields, f.ok, f.error, f.fault, f.start, f.end, f.raw.hex(), facts.is_anchor(f)] for f in frames
        ],
        "sightings": [list(sighting) for frame in frames for sighting in facts.sightings(frame)],
        "pending": pending,
        "counters": lines.counters,
    }


if __name__ == "__main__":
    with open(sys.argv[1]) as cases:
        for line in cases:
            print(json.dumps(decode(json.loads(line))))
