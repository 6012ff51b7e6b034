"""Write the golden vectors: messages as hexadecimal with their meaning, and bytes that must be refused with the reason.

    python protocol/vectors/make.py

Run it in a checkout whose packages are installed. The files are the contract between machines and versions: other bytes
for the same meaning are a change of the wire, so review the difference before committing it. Floats are exact in
binary, because a JSON parser on a board may round; text is not escaped, because such a parser decodes an escaped
surrogate pair as two characters.
"""

import json
from pathlib import Path
from typing import Any

from whenabouts_protocol import (
    Ack,
    Birth,
    Heartbeat,
    Status,
    cbor,
    encode_ack,
    encode_birth,
    encode_heartbeat,
    encode_status,
)
from whenabouts_protocol.messages.batch import encode_batch
from whenabouts_protocol.messages.compiled_rule import CompiledRule, RuleSide, encode_rules
from whenabouts_protocol.reading import FIELDS, INT64_MAX, INT64_MIN, TIME_US_MAX, Reading

HERE = Path(__file__).resolve().parent
EPOCH_US = 1_790_000_000_000_000


def reading(**fields: Any) -> Reading:
    """A tag reading at the dock, with the given fields replaced."""
    usual: dict[str, Any] = {
        "site": "warehouse", "gateway": "dock-1", "boot": 7, "seq": 0, "stream": "dock/tags", "kind": "tag",
        "t_min": EPOCH_US, "t_max": EPOCH_US + 7421,
    }  # fmt: skip
    return Reading(**{**usual, **fields})


def fifty() -> list[Reading]:
    """A typical batch of a portal: seven tags in turn, two attributes, a clock of eight gateways that changes once."""
    return [
        reading(
            seq=1000 + n,
            key=f"E28011606000020{n % 7:09X}",
            value=-61 - n % 5,
            unit="dB[mW]",
            attrs={"antenna": n % 4 + 1, "phase": 17 * n % 180},
            t_min=EPOCH_US + 65_000 * n,
            t_max=EPOCH_US + 65_000 * n + 7421,
            vclock=(3, 0, 12, 400, 70_000, 0, 5, 1) if n < 25 else (3, 0, 12, 401, 70_000, 0, 5, 1),
        )
        for n in range(50)
    ]


def batches() -> dict[str, list[Reading]]:
    """Batches by name."""
    return {
        "one reading": [reading(key="E2801160600002054CC1A0F0", attrs={"antenna": 1, "rssi": -61})],
        "nothing but what must be": [reading(site="s", gateway="g", boot=0, stream="x", t_min=0, t_max=0)],
        "fifty readings of seven tags": fifty(),
        "every kind": [
            reading(seq=0, kind="tag", key="04A1"),
            reading(seq=1, kind="measure", value=21.5, unit="Cel", stream="cold-room"),
            reading(seq=2, kind="state", value=True, stream="door"),
            reading(seq=3, kind="absent", key="04A1", value=None),
            reading(seq=4, kind="gap", value="spool full", attrs={"lost": 12}),
        ],
        "every value": [
            reading(seq=n, value=value, kind="measure")
            for n, value in enumerate(
                [
                    None,
                    True,
                    False,
                    0,
                    23,
                    24,
                    255,
                    256,
                    65535,
                    65536,
                    4294967295,
                    4294967296,
                    INT64_MAX,
                    -1,
                    -24,
                    -25,
                    -256,
                    -257,
                    INT64_MIN,
                    0.0,
                    -0.5,
                    1e300,
                    "",
                    "text",
                    "Grüße 😀",
                ]
            )
        ],
        "attributes of every type, in any order": [
            reading(seq=0, attrs={"z": 1, "a": -1, "Ä": "ä", "b": False, "c": 0.25, "aa": ""}),
            reading(seq=1, attrs={"a": 2, "b": True}),
            reading(seq=2),
        ],
        "text outside ASCII": [
            reading(
                site="Köln", gateway="ворота-2", stream="気温/入口", unit="°C", key="ключ", value="\u0000\U0010ffff"
            )
        ],
        "keys that are and are not hexadecimal": [
            reading(seq=n, key=key) for n, key in enumerate(["E200", "e200", "E20", "00", "E2 00", "0E200", "ABCDEFGH"])
        ],
        "times before 1970 and the furthest ones": [
            reading(seq=0, t_min=-5_000_000, t_max=-1),
            reading(seq=1, t_min=-1, t_max=0),
            reading(seq=2, t_min=1 - TIME_US_MAX, t_max=TIME_US_MAX - 1, clock_state="unbounded"),
            reading(seq=3, t_min=TIME_US_MAX - 1, t_max=TIME_US_MAX - 1),
            reading(seq=4, t_min=1 - TIME_US_MAX, t_max=1 - TIME_US_MAX, clock_state="free-running"),
        ],
        "gaps and disorder": [
            reading(seq=12, t_min=EPOCH_US + 30, t_max=EPOCH_US + 40),
            reading(seq=10, t_min=EPOCH_US + 50, t_max=EPOCH_US + 50),
            reading(seq=11, t_min=EPOCH_US, t_max=EPOCH_US + 90),
            reading(seq=INT64_MAX, t_min=EPOCH_US, t_max=EPOCH_US),
            reading(seq=0, t_min=EPOCH_US, t_max=EPOCH_US),
        ],
        "largest numbers": [
            reading(boot=INT64_MAX, seq=INT64_MAX, vclock=(INT64_MAX, 0)),
            reading(boot=INT64_MAX, seq=INT64_MAX, vclock=()),
        ],
    }


