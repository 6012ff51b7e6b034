"""The protocol on a real MicroPython VM with the heap of a board gives the results of CPython, to the bit."""

import json
import struct
from pathlib import Path

import cbor2
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import whenabouts_protocol as protocol
from property import strategies as some
from support.board.micropython import run_from_checkout
from support.files.vectors import rows
from support.search import examples
from whenabouts_protocol import cbor
from whenabouts_protocol import probability as p
from whenabouts_protocol.errors import WireError
from whenabouts_protocol.messages.batch import decode_batch, encode_batch
from whenabouts_protocol.reading import FIELDS

HERE = Path(__file__).resolve().parent
DECODERS = [decode_batch, protocol.decode_birth, protocol.decode_status, protocol.decode_heartbeat, protocol.decode_ack]


def drawn(strategy, count):
    """`count` values of a strategy, the same in every run."""
    values = []

    @settings(
        max_examples=count,
        database=None,
        derandomize=True,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def collect(value):
        values.append(value)

    collect()
    assert len(values) >= count // 2
    return values


def replay(run_on_vm, tmp_path, cases):
    """The last line that the board prints for the cases; every difference before it fails the test."""
    path = tmp_path / "cases.jsonl"
    path.write_text("\n".join(json.dumps(case) for case in cases) + "\n", encoding="utf-8")
    *differences, counts = run_on_vm(HERE / "board_protocol_replay.py", str(path)).splitlines()
    assert differences == []
    return counts


def double(value):
    return struct.pack(">d", value).hex()


@st.composite
def questions(draw):
    """Two stamps of up to an hour, near each other, and two distances."""
    base = draw(st.sampled_from([0, some.EPOCH_US]))
    longest = draw(st.sampled_from([3, 300_000, 3_600_000_000]))
    ends = (
        *draw(some.intervals(base=base, length_max=longest)),
        *draw(some.intervals(base=base, length_max=longest)),
    )
    lo, hi = sorted((draw(st.integers(-longest, longest)), draw(st.integers(-longest, longest))))
    return *ends, lo, hi


def test_probabilities_are_equal(tmp_path, run_on_vm):
    """Stamps up to an hour long: to the last bit where the ratio fits a double, which this VM has and few boards."""
    cases = []
    for question in drawn(questions(), examples(400)):
        *ends, lo, hi = question
        answers = (
            p.prob_deadline(*ends, hi),
            p.prob_delay(*ends, lo),
            p.prob_within(*ends, hi),
            p.prob_between(*ends, lo, hi),
        )
        cases.append(["prob", question, [double(answer) for answer in answers]])
    assert replay(run_on_vm, tmp_path, cases) == f"prob={len(cases)}"


def test_readings_and_messages_round_trip(tmp_path, run_on_vm):
    """Every field arrives as CPython sent it, and the bytes sent back are the same."""
    cases = []
    for batch in drawn(some.batches(), examples(150)):
        fields = [[getattr(r, f) for f in FIELDS] for r in batch]
        cases.append(["batch", encode_batch(batch).hex(), cbor.dumps(fields).hex()])
    for kind in ("birth", "status", "heartbeat", "ack"):
        strategy = {"birth": some.births, "status": some.statuses, "heartbeat": some.heartbeats, "ack": some.acks}[kind]
        for message in drawn(strategy, examples(30)):
            cases.append(["message", kind, getattr(protocol, "encode_" + kind)(message).hex()])
    counts = replay(run_on_vm, tmp_path, cases)
    assert counts.startswith("batch=")
    assert counts.count("=") == 2


@st.composite
def damaged(draw):
    """A golden message with some bytes changed, or any bytes."""
    small = [row["hex"] for row in rows("batches.json") + rows("messages.json") if len(row["hex"]) < 600]
    data = bytearray(bytes.fromhex(draw(st.sampled_from(small))))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(data) - 1))
        data[at : at + draw(st.integers(0, 2))] = draw(st.binary(min_size=1, max_size=3))
    return bytes(data)


def verdicts(data):
    results = []
    for decode in DECODERS:
        try:
            decode(data)
            results.append(1)
        except WireError:
            results.append(0)
    return results


def test_hostile_bytes_get_the_same_verdict(tmp_path, run_on_vm):
    """The board refuses with WireError exactly what CPython refuses, bytes that are no UTF-8 among it."""
    hostile = [
        *drawn(st.binary(max_size=40), examples(150)),
        *drawn(damaged(), examples(500)),
        *[cbor2.dumps(value) for value in drawn(some.cbor_values(), examples(150))],
        *[bytes.fromhex(row["hex"]) for row in rows("refused.json")],
        b"\x81" * 2000,
        b"\x9b" + b"\xff" * 8,
        b"\x9a\x7f\xff\xff\xff",
        b"\xbb" + b"\x7f" * 8,
        b"\x7b" + b"\x7f" * 8 + b"x" * 100,
        b"\x99\x01\xf4" + b"\x80" * 500,
    ]
    cases = [["bytes", data.hex(), verdicts(data)] for data in hostile]
    assert any(1 in case[2] for case in cases)
    assert replay(run_on_vm, tmp_path, cases) == f"bytes={len(cases)}"


@pytest.mark.parametrize("name", ["batches.json", "messages.json", "refused.json"])
def test_golden_vectors(tmp_path, name, run_on_vm):
    """Bytes from fields, fields from bytes, and the reasons for refusals are those of the vectors."""
    entries = rows(name)
    path = tmp_path / name
    path.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in entries) + "\n", encoding="utf-8")
    # Fifty readings three times over, with their JSON: words of 8 bytes on this VM, of 4 on a board.
    heap = "512k" if name == "batches.json" else "192k"
    assert run_on_vm(HERE / "board_protocol_vectors.py", str(path), heap=heap).splitlines() == [f"rows {len(entries)}"]


def test_what_the_interpreter_lets_through_is_refused():
    """Surrogates, overlong forms, damaged readings; the order of a map does not matter there."""
    assert run_from_checkout(HERE / "board_protocol_text.py").splitlines() == [
        "implementation micropython lax True",
        "refused 7",
        "surrogate refused",
        "wrong 19 of 19",
        "order of a map does not matter True",
        "back True",
        "Interval(90, 145)",
        "('warehouse', 'dock-1', 'obs') None",
    ]
