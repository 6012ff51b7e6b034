"""The decoders on a real MicroPython VM with a board's heap: the same results as here, and every module compiles."""

import json
import random
from pathlib import Path

from support.board.scripts import as_module
from support.files.reader_frames import published
from whenabouts_hardware import DECODERS
from whenabouts_hardware.readers.em4100 import encode
from whenabouts_hardware.readers.m6e_frames import KEEPALIVE, START_CONTINUOUS, VERSION, answer, tag_notice
from whenabouts_hardware.readers.pn532_frames import ACK, TO_HOST, framed, target_106a
from whenabouts_hardware.readers.uhfreader18 import inventory_answer
from whenabouts_hardware.readers.yrm100 import tag_notice as yrm100_notice

SCRIPT = Path(__file__).parent / "hardware_decode.py"


def _on_board(run_on_vm, cases: list[dict], folder: Path) -> list[dict]:
    """Results of the cases on a VM."""
    path = folder / "cases.jsonl"
    path.write_text("".join(json.dumps(case) + "\n" for case in cases))
    return [json.loads(line) for line in run_on_vm(SCRIPT, str(path)).splitlines()]


def _here(cases: list[dict]) -> list[dict]:
    """Results of the cases on CPython, by the same script."""
    module = as_module(SCRIPT)
    return [json.loads(json.dumps(module.decode(case))) for case in cases]


def _case(name: str, stream: bytes, mode: str | None = None, cuts: tuple[int, ...] = ()) -> dict:
    return {"name": name, "mode": mode, "hex": stream.hex(), "cuts": list(cuts)}


def test_published_frames_on_the_board(tmp_path, run_on_vm):
    """Every vector, whole and byte by byte, has on the VM the fields and validity its source gives."""
    vectors = published()
    assert {vector.reader for vector in vectors} == set(DECODERS)
    streams = [(vector.reader, vector.raw) for vector in vectors]
    whole = _on_board(run_on_vm, [_case(name, raw) for name, raw in streams], tmp_path)
    bytewise = _on_board(run_on_vm, [_case(name, raw, cuts=(1,) * len(raw)) for name, raw in streams], tmp_path)
    assert whole == bytewise
    assert len(whole) == len(vectors)
    for vector, result in zip(vectors, whole, strict=True):
        [[_, fields, ok, error, _, start, end, raw, _]] = result["frames"]  # the whole, and nothing beside it
        assert ok is vector.ok is (error is None), vector
        assert {name: fields.get(name) for name in vector.fields} == vector.fields, vector
        assert (start, end, raw) == (0, len(vector.raw), vector.raw.hex())


def _piece(chance: random.Random) -> bytes:
    """A frame, a damaged one, or noise."""
    notice = tag_notice(
        chance.randbytes(2 * chance.randrange(32)),
        rssi=chance.randrange(-128, 128),
        antenna="1/1",
        freq_khz=chance.randrange(2**24),
        ts_ms=chance.randrange(2**32),
        gpio=chance.randrange(256),
    )
    buffer = answer(0x29, 0, bytes.fromhex("01ff0002") + notice[11:-2] + notice[11:-2])
    inventory = inventory_answer([chance.randbytes(12) for _ in range(chance.randrange(3))])
    target = framed(TO_HOST, b"\x4b\x01" + target_106a(1, chance.randbytes(7)))
    others = [inventory, target, ACK, yrm100_notice(chance.randbytes(12), -40), b'{"t": 21.5}\n', b"$GPGLL,1,N*1A\r\n"]
    card = encode(chance.randrange(256), chance.randrange(2**32), chance.random() < 0.5)
    raw = chance.choice([*others, notice, buffer, card, KEEPALIVE, VERSION, START_CONTINUOUS, chance.randbytes(20)])
    if chance.random() < 0.3:
        at = chance.randrange(len(raw))
        raw = raw[:at] + chance.choice([b"", b"\xff", b"\x02", chance.randbytes(1)]) + raw[at + 1 :]
    return raw


def test_damaged_streams_on_the_board(tmp_path, run_on_vm):
    """Frames, damage and noise in any mixture and split give on the VM exactly what they give here."""
    chance = random.Random(20)
    variants = [("rdm6300", None), ("id12la", None), ("m6e", "reader"), ("m6e", "host"), ("m6e", "both")]
    variants += [(name, None) for name in ("pn532", "uhfreader18", "yrm100", "line")]
    cases = []
    for i in range(135):
        name, mode = variants[i % len(variants)]
        stream = b"".join(_piece(chance) for _ in range(12))
        cuts = tuple(chance.randrange(1, 64) for _ in range(20))
        cases.append(_case(name, stream, mode, cuts))
    expected = _here(cases)
    assert _on_board(run_on_vm, cases, tmp_path) == expected
    kinds = {frame[0] for result in expected for frame in result["frames"]}
    assert kinds >= {"tag", "tags", "keepalive", "command", "damaged", "targets", "no_tag", "ack", "json", "nmea"}


def test_broken_json_on_the_board(tmp_path, run_on_vm):
    """Half an object, and one nested deeper than a stack reaches, are damaged lines there as here."""
    cases = [_case("line", line) for line in (b'{"t": \n', b'{"t": ' + b"[" * 60 + b"\n")]
    results = _on_board(run_on_vm, cases, tmp_path)
    assert [result["frames"] for result in results] == [result["frames"] for result in _here(cases)]
    assert [result["counters"]["bad_content"] for result in results] == [1, 1]