def messages() -> "dict[str, tuple[str, Any, bytes]]":
    """The other messages by name: type, message, bytes."""
    view = ["dock-1", "dock-2", "ворота-2"]
    streams: list[tuple[Any, ...]] = [
        ("dock/tags", "tag", None, 2_000_000, 300_000),
        ("cold-room", "measure", "Cel", 0, INT64_MAX),
    ]
    births = {
        "birth": Birth("warehouse", "dock-1", 7, streams, "yard", view, "0.1.0"),
        "birth with the parts of its stamps": Birth(
            "warehouse",
            "dock-1",
            7,
            [
                ("dock/tags", "tag", None, 5_000_000, 5_000_000, 1_000_000, 16_000, 22_222, 20_000),
                ("shelf/tags", "tag", None, 5_000_000, 5_000_000, None, 1277, 1),
                ("gate/tags", "tag", None, 5_000_000, 5_000_000, 0, None, None, INT64_MAX),
                ("dock/presence", "tag", None, 5_000_000, 10_000_000),
            ],
        ),
        "birth of a lone gateway without streams": Birth("warehouse", "dock-1", 0, []),
    }
    statuses = {
        f"status {condition}": Status("warehouse", "dock-1", 7, condition)
        for condition in ("online", "offline", "stopped")
    }
    heartbeats = {
        "heartbeat": Heartbeat(
            "warehouse", "dock-1", 7, EPOCH_US, {7: (1000, 1049), 6: (80_001, 80_000)}, "bounded", 1250, 12, 4096
        ),
        "heartbeat with what was lost": Heartbeat(
            "warehouse", "dock-1", 7, EPOCH_US, {7: (1000, 1049)}, "bounded", 1250, 12, 4096, 300, INT64_MAX
        ),
        "heartbeat of a gateway that counts only refused readings": Heartbeat(
            "warehouse", "dock-1", 7, None, {}, "unbounded", None, 12, 4096, 0
        ),
        "heartbeat with source of the clock and end of the certificate": Heartbeat(
            "warehouse", "dock-1", 7, EPOCH_US, {7: (0, 49)}, "bounded", 1250, 12, 4096, 0, 0, "chrony", 1_830_000_000
        ),
        "heartbeat without a certificate": Heartbeat(
            "warehouse", "dock-1", 7, None, {}, "unbounded", None, clock_source="sntp"
        ),
        "heartbeat without a watermark": Heartbeat("warehouse", "dock-1", 0, None, {}, "unbounded", None),
    }
    acks = {
        "ack": Ack("warehouse", "dock-1", {7: 1049, 6: 80_000, INT64_MAX: 0}),
        "ack of nothing": Ack("warehouse", "dock-1", {}),
    }
    return {
        **{name: ("birth", m, encode_birth(m)) for name, m in births.items()},
        **{name: ("status", m, encode_status(m)) for name, m in statuses.items()},
        **{name: ("heartbeat", m, encode_heartbeat(m)) for name, m in heartbeats.items()},
        **{name: ("ack", m, encode_ack(m)) for name, m in acks.items()},
    }


