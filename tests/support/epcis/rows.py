"""Rows of the landing and of results, with random keys, places and stamps."""

from random import Random
from typing import Any

from whenabouts_cloud.epc import EpcError, epc

T_US = 1_795_000_000_000_000
ODD_KEYS = ("badge 7", "1e400", "inf", 'E2"\\\t,é', "a/b?c#d", "%41", "E280116060000000")
URIS = (
    "urn:epc:id:sgln:0614141.00777.0", "urn:epc:id:sgln:0614141.00777.a%2Fb", "urn:epc:id:gid:952056.2718.1414",
    "https://id.gs1.org/414/0614141007773/254/9", "https://acme.example/gtin/0614141007773", "https://acme.example/ABCDEFGHIJ",
    "https://acme.example/dock?x=1#y", "urn:epc:id:grai:241935353601..17", "urn:epc:idpat:sgtin:0614141.812345.*",
    "urn:uuid:4c1d", "https://id.gs1.org/01/614141123452/21/7", "urn:epc:id:sgtin:0614141.812345.6789",
    "urn:epc:id:sgtin:1.2.3",
)  # fmt: skip
# Header and number of bits of each kind of EPC.
KINDS = {
    0x2C: 96, 0x2D: 96, 0x2E: 96, 0x30: 96, 0x31: 96, 0x32: 96, 0x33: 96, 0x34: 96, 0x35: 96, 0x36: 208, 0x37: 176,
    0x38: 208, 0x39: 208, 0x3C: 96, 0x3D: 192, 0x3E: 176, 0x3F: 96, 0x40: 112, 0x41: 224,
}  # fmt: skip
SIGNS = "!\"%&'()*+,-./:;<=>?_azAZ09"


def epc_hex(rng: Random) -> str:
    """Digits of an EPC that has a name, of any kind; a third are serial numbers with signs."""
    while True:
        header, bits = rng.choice(list(KINDS.items()))
        number = header << (bits - 8) | rng.getrandbits(bits - 8)
        if header in (0x2D, 0x2E, 0x31):  # nothing is in the last three bytes
            number = number >> 24 << 24
        if rng.random() < 0.33:
            number = _with_signs(rng)
            bits = 208
        try:
            return epc(f"{number:0{bits // 4}X}").hex
        except EpcError:
            continue


def _with_signs(rng: Random) -> int:
    """An SGTIN-198 whose serial number is of signs."""
    serial = "".join(f"{ord(rng.choice(SIGNS)):07b}" for _ in range(rng.randint(1, 20))).ljust(140, "0")
    head = f"{0x36:08b}{rng.randrange(8):03b}{5:03b}{rng.randrange(10**7):024b}{rng.randrange(10**6):020b}"
    return int(head + serial, 2) << 10


def key(rng: Random) -> str | None:
    """An EPC, something else, or none."""
    return epc_hex(rng) if rng.random() < 0.6 else rng.choice([*ODD_KEYS, *URIS, None])


def place(rng: Random) -> dict[str, Any]:
    """The identity, stream and stamp of a reading; stamps may end in all nines."""
    t_min = T_US + rng.choice([rng.randrange(10**9), rng.randrange(1000) * 1_000_000 + 999_500 + rng.randrange(500)])
    width = rng.choice([0, 1, 499, 999, rng.randrange(10**7), rng.randrange(10**14)])
    return {
        "site": rng.choice(["hall", "Lager Süd,1"]), "gateway": rng.choice(["g-1", "g:2"]), "boot": rng.randrange(1 << 48),
        "seq": rng.randrange(1 << 40), "stream": rng.choice(["dock/tags", "00/12345", "shelf 1", *URIS]),
        "t_min": t_min, "t_max": t_min + width,
    }  # fmt: skip


def landed(rng: Random, **more: Any) -> dict[str, Any]:
    """A row of the landing that is a read or one end of a visit."""
    kind, value, attrs = rng.choice(
        [("tag", None, None), ("tag", '"enter"', '{"visit": 0}'), ("absent", '"leave"', '{"visit": 7, "reads": 3}')]
    )
    state = rng.choice(["bounded", "free-running", "unbounded"])
    row = place(rng) | {"kind": kind, "value": value, "unit": None, "attrs": attrs, "clock_state": state}
    return row | {"key": key(rng) or "tag", "vclock": [], "landed_us": T_US} | more


def pair(rng: Random, **more: Any) -> dict[str, Any]:
    """A row of pairs, one in five of a reading without a partner."""
    a, b = place(rng), place(rng)
    if rng.random() < 0.2:
        b = dict.fromkeys(b)
    row = {f"{side}_{name}": x for side, one in (("a", a), ("b", b)) for name, x in one.items()}
    chance = None if b["site"] is None else rng.choice([1.0, rng.random()])
    return {"result_id": f"{rng.getrandbits(128):032x}", "rule": rng.choice(["inf", "near"]), "key": key(rng)} | row | {
        "probability": chance
    } | more  # fmt: skip


def match(rng: Random, **more: Any) -> dict[str, Any]:
    """A row of matches."""
    events = [{"name": f"p{n}", **place(rng)} for n in range(rng.randint(1, 4))]
    return {
        "result_id": f"{rng.getrandbits(128):032x}", "rule": "unpaid", "key": key(rng), "status": "match",
        "t_min": min(one["t_min"] for one in events), "t_max": max(one["t_max"] for one in events),
        "probability": rng.choice([None, 1.0, 1e-7, rng.random()]), "events": events,
    } | more  # fmt: skip
