"""The targets of the fuzzer: for each kind of input a way to draw it, and a check with the properties that must hold.

A check returns True if the input was accepted, and False if it was refused in the way that the documentation names. Any
exception from it is a finding. Accepted inputs become seeds, so that mutations add up.
"""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import cbor2

import whenabouts_protocol as protocol
from fuzz.mutation import BYTES_MAX, mutated_bytes, mutated_structure, mutated_text
from support.files.reader_frames import published
from support.files.vectors import rows
from support.paths import REPOSITORY
from whenabouts_cloud.ingest.bridge import Bridge
from whenabouts_cloud.ingest.landing_writer import Landing
from whenabouts_cloud.language.errors import RuleError
from whenabouts_cloud.rules.parse import parse_rules
from whenabouts_edge.group.peers import PeerError, decode_state
from whenabouts_hardware import READERS, Decoder
from whenabouts_hardware.readers import em4100, m6e_frames, pn532_frames, uhfreader18, yrm100
from whenabouts_protocol import Reading, WireError, cbor
from whenabouts_protocol.group_state import attrs_of
from whenabouts_protocol.messages.batch import MAX_MESSAGE_BYTES, encode_batch
from whenabouts_protocol.messages.compiled_rule import decode_rules, encode_rules

SEEDS_MAX = 400
MEMORY = Path("/dev/shm")
LEAVES = ("obs", "heartbeat", "birth", "status", "ack", "", "x/y", "rules")

Draw = Callable[[Random], bytes]
Check = Callable[[bytes], bool]


@dataclass
class Target:
    """One kind of input, with the limits of a check: time and traced memory, each fixed plus a share per byte."""

    name: str
    seeds: list[bytes]
    mutate: Callable[[Random, list[bytes]], bytes]
    check: Check
    share: float = 1.0  # of the inputs of a run, beside other targets
    fixed_s: float = 0.25
    fixed_bytes: int = 300_000
    bytes_per_byte: int = 120
    own: int = field(init=False)

    def __post_init__(self) -> None:
        self.own = len(self.seeds)

    def draw(self, rng: Random) -> bytes:
        """The next input."""
        return self.mutate(rng, self.seeds)

    def learn(self, rng: Random, data: bytes) -> None:
        """Take an accepted input as a seed, in place of an older one if there are many."""
        if len(data) > BYTES_MAX:
            return
        if len(self.seeds) < self.own + SEEDS_MAX:
            self.seeds.append(data)
        elif rng.random() < 0.02:
            self.seeds[rng.randrange(self.own, len(self.seeds))] = data


# Messages.


def mutated_message(rng: Random, seeds: list[bytes]) -> bytes:
    """A message changed in its structure, rarely in its bytes."""
    data = rng.choice(seeds)
    if rng.random() < 0.75:
        try:
            data = cbor2.dumps(mutated_structure(rng, cbor2.loads(data), cbor2.loads(rng.choice(seeds))))
        except (cbor2.CBORError, TypeError, ValueError, KeyError, RecursionError, OverflowError):
            return mutated_bytes(rng, data)  # not every change has an encoding
        if rng.random() < 0.9:
            return data
    return mutated_bytes(rng, data)


def decoding(decode: Callable[[bytes], Any], encode: Callable[[Any], bytes]) -> Check:
    """Bytes are refused by WireError, or give a value that comes back from its own bytes."""

    def check(data: bytes) -> bool:
        try:
            value = decode(data)
        except WireError:
            return False
        if len(data) < MAX_MESSAGE_BYTES // 4:  # short floats grow when they are encoded again
            again = encode(value)
            back = decode(again)
            assert back == value, f"found {back!r}, expected {value!r}"
            assert encode(back) == again, "equal values have different bytes"
        return True

    return check


def check_state(data: bytes) -> bool:
    """A state message is refused by PeerError, or is of the gateway whose topic it came on."""
    try:
        _, state = decode_state(data, "hall", "rfid")
    except PeerError:
        return False
    assert 0 <= state.process < len(state.clock)
    return True


def _state(**values: Any) -> bytes:
    attrs = attrs_of("office", 1 << 40, 1, values)
    reading = Reading(site="hall", gateway="rfid", boot=7, seq=0, stream="rfid/state", kind="state", value=None,
                      attrs=attrs, t_min=0, t_max=9, vclock=(4, 2, 0))  # fmt: skip
    return encode_batch([reading])