def refused() -> "list[tuple[str, str, bytes]]":
    """(fault, part of the reason given, bytes); decoders of all messages refuse the first ones alike."""
    good = encode_batch([reading(key="E200", attrs={"antenna": 1})])
    head = cbor.loads(good)
    row = head[10][0]

    def batch(**changed: Any) -> bytes:
        return cbor.dumps({**head, **{int(k[1:]): v for k, v in changed.items()}})

    def with_row(*fields: Any) -> bytes:
        return batch(k10=[list(fields)])

    return [
        ("empty", "end inside an item", b""),
        ("cut short", "end inside an item", good[:-1]),
        ("a byte too many", "bytes after its end", good + b"\x00"),
        ("no map", "expected a map", bytes.fromhex("80")),
        ("a newer schema", "expected 2", batch(k0=3)),
        ("no schema", "expected 2", bytes.fromhex("a0")),
        ("a tag", "found a tag", bytes.fromhex("c11a00000000")),
        ("indefinite length", "indefinite", bytes.fromhex("bfff")),
        ("an array of 2^63 items", "end inside an item", bytes.fromhex("9b8000000000000000")),
        ("text of 2^64 - 1 bytes", "end inside an item", bytes.fromhex("7bffffffffffffffff")),
        ("an integer of 2^63", "more than 64 bits signed", bytes.fromhex("1b8000000000000000")),
        ("an integer of -2^63 - 1", "more than 64 bits signed", bytes.fromhex("3b8000000000000000")),
        ("not a number", "NaN or infinity", bytes.fromhex("fb7ff8000000000000")),
        ("infinity in half precision", "NaN or infinity", bytes.fromhex("f97c00")),
        ("undefined", "simple value", bytes.fromhex("f7")),
        ("seven levels of nesting", "nesting deeper", bytes.fromhex("8181818181818100")),
        ("a key twice", "a second time", bytes.fromhex("a200010001")),
        ("a key of bytes", "expected int or text", bytes.fromhex("a1410001")),
        ("a surrogate in UTF-8", "no UTF-8", bytes.fromhex("63eda080")),
        ("an overlong zero in UTF-8", "no UTF-8", bytes.fromhex("62c080")),
        ("beyond U+10FFFF in UTF-8", "no UTF-8", bytes.fromhex("64f4908080")),
        ("bytes that begin no UTF-8", "no UTF-8", bytes.fromhex("61ff")),
        ("no readings", "expected 1 to 2000", batch(k10=[])),
        ("rows that are no array", "no array under key 10", batch(k10={})),
        ("a map as a row", "no array of at least 8", batch(k10=[dict.fromkeys(range(8), 0)])),
        ("bytes as a row", "no array of at least 8", batch(k10=[bytes(8)])),
        ("a row of seven", "no array of at least 8", with_row(*row[:7])),
        ("true for a step of the number", "no integer", with_row(True, *row[1:])),
        ("a float for a step of time", "no integer", with_row(0, 1.0, *row[2:])),
        ("an end before the beginning", "t_min, t_max", with_row(0, 0, -1, *row[3:])),
        ("a time beyond the range", "t_min, t_max", batch(k5=INT64_MAX)),
        ("a number below 0", "seq", with_row(-1, *row[1:])),
        ("a number above 2^63 - 1", "seq", batch(k4=INT64_MAX, k10=[row, row])),
        ("a stream that is not in the table", "index 1", with_row(0, 0, 0, 1, *row[4:])),
        ("a stream from the end of the table", "index -1", with_row(0, 0, 0, -1, *row[4:])),
        ("true for an index", "index True", with_row(*row[:4], True, *row[5:])),
        ("a clock state that does not exist", "index 3", with_row(*row[:5], 3, *row[6:])),
        ("a list as value", "value", with_row(*row[:7], [], *row[8:])),
        ("an attribute without a name", "2 attributes for 1 names", with_row(*row, 5)),
        ("null as attribute", "attrs", with_row(*row[:9], None)),
        ("an attribute name twice", "name twice", batch(k9=[["a", "a"]], k10=[[*row[:9], 1, 2]])),
        ("a number as attribute name", "no array of text", batch(k9=[[1]])),
        ("a stream without unit", "[name, kind, unit]", batch(k7=[["x", 0]])),
        ("a kind that does not exist", "index 5", batch(k7=[["x", 5, None]])),
        ("an empty key", "batch keys", batch(k8=[""])),
        ("a key of 257 bytes", "batch keys", batch(k8=["x" * 257])),
        ("bytes as a clock", "batch clocks", batch(k6=[b"\x01"])),
        ("a count below 0", "batch clocks", batch(k6=[[-1]])),
        ("65 processes", "batch clocks", batch(k6=[[0] * 65])),
        ("a wildcard as gateway", "gateway", batch(k2="+")),
        ("two levels as site", "site", batch(k1="a/b")),
        ("no boot", "boot", cbor.dumps({k: v for k, v in head.items() if k != 3})),
        ("text for the first number", "no integers", batch(k4="0")),
    ]  # fmt: skip


