"""Where rules run, and what gateways get of them."""

import random
from fractions import Fraction

import pytest

from whenabouts_cloud.rules import parse_rules
from whenabouts_cloud.rules.explain_pairs import explain
from whenabouts_cloud.rules.placement import GatewayStream, PlanError, announced, compile_rules, place
from whenabouts_protocol import Birth
from whenabouts_protocol.messages.compiled_rule import CompiledRule, RuleSide, decode_rules, encode_rules
from whenabouts_protocol.streaming_join import StreamingJoin

STREAMS = """
STREAM dock  FROM "dock/tags" DELAY 2 s LENGTH 20 ms .. 300 ms
STREAM shelf FROM "shelf/+"   DELAY 1 s OFFSET -250 ms
STREAM far   FROM "shelf/+"   AT SITE "port" DELAY 1 s
STREAM all   FROM "#"         DELAY 1 s
STREAM mine  FROM "#"         AT SITE "hall" GATEWAY "g1" DELAY 1 s
"""
RULE = "RULE r {place} CORRELATE {a} AS a, {b} AS b WHERE |@a - @b| <= 1 s OVER 80 % {more}\n"


def rules(a="dock", b="shelf", where="", more=""):
    return parse_rules(STREAMS + RULE.format(place=where, a=a, b=b, more=more)).rules


def stream(name, gateway, site="hall", length_us_max=5_000_000):
    return GatewayStream(name, gateway, site, length_us_max)


ONE = [stream("dock/tags", "g1"), stream("shelf/1", "g1"), stream("shelf/2", "g1")]
TWO = [stream("dock/tags", "g1"), stream("shelf/1", "g1"), stream("shelf/2", "g2")]


@pytest.mark.parametrize(
    ("parsed", "streams", "where", "why"),
    [
        (rules(), ONE, "edge", "all its streams are on hall/g1"),
        (rules(), TWO, "cloud", "its streams are on 2 gateways: hall/g1, hall/g2"),
        (rules(), [*ONE, stream("shelf/1", "g1", "port")], "cloud", "2 gateways: hall/g1, port/g1"),
        (rules(), ONE[:1], "cloud", "no gateway has announced a stream that shelf covers"),
        (rules(), [], "cloud", "no gateway has announced a stream that dock covers"),
        (rules(where="AT CLOUD"), ONE, "cloud", "AT CLOUD says so"),
        (rules(where="AT EDGE"), ONE, "edge", "AT EDGE says so, and all its streams are on hall/g1"),
        (rules(more="NEAREST"), ONE, "cloud", "a gateway finds all pairs, nothing else"),
        (rules(more="KEEP ALL a"), ONE, "cloud", "a gateway finds all pairs, nothing else"),
        (rules("shelf", "far"), ONE, "cloud", "a stream that far covers"),
        (rules("far", "far"), [stream("shelf/9", "g3", "port")], "edge", "all its streams are on port/g3"),
        (rules("far", "far"), [GatewayStream("shelf/9", "g3")], "edge", "all its streams are on g3"),
        (rules("all", "dock"), [*ONE, stream("$rule/x", "g2")], "edge", "on hall/g1"),
        (rules("mine", "mine"), [*TWO, stream("x", "g1", "port")], "edge", "all its streams are on hall/g1"),
        (rules("mine", "mine"), [stream("x", "g2")], "cloud", "no gateway has announced a stream that mine covers"),
        (rules("all", "dock"), [stream("dock/tags", "g1"), *(stream(f"x{n}", "g1") for n in range(32))], "cloud",
         "all covers 33 streams, and a gateway takes at most 32 a side"),
    ],
)  # fmt: skip
def test_a_rule_runs_where_all_its_streams_are(parsed, streams, where, why):
    """On the one gateway that has them, else in the cloud; with the reason."""
    [placement] = place(parsed, streams)
    assert placement.where == where
    assert why in placement.reason
    assert (placement.gateway is not None) == (where == "edge")


def test_rules_that_cannot_run_at_the_edge_are_refused_together():
    """AT EDGE over two gateways and AT EDGE over none: both are named, with the reason."""
    some = [*rules(where="AT EDGE"), *rules("far", "dock", where="AT EDGE"), *rules()]
    with pytest.raises(PlanError) as caught:
        place(some, TWO)
    assert len(caught.value.mistakes) == 2
    assert "rule r: found AT EDGE, but its streams are on 2 gateways: hall/g1, hall/g2" in caught.value.mistakes[0]
    assert "no gateway has announced a stream that far covers" in caught.value.mistakes[1]