def messages() -> list[Target]:
    """Every kind of message, and bare CBOR."""
    golden = {kind: [bytes.fromhex(row["hex"]) for row in rows("messages.json") if row["type"] == kind]
              for kind in ("birth", "status", "heartbeat", "ack")}  # fmt: skip
    golden["batch"] = [bytes.fromhex(row["hex"]) for row in rows("batches.json")]
    golden["rules"] = [bytes.fromhex(row["hex"]) for row in rows("rules.json")]
    pairs: dict[str, tuple[Any, Any]] = {
        kind: (getattr(protocol, f"decode_{kind}"), getattr(protocol, f"encode_{kind}"))
        for kind in ("batch", "birth", "status", "heartbeat", "ack")
    }
    pairs["rules"] = (decode_rules, lambda value: encode_rules(*value))
    targets = [Target(kind, golden[kind], mutated_message, decoding(*pairs[kind])) for kind in sorted(golden)]
    every = [data for kind in sorted(golden) for data in golden[kind]]
    states = [_state(), _state(speaker=True, room="b2"), _state(t=21.5)]
    return [
        *targets,
        Target("state", states, mutated_message, check_state),
        Target("cbor", every, mutated_message, decoding(cbor.loads, cbor.dumps)),
    ]


# Readers' bytes.

# Frames that a reader could send: the content of a published frame, changed, under a right length and checksum.
REFRAMED: dict[str, Callable[[bytes, Callable[[bytes], bytes]], bytes]] = {
    "m6e": lambda raw, change: m6e_frames.answer(raw[2], int.from_bytes(raw[3:5], "big"), change(raw[5:-2])[:240]),
    "pn532": lambda raw, change: pn532_frames.framed(raw[5], change(raw[6:-2])[:250]),
    "uhfreader18": lambda raw, change: uhfreader18.answer(raw[2], raw[3], change(raw[4:-2])[:200], raw[1]),
    "yrm100": lambda raw, change: yrm100.framed(raw[1], raw[2], change(raw[5:-2])[:250]),
    "rdm6300": lambda raw, change: em4100.encode(raw[1], int.from_bytes(change(raw[:4])[:4], "big")),
    "id12la": lambda raw, change: em4100.encode(raw[1], int.from_bytes(change(raw[:4])[:4], "big"), crlf=True),
}


def mutated_stream(kind: str) -> Callable[[Random, list[bytes]], bytes]:
    """Some frames of a reader in a row: whole ones, some with another content, damaged ones, and noise."""

    def piece(rng: Random, raw: bytes) -> bytes:
        chance = rng.random()
        if chance < 0.25:
            return raw
        if chance < 0.7 and kind in REFRAMED and len(raw) > 8:
            return REFRAMED[kind](raw, lambda data: mutated_bytes(rng, data))
        return mutated_bytes(rng, raw) if chance < 0.95 else rng.randbytes(rng.randrange(40))

    def mutate(rng: Random, seeds: list[bytes]) -> bytes:
        return b"".join(piece(rng, rng.choice(seeds)) for _ in range(rng.choice((1, 1, 2, 3))))

    return mutate


def _frames(decoder: Decoder, data: bytes, size: int) -> list[Any]:
    frames = []
    for begin in range(0, len(data), size):
        frames += decoder.feed(data[begin : begin + size])
        assert len(decoder.pending) < max(2, decoder.FRAME_BYTES_MAX), f"pending: found {len(decoder.pending)} bytes"
    return frames + decoder.flush()


def decoded(kind: str) -> Check:
    """Every byte is in a frame or in counted noise, whatever the chunks; what follows a decoder takes every frame."""
    reader = READERS[kind]

    def check(data: bytes) -> bool:
        decoder = reader.new_decoder()
        frames = _frames(decoder, data, len(data) or 1)
        size = 1 + len(data) % 61
        assert _frames(reader.new_decoder(), data, size) == frames, f"other frames in chunks of {size} bytes"
        assert sum(len(frame.raw) for frame in frames) + decoder.counters["noise_bytes"] == len(data), "lost bytes"
        for frame in frames:
            for sighting in reader.sightings(frame):
                assert (
                    sighting.key == sighting.key.upper()
                )  # an empty one is counted as invalid when the spool takes it
            if reader.observe is not None:
                names = [None, *map(str, frame.fields)][:3]
                for name in names:
                    reader.observe(frame, name, names[-1])
        return any(frame.ok for frame in frames)

    return check


def readers() -> list[Target]:
    """Every built-in kind of reader."""
    frames: dict[str, list[bytes]] = {}
    for vector in published():
        frames.setdefault(vector.reader, []).append(vector.raw)
    frames["line"] += [b'{"t": 21.5, "ok": true, "probe": "north"}\n', b"21.5,ok,,-3e5\r\n", "grün\r".encode()]
    return [
        Target(f"reader-{kind}", seeds, mutated_stream(kind), decoded(kind), share=0.15, fixed_bytes=500_000)
        for kind, seeds in sorted(frames.items())
    ]


