"""Hostile bytes on the rules topic: rules or WireError, never another exception."""

import cbor2
from hypothesis import given, settings
from hypothesis import strategies as st

from property import strategies as some
from support.files.vectors import rows
from support.search import examples
from whenabouts_protocol.errors import WireError
from whenabouts_protocol.messages.compiled_rule import decode_rules, encode_rules
from whenabouts_protocol.streaming_join import StreamingJoin

GOLDEN = [bytes.fromhex(row["hex"]) for row in rows("rules.json")]


def decoded(data):
    """Decodes the bytes; an accepted value can be encoded again and run."""
    try:
        site, gateway, rules = decode_rules(data)
    except WireError:
        return
    assert decode_rules(encode_rules(site, gateway, rules)) == (site, gateway, rules)
    for r in rules:
        join = StreamingJoin(
            r.lo_us, r.hi_us, r.p, r.q, (r.a.shortest_us, r.a.longest_us), (r.b.shortest_us, r.b.longest_us),
            r.key_equal, r.limit,
        )  # fmt: skip
        join.push(0, 0, some.EPOCH_US, some.EPOCH_US, "key")
        assert join.push(1, 1, some.EPOCH_US + r.lo_us, some.EPOCH_US + r.lo_us, "key") == [0]


@given(st.one_of(st.binary(max_size=200), some.cbor_values().map(cbor2.dumps)))
@settings(max_examples=examples(300), deadline=None)
def test_any_bytes_are_rules_or_refused(data):
    """Noise and any CBOR value."""
    decoded(data)


@st.composite
def damaged(draw):
    """Golden rules with any value in one place, or some bytes changed."""
    data = bytearray(draw(st.sampled_from(GOLDEN)))
    if draw(st.booleans()):
        for _ in range(draw(st.integers(1, 3))):
            at = draw(st.integers(0, len(data) - 1))
            data[at : at + draw(st.integers(0, 2))] = draw(st.binary(min_size=1, max_size=3))
        return bytes(data)
    head = cbor2.loads(bytes(data))
    place, step = head, draw(st.sampled_from([0, 1, 2, 4]))
    while isinstance(place[step], list) and place[step] and draw(st.integers(0, 3)):
        place = place[step]
        step = draw(st.integers(0, len(place) - 1))
    place[step] = draw(some.cbor_values())
    return cbor2.dumps(head)


@given(damaged())
@settings(max_examples=examples(500), deadline=None)
def test_damaged_rules_are_rules_or_refused(data):
    """One field replaced by anything, or a few bytes."""
    decoded(data)