def rules() -> "dict[str, list[CompiledRule]]":
    """Compiled rules of a gateway by name."""
    span = 1 << 50
    dock, shelf = RuleSide(["dock/tags"], 20_000, 300_000), RuleSide(["shelf/1", "shelf/2", "気温"], 0, 5_000_000)
    return {
        "no rules": [],
        "within, by key": [
            CompiledRule("$rule/handover", -10_000_000, 10_000_000, 4, 5, True, 100_000, dock, shelf),
        ],
        "one to each other side, any key": [
            CompiledRule("$rule/after", 1, 3_600_000_000, 999_999_999_999, 10**12, False, 1, dock, shelf),
            CompiledRule("$rule/before", -5, -5, 1, 1, False, 1_000_000, shelf, dock),
        ],
        "a stream with itself, furthest limits": [
            CompiledRule(
                "$rule/x", -span, span, 1, 10**12, False, 2, RuleSide(["x"], span, span), RuleSide(["x"], 0, 0)
            ),
        ],
    }


def refused_rules() -> "list[tuple[str, str, bytes]]":
    """(fault, part of the reason given, bytes) for the message of rules."""
    good = cbor.loads(encode_rules("warehouse", "dock-1", rules()["within, by key"]))
    row = good[4][0]
    side = row[6]

    def message(*rows: Any) -> bytes:
        return cbor.dumps({**good, 4: list(rows)})

    def with_field(at: int, value: Any) -> bytes:
        return message([*row[:at], value, *row[at + 1 :]])

    def with_side(at: int, value: Any) -> bytes:
        return with_field(6, [*side[:at], value, *side[at + 1 :]])

    return [
        ("empty", "end inside an item", b""),
        ("a newer schema", "expected 2", cbor.dumps({**good, 0: 3})),
        ("a wildcard as gateway", "gateway", cbor.dumps({**good, 2: "+"})),
        ("no rules", "no array of at most 32", cbor.dumps({k: v for k, v in good.items() if k != 4})),
        ("33 rules", "no array of at most 32", message(*[row] * 33)),
        ("a rule twice", "twice", message(row, row)),
        ("a map as a rule", "no array of at least 8", message({})),
        ("a rule of seven", "no array of at least 8", message(row[:7])),
        ("a derived stream without its prefix", "begins $rule/", with_field(0, "handover")),
        ("a derived stream of 257 bytes", "begins $rule/", with_field(0, "$rule/" + "x" * 251)),
        ("a float as a limit", "found float", with_field(1, -1.0)),
        ("a limit beyond 2^50", "upper limit", with_field(2, (1 << 50) + 1)),
        ("the upper limit below the lower", "upper limit", with_field(2, row[1] - 1)),
        ("a number as confidence", "not [p, q]", with_field(3, 1)),
        ("a confidence of 0", "numerator", with_field(3, [0, 5])),
        ("a confidence above 1", "numerator", with_field(3, [6, 5])),
        ("a confidence over 0", "denominator", with_field(3, [0, 0])),
        ("a denominator of 10^12 + 1", "denominator", with_field(3, [1, 10**12 + 1])),
        ("true as numerator", "found bool", with_field(3, [True, 5])),
        ("1 as key flag", "key flag", with_field(4, 1)),
        ("a limit of no readings", "limit of readings", with_field(5, 0)),
        ("a limit of more readings than a gateway holds", "limit of readings", with_field(5, 1_000_001)),
        ("a text as a side", "no array of streams", with_field(6, "dock/tags")),
        ("a side of two", "no array of streams", with_field(7, side[:2])),
        ("a side without streams", "1 to 32 stream names", with_side(0, [])),
        ("33 streams", "1 to 32 stream names", with_side(0, [str(n) for n in range(33)])),
        ("a number as stream", "1 to 32 stream names", with_side(0, [1])),
        ("a stream twice", "a stream twice", with_side(0, ["x", "x"])),
        ("a derived stream as input", "found a derived stream", with_side(0, ["$rule/x"])),
        ("the shortest above the longest", "shortest stamp", with_side(1, 300_001)),
        ("a negative length", "shortest stamp", with_side(1, -1)),
        ("a length beyond 2^50", "longest stamp", with_side(2, (1 << 50) + 1)),
    ]


