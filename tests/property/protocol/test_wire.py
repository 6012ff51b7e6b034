"""Every message decodes to itself, from bytes that other tools understand."""

import cbor2
from hypothesis import given, settings

import whenabouts_protocol as protocol
from property import strategies as some
from support.files.schema import pycddl_accepts
from support.search import examples
from whenabouts_protocol import cbor
from whenabouts_protocol.messages.batch import MAX_BATCH_READINGS, decode_batch, encode_batch, encode_checked
from whenabouts_protocol.reading import MAX_ATTRS, MAX_PROCESSES, MAX_TEXT_BYTES, MAX_VALUE_BYTES, TIME_US_MAX, Reading


@settings(max_examples=examples(100), deadline=None)
@given(some.batches())
def test_a_batch_comes_back_as_it_was(readings):
    """Readings in any order, with repeats and jumps, decode to themselves; types are kept. Checked before, they give the
    bytes that they give when they are checked here.
    """
    data = encode_batch(readings)
    assert decode_batch(data) == readings
    assert encode_checked(readings) == data


@settings(max_examples=examples(100), deadline=None)
@given(some.batches())
def test_a_batch_fits_the_schema_and_an_independent_package(readings):
    """pycddl accepts every batch; cbor2 reads and writes the same bytes."""
    data = encode_batch(readings)
    assert pycddl_accepts("batch", data)
    assert cbor2.dumps(cbor2.loads(data)) == data


@settings(max_examples=examples(60), deadline=None)
@given(some.births, some.statuses, some.heartbeats, some.acks)
def test_other_messages_come_back_and_fit_the_schema(birth, status, heartbeat, ack):
    """Births, statuses, heartbeats and acks decode to themselves and are accepted by pycddl and cbor2."""
    for kind, message in (("birth", birth), ("status", status), ("heartbeat", heartbeat), ("ack", ack)):
        data = getattr(protocol, "encode_" + kind)(message)
        assert getattr(protocol, "decode_" + kind)(data) == message
        assert pycddl_accepts(kind, data)
        assert cbor2.dumps(cbor2.loads(data)) == data


@settings(max_examples=examples(100), deadline=None)
@given(some.batches())
def test_bytes_do_not_depend_on_the_order_of_a_map(readings):
    """Attributes written in another order give an equal message."""
    turned = [
        Reading(
            **{name: getattr(r, name) for name in Reading.__slots__ if name != "attrs"},
            attrs=dict(reversed(r.attrs.items())),
        )
        for r in readings
    ]
    assert encode_batch(turned) == encode_batch(readings)


def test_a_reading_with_every_field_at_its_limit_has_a_wire_form():
    """Longest texts, widest stamp, most attributes and processes: valid is sendable."""
    widest = Reading(
        site="s" * 64, gateway="ä" * 32, boot=2**63 - 1, seq=2**63 - 1, stream="x" * MAX_TEXT_BYTES, kind="gap",
        key="€" * 85, value="v" * MAX_VALUE_BYTES, unit="u" * MAX_TEXT_BYTES,
        attrs={f"{n:0{MAX_TEXT_BYTES}}": "a" * MAX_VALUE_BYTES for n in range(MAX_ATTRS)},
        t_min=1 - TIME_US_MAX, t_max=TIME_US_MAX - 1, clock_state="unbounded", vclock=(2**63 - 1,) * MAX_PROCESSES,
    )  # fmt: skip
    data = encode_batch([widest])
    assert decode_batch(data) == [widest]
    assert pycddl_accepts("batch", data)


def test_the_largest_batch_comes_back():
    """MAX_BATCH_READINGS readings fit in one message."""
    usual = {"site": "s", "gateway": "g", "boot": 1, "stream": "x", "kind": "tag", "t_min": 0, "t_max": 9}
    readings = [Reading(seq=n, key=f"{n:024X}", **usual) for n in range(MAX_BATCH_READINGS)]
    assert decode_batch(encode_batch(readings)) == readings


@settings(max_examples=examples(200), deadline=None)
@given(some.cbor_values())
def test_what_decodes_is_what_an_independent_package_decodes(value):
    """Of any bytes that cbor2 writes, loads gives the same value or refuses; dumps of that value is a fixpoint."""
    data = cbor2.dumps(value)
    try:
        ours = cbor.loads(data)
    except cbor.WireError:
        return
    assert ours == value
    again = cbor.dumps(ours)
    assert cbor2.loads(again) == value
    assert cbor.dumps(cbor.loads(again)) == again
