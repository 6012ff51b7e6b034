"""wire.cddl describes what the decoders accept, according to two tools; the table lists what a tool misses."""

import cbor2
import pytest

import whenabouts_protocol as protocol
from support.files.schema import pycddl_accepts, zcbor_accepts
from support.files.vectors import rows
from whenabouts_protocol.errors import WireError
from whenabouts_protocol.messages.batch import decode_batch

DECODERS = {
    "batch": decode_batch,
    "birth": protocol.decode_birth,
    "status": protocol.decode_status,
    "heartbeat": protocol.decode_heartbeat,
    "ack": protocol.decode_ack,
}
GOLDEN = [pytest.param("batch", row["hex"], id=row["name"]) for row in rows("batches.json")] + [
    pytest.param(row["type"], row["hex"], id=row["name"]) for row in rows("messages.json")
]
NAMED = {row["name"]: cbor2.loads(bytes.fromhex(row["hex"])) for row in rows("batches.json") + rows("messages.json")}


def damaged(name, path, value):
    """The golden message `name` as CBOR with `value` at `path`, or without that entry if value is `...`."""
    message = cbor2.loads(cbor2.dumps(NAMED[name]))
    place = message
    for step in path[:-1]:
        place = place[step]
    if value is ...:
        del place[path[-1]]
    elif isinstance(place, list) and path[-1] == len(place):
        place.append(value)
    else:
        place[path[-1]] = value
    return cbor2.dumps(message)


ONE = "one reading"
BOTH = {"pycddl", "zcbor"}
# what breaks the schema, rule, message, place, value, tools that see it; the decoder refuses every one of them.
BROKEN = [
    ("another schema", "batch", ONE, [0], 1, BOTH),
    ("no boot", "batch", ONE, [3], ..., BOTH),
    ("negative boot", "batch", ONE, [3], -1, BOTH),
    ("boot of 2^63", "batch", ONE, [3], 1 << 63, BOTH),
    ("text as base time", "batch", ONE, [5], "0", BOTH),
    ("site too long", "batch", ONE, [1], "x" * 65, BOTH),
    ("wildcard as site", "batch", ONE, [1], "+", set()),
    ("negative count in a clock", "batch", ONE, [6, 0], [-1], BOTH),
    ("65 processes", "batch", ONE, [6, 0], [0] * 65, BOTH),
    ("bytes as a clock", "batch", ONE, [6, 0], b"\x01", {"zcbor"}),
    ("kind 5", "batch", ONE, [7, 0, 1], 5, BOTH),
    ("empty unit", "batch", ONE, [7, 0, 2], "", BOTH),
    ("stream of two entries", "batch", ONE, [7, 0], ["x", 0], BOTH),
    ("number as key", "batch", ONE, [8, 0], 5, {"zcbor"}),
    ("empty bytes as key", "batch", ONE, [8, 0], b"", BOTH),
    ("number as attribute name", "batch", ONE, [9, 0, 0], 1, {"zcbor"}),
    ("no rows", "batch", ONE, [10], [], BOTH),
    ("row of seven", "batch", ONE, [10, 0], [0] * 7, BOTH),
    ("bytes as a row", "batch", ONE, [10, 0], bytes(8), {"zcbor"}),
    ("map as a row", "batch", ONE, [10, 0], dict.fromkeys(range(8), 0), {"zcbor"}),
    ("true as a step", "batch", ONE, [10, 0, 0], True, BOTH),
    ("float as a step of time", "batch", ONE, [10, 0, 1], 0.0, BOTH),
    ("negative width", "batch", ONE, [10, 0, 2], -1, BOTH),
    ("negative index", "batch", ONE, [10, 0, 3], -1, BOTH),
    ("index outside its table", "batch", ONE, [10, 0, 3], 1, set()),
    ("clock state 3", "batch", ONE, [10, 0, 5], 3, BOTH),
    ("array as value", "batch", ONE, [10, 0, 7], [], BOTH),
    ("null as attribute", "batch", ONE, [10, 0, 9], None, BOTH),
    ("more attributes than names", "batch", ONE, [10, 0, 11], 1, set()),
    ("NaN as value", "batch", ONE, [10, 0, 7], float("nan"), set()),
    ("stream without delay", "birth", "birth", [4, 0], ["x", 0, None], BOTH),
    ("negative delay", "birth", "birth", [4, 0, 3], -1, BOTH),
    ("negative part of a stamp", "birth", "birth with the parts of its stamps", [4, 0, 5], -1, BOTH),
    ("text as a part of a stamp", "birth", "birth with the parts of its stamps", [4, 1, 6], "16 ms", {"zcbor"}),
    ("float as the last part of a stamp", "birth", "birth with the parts of its stamps", [4, 2, 8], 1.5, {"zcbor"}),
    ("number as group", "birth", "birth", [5], 1, {"zcbor"}),
    ("empty name in the view", "birth", "birth", [6, 0], "", BOTH),
    ("65 in the view", "birth", "birth", [6], ["x"] * 65, BOTH),
    ("no build", "birth", "birth", [7], ..., BOTH),
    ("condition 3", "status", "status online", [4], 3, BOTH),
    ("true as condition", "status", "status online", [4], True, BOTH),
    ("text as frontier", "heartbeat", "heartbeat", [4], "now", BOTH),
    ("negative seq published", "heartbeat", "heartbeat", [5, 0, 1], -1, BOTH),
    ("first beyond last + 1", "heartbeat", "heartbeat", [5, 0, 1], 80_002, set()),
    ("a boot kept twice", "heartbeat", "heartbeat", [5], [[7, 1, 1], [7, 1, 2]], set()),
    ("boot without last", "heartbeat", "heartbeat", [5, 0], [7, 1], BOTH),
    ("boots as a map", "heartbeat", "heartbeat", [5], {7: 1}, BOTH),
    ("negative bound", "heartbeat", "heartbeat", [7], -1, BOTH),
    ("no spool", "heartbeat", "heartbeat", [8], ..., BOTH),
    (
        "part of a stamp too few",
        "birth",
        "birth with the parts of its stamps",
        [4, 0],
        ["x", 0, None, 1, 1, 2, 3, 4],
        BOTH,
    ),
    # zcbor takes what does not fit an optional key as an unknown one; pycddl lets a number stand for a text.
    ("number as source of the clock", "heartbeat", "heartbeat without a certificate", [12], 1, set()),
    ("empty source of the clock", "heartbeat", "heartbeat without a certificate", [12], "", {"pycddl"}),
    ("long source of the clock", "heartbeat", "heartbeat without a certificate", [12], "x" * 257, {"pycddl"}),
    ("null as source of the clock", "heartbeat", "heartbeat without a certificate", [12], None, {"pycddl"}),
    ("negative end of the certificate", "heartbeat", "heartbeat", [13], -1, {"pycddl"}),
    ("null as end of the certificate", "heartbeat", "heartbeat", [13], None, {"pycddl"}),
    ("boot without seq", "ack", "ack", [4, 0], [7], BOTH),
    ("a boot twice", "ack", "ack", [4], [[7, 1], [7, 2]], set()),
    ("nothing landed", "ack", "ack", [4], None, BOTH),
]


