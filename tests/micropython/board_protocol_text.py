"""Texts that a board must refuse although its interpreter accepts them, and clocks and topics as on CPython."""

import sys

from whenabouts_protocol import (
    Interval,
    Reading,
    WireError,
    decode_batch,
    encode_batch,
    parse_topic,
    topic,
)
from whenabouts_protocol.utf8 import LAX, text_of, utf8

print("implementation", sys.implementation.name, "lax", LAX)

refused = 0
for data in (
    b"\xed\xa0\x80",
    b"\xc0\x80",
    b"\xe0\x80\x80",
    b"\xf0\x80\x80\x80",
    b"\xf4\x90\x80\x80",
    b"\xff",
    b"\xe2\x82",
):
    try:
        text_of(data)
    except UnicodeError:
        refused += 1
print("refused", refused)

try:
    utf8("a" + chr(0xD800))
    print("surrogate went through")
except UnicodeError:
    print("surrogate refused")

usual = {"site": "s", "gateway": "g", "boot": 1, "seq": 0, "stream": "x", "kind": "tag", "t_min": 0, "t_max": 1}
wrong = 0
FIELDS = (
    ("site", "a/b"), ("gateway", "a\x85"), ("boot", True), ("seq", 1.0), ("kind", "Tag"), ("key", b"E20"),
    ("key", chr(0xD800)), ("value", [1]), ("value", 1 << 63), ("attrs", {1: 1}), ("attrs", {"a": None}),
    ("attrs", [5]), ("vclock", (True,)), ("vclock", b"\x01"), ("t_min", 2), ("t_max", 1 << 62),
    ("clock_state", None), ("unit", ""), ("stream", None),
)  # fmt: skip
for field, value in FIELDS:
    reading = Reading(**usual)
    setattr(reading, field, value)
    try:
        encode_batch([reading])
        print("accepted", field, value)
    except WireError:
        wrong += 1
print("wrong", wrong, "of", len(FIELDS))

attrs = {}
for n in range(20):
    attrs[f"name-{n * 7919 % 20}"] = n
names = sorted(attrs)
again = {}
for name in names:
    again[name] = attrs[name]
same = encode_batch([Reading(attrs=attrs, **usual)]) == encode_batch([Reading(attrs=again, **usual)])
print("order of a map does not matter", same)
print("back", decode_batch(encode_batch([Reading(attrs=attrs, **usual)]))[0].attrs == attrs)

print(Interval(100, 140).widened(before_us=10, after_us=5))
print(parse_topic(topic("warehouse", "dock-1", "obs")), parse_topic("wa/2/a/b/obs/x"))
