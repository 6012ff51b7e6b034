"""Rules with names of tags give what decoding each key and choosing the readings by hand gives: batches and streams.

The names are known because the tags are written from them (`support.cloud.tags`); no decoder is asked what is expected.
"""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.cloud.landing import EPOCH_US, reading, table
from support.cloud.tags import TAGS, Tag
from support.search import examples
from whenabouts_cloud.epc.rule_words import WORDS
from whenabouts_cloud.frontier.gateways import Watermark
from whenabouts_cloud.jobs.engines.cep import CEP
from whenabouts_cloud.jobs.engines.correlate import CORRELATION
from whenabouts_cloud.rules import parse_rules, state_predicate
from whenabouts_cloud.rules.placement import GatewayStream, place
from whenabouts_cloud.rules.state_predicate import Value

MS = 1000
FOREVER_US = EPOCH_US + 10**9
BY_KEY = {tag.key: tag for tag in TAGS}
STREAMS = "".join(f'STREAM {name} FROM "{name}" DELAY 1 h LENGTH 0 us .. 20 ms\n' for name in ("dock", "till", "shelf"))

texts = {word: sorted({getattr(tag, word) for tag in TAGS} - {None}) for word in WORDS}
conditions = st.sampled_from(list(WORDS)).flatmap(
    lambda word: st.tuples(st.just(word), st.sampled_from(["=", "!="]), st.sampled_from(texts[word]))
)


@st.composite
def readings(draw):
    """Readings of three streams on the ms grid, each with one of the tags."""
    rows = []
    for seq in range(draw(st.integers(0, 12))):
        begin = EPOCH_US + draw(st.integers(0, 60)) * MS
        stream = draw(st.sampled_from(["dock", "dock", "shelf", "shelf", "till"]))
        length = draw(st.sampled_from([0, 0, 5])) * MS
        rows.append(reading("g", seq, stream, draw(st.sampled_from(TAGS)).key, begin, begin + length))
    return rows


def satisfies(row, wanted):
    """A comparison with a name that the tag does not have does not hold."""
    for word, sign, text in wanted:
        meant = getattr(BY_KEY.get(row["key"], Tag(None)), word)
        if meant is None or (meant == text) != (sign == "="):
            return False
    return True


def said(alias, wanted):
    return [f'{alias}.{word} {sign} "{text}"' for word, sign, text in wanted]


def rule_of(body):
    return parse_rules(f"{STREAMS}RULE r {body}").rules[0]


def routed(engine, rule, rows):
    """The tables of the one shard."""
    landed = table(rows).select([*dict.fromkeys((*engine.columns, "kind"))])
    made = {one.table: one.rows for one in engine.routed(rule, engine.readings([rule], landed), 1)}
    return {name: made[name].cast(schema) for name, schema in engine.tables(rule).items()}


def in_a_batch(engine, rule, rows):
    return identities(engine.whole(rule, routed(engine, rule, rows), [], None).results)


def in_a_stream(engine, rule, rows, cut):
    """Two micro-batches, then a watermark that settles all."""
    shard, none = engine.shard(rule), [[] for _ in engine.streams(rule)]
    found = [shard.step(routed(engine, rule, part), none).results for part in (rows[:cut], rows[cut:])]
    last = [[Watermark("hall/g", FOREVER_US, 1)] for _ in engine.streams(rule)]
    found += [shard.step(routed(engine, rule, []), marks).results for marks in (last, none)]
    return identities(pa.concat_tables(found))


def identities(results):
    return sorted(results["result_id"].to_pylist())


@given(readings(), st.lists(conditions, max_size=2), st.lists(conditions, max_size=2), st.data())
@pytest.mark.parametrize("kind", ["", "NEAREST", "KEEP ALL a", "ONLY UNMATCHED a"])
@settings(max_examples=examples(60), deadline=None)
def test_pairs_with_names_are_those_of_the_readings_that_have_them(kind, rows, of_a, of_b, data):
    keyed = data.draw(st.sampled_from([[], ["a.key = b.key"]]))
    begin = "CORRELATE dock AS a, shelf AS b WHERE |@a - @b| <= 20 ms OVER 50 %"
    named = rule_of(" AND ".join([begin, *keyed, *said("a", of_a), *said("b", of_b)]) + f" {kind}")
    plain = rule_of(" AND ".join([begin, *keyed]) + f" {kind}")
    chosen = [row for row in rows if satisfies(row, {"dock": of_a, "shelf": of_b}.get(row["stream"], ()))]
    expected = in_a_batch(CORRELATION, plain, chosen)
    assert in_a_batch(CORRELATION, named, rows) == expected
    assert in_a_stream(CORRELATION, named, rows, data.draw(st.integers(0, len(rows)))) == expected


