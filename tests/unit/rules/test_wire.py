"""Compiled rules as bytes: golden vectors, the schema, and refusals with their reason."""

import cbor2
import pytest

from support.files.compiled_rules import rule_of
from support.files.schema import pycddl_accepts, zcbor_accepts
from support.files.vectors import rows
from whenabouts_protocol.errors import WireError
from whenabouts_protocol.messages.compiled_rule import CompiledRule, RuleSide, decode_rules, encode_rules

RULES = [pytest.param(row, id=row["name"]) for row in rows("rules.json")]
REFUSED = [pytest.param(row, id=row["name"]) for row in rows("refused_rules.json")]

# What only the decoder sees: how fields relate, names, repeats.
BEYOND_THE_SCHEMA = {
    "a wildcard as gateway", "a rule twice", "a derived stream without its prefix", "a limit beyond 2^50",
    "the upper limit below the lower", "a confidence above 1", "a stream twice", "a derived stream as input",
    "the shortest above the longest", "a side without streams",
}  # fmt: skip


@pytest.mark.parametrize("row", RULES)
def test_rules_have_the_golden_bytes_and_come_back(row):
    """The rules give exactly these bytes, the bytes exactly these rules; cbor2 and both schema tools agree."""
    data = bytes.fromhex(row["hex"])
    compiled = [rule_of(fields) for fields in row["rules"]]
    assert encode_rules(row["site"], row["gateway"], compiled) == data
    assert decode_rules(data) == (row["site"], row["gateway"], compiled)
    assert cbor2.dumps(cbor2.loads(data)) == data
    assert pycddl_accepts("rules", data)
    assert zcbor_accepts("rules", data)


@pytest.mark.parametrize("row", REFUSED)
def test_wrong_rules_are_refused_with_the_reason(row):
    """The decoder refuses each; the stricter of the tools does too, unless the fault is beyond a schema."""
    data = bytes.fromhex(row["hex"])
    with pytest.raises(WireError) as caught:
        decode_rules(data)
    assert row["reason"] in str(caught.value)
    if data:  # zcbor does not look at nothing
        assert zcbor_accepts("rules", data) is (row["name"] in BEYOND_THE_SCHEMA)


def test_rules_that_could_not_be_read_are_not_sent():
    """Encoding ends in the refusal that decoding would end in."""
    side = RuleSide(["x"], 0, 0)
    with pytest.raises(WireError, match="upper limit"):
        encode_rules("s", "g", [CompiledRule("$rule/r", 1, 0, 1, 1, False, 1, side, side)])
    with pytest.raises(WireError, match="stream names"):
        encode_rules("s", "g", [CompiledRule("$rule/r", 0, 0, 1, 1, False, 1, side, RuleSide([], 0, 0))])


def test_unknown_keys_and_surplus_entries_are_ignored():
    """Fields that a later minor version adds do not change the rules read."""
    row = rows("rules.json")[1]
    head = cbor2.loads(bytes.fromhex(row["hex"]))
    head[90] = "new"
    head[4][0].append({"new": 1})
    head[4][0][6].append(None)
    assert decode_rules(cbor2.dumps(head))[2] == [rule_of(row["rules"][0])]