def test_a_gateway_is_not_given_more_rules_than_it_takes():
    """The 33rd runs in the cloud, with the reason."""
    placements = place(rules() * 33, ONE)
    assert [p.where for p in placements] == ["edge"] * 32 + ["cloud"]
    assert placements[-1].reason == "hall/g1 runs 32 rules already"


def test_births_announce_which_streams_there_are():
    """Streams that rules derive are not among them: such a stream moves with its rule."""
    birth = Birth("hall", "g1", 7, [("dock/tags", "tag", None, 5, 300_000), ("$rule/r", "measure", "[ppm]", 5, 9)])
    assert announced([birth]) == [GatewayStream("dock/tags", "g1", "hall", 300_000)]


def test_the_compiled_form_is_integers_and_stream_names():
    """Names in place of patterns, offsets in the limits, lengths as declared, as announced, and as can match at all."""
    placements = place(rules(more="AND a.key = b.key"), [*ONE, stream("shelf/0", "g1", length_us_max=700_000)])
    assert compile_rules(placements, "hall", "g2") == []
    compiled = compile_rules(placements, "hall", "g1")
    assert compiled == [
        CompiledRule(
            "$rule/r",
            -750_000,
            1_250_000,
            4,
            5,
            True,
            20_000,
            RuleSide(["dock/tags"], 20_000, 300_000),
            RuleSide(["shelf/0", "shelf/1", "shelf/2"], 0, 2_500_000),
        )
    ]
    assert decode_rules(encode_rules("hall", "g1", compiled)) == ("hall", "g1", compiled)
    known = place(rules("shelf", "shelf"), [stream("shelf/0", "g1", length_us_max=700_000)])
    assert compile_rules(known, "hall", "g1")[0].a.longest_us == 700_000


def test_the_compiled_rule_gives_the_pairs_of_the_rule():
    """With offsets of both streams: brute force over shifted stamps by the rule's own condition."""
    text = """
    STREAM x FROM "x" DELAY 0 s OFFSET 13 us
    STREAM y FROM "y" DELAY 0 s OFFSET -4 us LENGTH 0 us .. 10 us
    RULE r CORRELATE x AS a, y AS b WHERE @b - @a IN [-30 us, 10 us] OVER 0.35
    """
    [rule] = parse_rules(text).rules
    [c] = compile_rules(place([rule], [stream("x", "g"), stream("y", "g")]), "hall", "g")
    eager = StreamingJoin(
        c.lo_us,
        c.hi_us,
        c.p,
        c.q,
        (c.a.shortest_us, c.a.longest_us),
        (c.b.shortest_us, c.b.longest_us),
        c.key_equal,
        c.limit,
    )
    chance = random.Random(4)
    seen, pairs, wanted = ([], []), set(), set()
    for n in range(300):
        side, t_min = chance.randint(0, 1), chance.randint(0, 200)
        t_max = t_min + chance.randint(0, 10)
        pairs |= {(n, m) if side == 0 else (m, n) for m in eager.push(side, n, t_min, t_max)}
        seen[side].append((n, t_min, t_max))
    for i, a_min, a_max in seen[0]:
        for j, b_min, b_max in seen[1]:
            if rule.condition.holds(a_min + 13, a_max + 13, b_min - 4, b_max - 4):
                wanted.add((i, j))
    assert pairs == wanted
    assert rule.condition.ct == Fraction(7, 20)


def test_a_rule_about_an_order_of_events_runs_in_the_cloud():
    """Though all its streams are on one gateway; and no gateway is given it."""
    rules = parse_rules(STREAMS + "RULE r SEQ(dock, shelf) WITHIN 1 h").rules
    [placement] = place(rules, [GatewayStream("dock/tags", "g1"), GatewayStream("shelf/1", "g1")])
    assert (placement.where, placement.reason) == ("cloud", "a gateway runs CORRELATE rules only")
    assert compile_rules([placement], None, "g1") == []
    with pytest.raises(ValueError, match="expected a CORRELATE rule"):
        explain(placement, {})