@given(readings(), st.lists(conditions, max_size=2), st.lists(conditions, max_size=2), conditions, st.data())
@pytest.mark.parametrize("keys", ["PER key", "ACROSS KEYS"])
@settings(max_examples=examples(60), deadline=None)
def test_matches_with_names_are_those_of_the_readings_that_have_them(keys, rows, of_a, of_b, of_c, data):
    """Conditions on one element choose its readings; on a negated one, those that are forbidden."""
    begin = f"SEQ(dock a, !till c, shelf b) WITHIN 40 ms {keys} POSSIBLE"
    named = rule_of(f"{begin} WHERE {' AND '.join([*said('a', of_a), *said('b', of_b), *said('c', [of_c])])}")
    by_stream = {"dock": of_a, "shelf": of_b, "till": [of_c]}
    chosen = [row for row in rows if satisfies(row, by_stream[row["stream"]])]
    expected = in_a_batch(CEP, rule_of(begin), chosen)
    assert in_a_batch(CEP, named, rows) == expected
    assert in_a_stream(CEP, named, rows, data.draw(st.integers(0, len(rows)))) == expected


@given(readings(), st.sampled_from(list(WORDS)), st.sampled_from(["=", "!="]), st.data())
@settings(max_examples=examples(60), deadline=None)
def test_names_of_two_events_are_compared_as_texts(rows, word, sign, data):
    """Across keys: an event without the name is in no match, with = and with !=."""
    rule = rule_of(f"SEQ(dock a, shelf b) WITHIN 40 ms ACROSS KEYS WHERE a.{word} {sign} b.{word}")
    found = set()
    for a in rows:
        for b in rows:
            one, other = (getattr(BY_KEY.get(row["key"], Tag(None)), word) for row in (a, b))
            within = a["t_max"] < b["t_min"] and b["t_max"] - a["t_min"] <= 40 * MS
            if (a["stream"], b["stream"]) == ("dock", "shelf") and within and None not in (one, other):
                found |= {(a["seq"], b["seq"])} if (one == other) == (sign == "=") else set()
    results = CEP.whole(rule, routed(CEP, rule, rows), [], None).results
    matched = [[event["seq"] for event in row["events"]] for row in results.to_pylist()]
    assert sorted(map(tuple, matched)) == sorted(found)
    assert in_a_stream(CEP, rule, rows, data.draw(st.integers(0, len(rows)))) == identities(results)


@given(st.lists(conditions, min_size=1, max_size=3), st.sampled_from("ab"))
@settings(max_examples=examples(40), deadline=None)
def test_no_gateway_is_given_a_rule_with_names(wanted, alias):
    """Whatever the condition: a gateway with all its streams would take the rule without it."""
    begin = "CORRELATE dock AS a, shelf AS b WHERE |@a - @b| <= 20 ms OVER 50 % AND a.key = b.key"
    streams = [GatewayStream("dock", "g1", "hall", 20_000), GatewayStream("shelf", "g1", "hall", 20_000)]
    plain, named = place([rule_of(begin), rule_of(" AND ".join([begin, *said(alias, wanted)]))], streams)
    assert (plain.where, named.where) == ("edge", "cloud")
    assert "does not know the names in them" in named.reason


@given(st.sampled_from(list(WORDS)), st.sampled_from(TAGS), st.sampled_from(["x", "80614141123458"]))
@settings(max_examples=examples(40), deadline=None)
def test_values_of_states_that_are_called_like_a_name_are_the_gateways_own(word, tag, text):
    """States have no key: nothing is decoded, and any text can be compared."""
    rule = rule_of(f'DEFINITELY dock.{word} = "{text}" AND shelf.tag = "{tag.key}" WINDOW 2 IN GROUP g')
    holds = state_predicate.test(rule.predicate)
    values = {Value("dock", word): text, Value("shelf", "tag"): str(tag.key)}
    assert holds(values)
    assert not holds(values | {Value("dock", word): getattr(tag, word) or "another"}) or getattr(tag, word) == text