@pytest.mark.parametrize(("rule", "hexed"), GOLDEN)
def test_golden_messages_fit_the_schema(rule, hexed):
    """Both tools accept every golden vector."""
    data = bytes.fromhex(hexed)
    assert pycddl_accepts(rule, data)
    assert zcbor_accepts(rule, data)


@pytest.mark.parametrize(("rule", "name", "path", "value", "seen_by"), [pytest.param(*b[1:], id=b[0]) for b in BROKEN])
def test_messages_that_break_the_schema_are_refused(rule, name, path, value, seen_by):
    """The decoder refuses every one; the tools refuse those that the table lists for them."""
    data = damaged(name, path, value)
    with pytest.raises(WireError):
        DECODERS[rule](data)
    assert {
        tool for tool, accepts in (("pycddl", pycddl_accepts), ("zcbor", zcbor_accepts)) if not accepts(rule, data)
    } == seen_by


@pytest.mark.parametrize(
    ("rule", "name"),
    [("batch", ONE), ("birth", "birth"), ("status", "status online"), ("heartbeat", "heartbeat"), ("ack", "ack")],
)
def test_unknown_keys_are_allowed_and_ignored(rule, name):
    """Additions of a later minor version under new keys fit the schema and do not change what is read."""
    more = cbor2.dumps({**NAMED[name], 90: [1, {"new": None}], 91: "x"})
    assert pycddl_accepts(rule, more)
    assert zcbor_accepts(rule, more)
    assert DECODERS[rule](more) == DECODERS[rule](cbor2.dumps(NAMED[name]))