# The ingest as a whole.


def mutated_mail(rng: Random, seeds: list[bytes]) -> bytes:
    """Messages in a row, each as [place in LEAVES, payload]: some are repeats of others."""
    mail: list[list[Any]] = []
    for _ in range(rng.randrange(1, 12)):
        if mail and rng.random() < 0.2:
            mail.append(rng.choice(mail))
        else:
            payload = rng.choice(seeds) if rng.random() < 0.3 else mutated_message(rng, seeds)
            mail.append([rng.choice((0, 0, 0, 1, 2, rng.randrange(len(LEAVES)))), payload])
    return cbor2.dumps(mail)


def _mail(data: bytes) -> list[tuple[str, bytes]]:
    """The messages of an input with their topics; a payload comes on the topic that it names, if it names one."""
    try:
        rows = cbor2.loads(data)
        mail = [(LEAVES[leaf], bytes(payload)) for leaf, payload in rows]
    except (cbor2.CBORError, TypeError, ValueError, IndexError, RecursionError):  # a shrunk input
        return []
    return [(f"wa/2/{_origin(payload)}/{leaf}", payload) for leaf, payload in mail]


def _origin(payload: bytes) -> str:
    try:
        head = cbor.loads(payload)
    except WireError:
        return "hall/dock-1"
    return f"{head.get(1)}/{head.get(2)}" if isinstance(head, dict) else "+/#"


def _numbers(topic: str, payload: bytes) -> int:
    try:
        return len(protocol.decode_batch(payload)) if topic.endswith("/obs") else 0
    except WireError:
        return 0


def check_bridge(data: bytes) -> bool:
    """No message raises; every reading waits, is a repeat, or its message is a dead letter; a flush returns all tokens."""
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        bridge = Bridge(Landing(Path(folder)))
        mail = _mail(data)
        for token, (topic, payload) in enumerate(mail):
            before = _accounted(bridge)
            letters = sum(bridge.dead_letters().values())
            bridge.take(topic, payload, token)
            if sum(bridge.dead_letters().values()) == letters:
                found = _accounted(bridge) - before
                assert found == _numbers(topic, payload), f"message {token}: {found} readings are accounted for"
        waiting = bridge.waiting_readings
        assert bridge.waiting_bytes <= 200 * len(data) + 2000 * len(mail)
        assert sorted(bridge.flush().tokens) == list(range(len(mail)))  # type: ignore[type-var]
        assert (bridge.waiting, bridge.waiting_bytes, bridge.waiting_readings) == (0, 0, 0)
        assert bridge.counters.messages == len(mail)
        assert bridge.counters.landed + bridge.counters.ahead == waiting
        return waiting > 0


def _accounted(bridge: Bridge) -> int:
    """Readings taken that wait or came before."""
    return bridge.waiting_readings + bridge.counters.repeats


# Rule files.


def _rule_texts() -> list[bytes]:
    pages = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))]
    blocks = [block for page in pages for block in page.read_text(encoding="utf-8").split("```") if "\nSTREAM" in block]
    files = [path.read_text(encoding="utf-8") for path in sorted((REPOSITORY / "docs" / "examples").glob("*.wa"))]
    return [text.partition("\n")[2].encode() for text in blocks if len(text) < 2000] + [f.encode() for f in files]


def check_rules(data: bytes) -> bool:
    """A text gives rules, or a RuleError that names the place."""
    try:
        parse_rules(data.decode("utf-8", "replace"))
    except RuleError as error:
        mistakes = error.mistakes
    else:
        return True
    assert mistakes
    return False


def rule_file() -> Target:
    """Rule files, changed by words of the language."""
    seeds = _rule_texts()
    words = sorted(set(b" ".join(seeds).decode().split()))

    def mutate(rng: Random, texts: list[bytes]) -> bytes:
        return mutated_text(rng, rng.choice(texts).decode("utf-8", "replace"), words).encode("utf-8", "replace")

    return Target("rule-file", seeds, mutate, check_rules, share=0.004, fixed_s=5.0, fixed_bytes=60_000_000)


def bridge() -> Target:
    """The ingest's core on a landing in memory."""
    seeds = [
        bytes.fromhex(row["hex"]) for name in ("batches.json", "messages.json", "rules.json") for row in rows(name)
    ]
    target = Target("ingest", seeds, mutated_mail, check_bridge, share=0.0005, fixed_s=3.0, fixed_bytes=60_000_000)
    target.learn = lambda rng, data: None  # type: ignore[method-assign]  # its seeds are messages, its inputs rows of them
    return target


def targets() -> list[Target]:
    """All of them."""
    return [*messages(), *readers(), rule_file(), bridge()]
