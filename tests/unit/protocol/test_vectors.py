"""The golden vectors: equal bytes for equal meaning, here and from an independent CBOR package."""

import cbor2
import pytest

import whenabouts_protocol as protocol
from support.files.vectors import VECTORS, maker, rows
from whenabouts_protocol import cbor
from whenabouts_protocol.errors import WireError
from whenabouts_protocol.messages.batch import decode_batch, encode_batch
from whenabouts_protocol.reading import Reading

MESSAGES = {"birth": protocol.Birth, "status": protocol.Status, "heartbeat": protocol.Heartbeat, "ack": protocol.Ack}
BATCHES = [pytest.param(row, id=row["name"]) for row in rows("batches.json")]
OTHERS = [pytest.param(row, id=row["name"]) for row in rows("messages.json")]
REFUSED = [pytest.param(row, id=row["name"]) for row in rows("refused.json")]


def message_of(row):
    """The message of a row of messages.json, built from its fields."""
    fields = {**row["fields"]}
    for name in ("published", "landed"):
        if name in fields:
            fields[name] = {boot: tuple(n) if name == "published" else n for boot, n in fields[name]}
    return MESSAGES[row["type"]](**fields)


def same(a, b):
    """Equal in value and type, all the way down."""
    if isinstance(a, list):
        return type(b) is list and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return type(b) is dict and list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    return type(a) is type(b) and a == b


def test_the_files_are_what_the_script_writes():
    """Nobody edits a vector by hand, and no change of the encoder goes unseen."""
    for name, text in maker().documents().items():
        assert (VECTORS / name).read_text(encoding="utf-8") == text, f"{name}: run protocol/vectors/make.py and look"


@pytest.mark.parametrize("row", BATCHES)
def test_batch_has_the_golden_bytes_and_comes_back(row):
    """The readings give exactly these bytes, and the bytes exactly these readings, of the same types."""
    readings = [Reading(**fields) for fields in row["readings"]]
    assert encode_batch(readings).hex() == row["hex"]
    assert decode_batch(bytes.fromhex(row["hex"])) == readings


@pytest.mark.parametrize("row", OTHERS)
def test_message_has_the_golden_bytes_and_comes_back(row):
    """The fields give exactly these bytes, and the bytes exactly these fields."""
    message = message_of(row)
    assert getattr(protocol, "encode_" + row["type"])(message).hex() == row["hex"]
    assert getattr(protocol, "decode_" + row["type"])(bytes.fromhex(row["hex"])) == message


@pytest.mark.parametrize("row", BATCHES + OTHERS)
def test_an_independent_package_reads_and_writes_the_same_structure(row):
    """cbor2 reads the structure we read, and writes from it the bytes we wrote."""
    data = bytes.fromhex(row["hex"])
    structure = cbor2.loads(data)
    assert same(structure, cbor.loads(data))
    assert cbor2.dumps(structure) == data
    assert cbor.dumps(structure) == data


@pytest.mark.parametrize("row", REFUSED)
def test_refused_bytes_end_in_an_error_with_the_reason(row):
    """Each of these is refused, with the reason written beside it."""
    with pytest.raises(WireError) as caught:
        decode_batch(bytes.fromhex(row["hex"]))
    assert row["reason"] in str(caught.value)


@pytest.mark.parametrize("row", BATCHES)
def test_a_message_of_one_type_is_no_other(row):
    """A batch on a topic of births, heartbeats or acks is refused there; a status takes its first number for a condition."""
    data = bytes.fromhex(row["hex"])
    for decode in (protocol.decode_birth, protocol.decode_heartbeat, protocol.decode_ack):
        with pytest.raises(WireError):
            decode(data)


def test_fifty_readings_have_the_size_the_module_states():
    """21.9 bytes a reading at 50 a batch of 7 tags with two attributes, as in the head of batch.py."""
    [row] = [row for row in rows("batches.json") if row["name"] == "fifty readings of seven tags"]
    assert len(row["hex"]) / 2 / 50 == 21.9