def rule_fields(rule: CompiledRule) -> dict[str, Any]:
    """The fields of a rule in the form of JSON."""
    fields = {name: getattr(rule, name) for name in rule.__slots__}
    for name in "ab":
        fields[name] = {field: getattr(fields[name], field) for field in fields[name].__slots__}
    return fields


def fields_of(message: Any) -> dict[str, Any]:
    """The fields of a reading or message in the form of JSON: maps of boots become sorted lists of entries."""
    names = FIELDS if isinstance(message, Reading) else message.__slots__
    fields = {name: getattr(message, name) for name in names}
    for name in ("published", "landed"):
        if name in fields:
            fields[name] = sorted([list(pair) for pair in fields[name].items()])
    return fields


def documents() -> dict[str, str]:
    """The text of each file by file name."""
    batch_rows = [
        {"name": name, "hex": encode_batch(some).hex(), "readings": [fields_of(r) for r in some]}
        for name, some in batches().items()
    ]
    message_rows = [
        {"name": name, "type": kind, "hex": data.hex(), "fields": fields_of(m)}
        for name, (kind, m, data) in messages().items()
    ]
    refused_rows = [{"name": name, "reason": reason, "hex": data.hex()} for name, reason, data in refused()]
    rules_rows = [
        {
            "name": name,
            "hex": encode_rules("warehouse", "ворота-2", some).hex(),
            "site": "warehouse",
            "gateway": "ворота-2",
            "rules": [rule_fields(r) for r in some],
        }
        for name, some in rules().items()
    ]
    refused_rules_rows = [{"name": name, "reason": reason, "hex": data.hex()} for name, reason, data in refused_rules()]
    return {
        "batches.json": _lines(batch_rows),
        "messages.json": _lines(message_rows),
        "refused.json": _lines(refused_rows),
        "rules.json": _lines(rules_rows),
        "refused_rules.json": _lines(refused_rules_rows),
    }


def _lines(rows: list[dict[str, Any]]) -> str:
    """A JSON array with one line for each member of each row, and one for each reading."""
    texts = []
    for row in rows:
        members = []
        for name, value in row.items():
            if name == "readings":
                inner = ",\n   ".join(json.dumps(r, sort_keys=True, ensure_ascii=False) for r in value)
                members.append(f'"readings": [\n   {inner}]')
            else:
                members.append(f"{json.dumps(name)}: {json.dumps(value, sort_keys=True, ensure_ascii=False)}")
        texts.append(" {" + ",\n  ".join(members) + "}")
    return "[\n" + ",\n".join(texts) + "\n]\n"


def main() -> None:
    """Write the files into the folder of this script."""
    for name, text in documents().items():
        (HERE / name).write_text(text, encoding="utf-8")
        print(f"{name}: {len(text)} characters")


if __name__ == "__main__":
    main()
