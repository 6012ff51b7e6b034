"""The rule language: the rules read from a valid file, and the mistakes of an invalid one."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.search import examples
from whenabouts_cloud.language.timing import MAX_DURATION_US
from whenabouts_cloud.pattern.condition import Condition
from whenabouts_cloud.rules import CorrelateRule, RuleError, Stream, load_rules, parse, parse_rules
from whenabouts_cloud.rules.model import TagIs, name_regex

STREAMS = 'STREAM d FROM "a" DELAY 1 s\n'
RIGHT = STREAMS + "RULE r CORRELATE d AS a, d AS b WHERE |@a - @b| <= 3 s OVER 80 %"


def timed(predicate):
    """The right file with another predicate."""
    return RIGHT.replace("|@a - @b| <= 3 s", predicate)


def mistakes(text):
    with pytest.raises(RuleError) as caught:
        parse_rules(text)
    return [(m.line, m.column, m.text) for m in caught.value.mistakes]


def test_the_example_of_the_design_is_read_exactly():
    """Streams, units, lengths, site, percentage, key equality; comments and wildcards do not clash."""
    parsed = parse_rules("""
        # STREAM no FROM "comment"
        STREAM dock  FROM "dock/tags"   DELAY 2 s  LENGTH 20 ms .. 300 ms
        STREAM shelf FROM "shelf/#" AT SITE "warehouse" DELAY 1.5s   # the rest is a comment
        RULE handover
          CORRELATE dock AS a, shelf AS b
          WHERE |@a - @b| <= 10 s OVER 80 % AND a.key = b.key
    """)
    dock = Stream("dock", "dock/tags", 2_000_000, (20_000, 300_000))
    shelf = Stream("shelf", "shelf/#", 1_500_000, None, "warehouse")
    assert parsed.streams == (dock, shelf)
    assert parsed.rules == (
        CorrelateRule("handover", dock, shelf, Condition("within", d=10_000_000, confidence="0.8"), True),
    )


def test_a_stream_of_one_gateway_takes_nothing_of_another():
    """Neither of its site nor of its name at another site; the canonical text reads back as the same stream."""
    [dock] = parse_rules('STREAM dock FROM "dock/+" DELAY 2 s AT SITE "s" GATEWAY "dock-1"').streams
    assert dock == Stream("dock", "dock/+", 2_000_000, None, "s", gateway="dock-1")
    assert dock.matches("s", "dock-1", "dock/tags")
    assert not dock.matches("s", "dock-2", "dock/tags")
    assert not dock.matches("t", "dock-1", "dock/tags")
    assert not dock.matches("s", "dock-1", "door/tags")
    assert parse_rules(dock.text()).streams == (dock,)
    assert parse_rules('STREAM dock FROM "dock/+" DELAY 2 s AT GATEWAY "dock-1" AT SITE "s"').streams == (dock,)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("80 %", Fraction(4, 5)),
        ("0.8", Fraction(4, 5)),
        ("1", Fraction(1)),
        ("100%", Fraction(1)),
        ("99.9 %", Fraction(999, 1000)),
    ],
)
def test_a_threshold_is_the_decimal_that_was_written(written, expected):
    """Percent or share, no rounding."""
    assert parse_rules(RIGHT.replace("80 %", written)).rules[0].condition.ct == expected


@pytest.mark.parametrize(
    ("text", "line", "column", "said"),
    [
        ("", 1, 1, "found the end of the file, expected STREAM or RULE"),
        ("\n  rule x", 2, 3, "found rule, expected STREAM or RULE"),
        ("STREAM", 1, 7, "found the end of the declaration, expected a name"),
        ('STREAM d FROM "a', 1, 15, "a quote that does not close"),
        ("STREAM d FROM a DELAY 1 s", 1, 15, "found a, expected a name in quotes"),
        ('STREAM d FROM "a"', 1, 8, "without DELAY"),
        ('STREAM d FROM "a" DELAY 1 sec', 1, 27, "did you mean s?"),
        ('STREAM d FROM "a" DELAY 1.5 us', 1, 25, "expected whole microseconds"),
        ('STREAM d FROM "a" DELAY -1 s', 1, 25, "expected 0 or more"),
        ('STREAM d FROM "a" DELAY 99999 h', 1, 25, "at most ten years"),
        ('STREAM d FROM "a" DELAY 1 s DELAY 1 s', 1, 29, "found a second DELAY"),
        ('STREAM d FROM "a/#/b" DELAY 1 s', 1, 15, "as the last level"),
        ('STREAM d FROM "a" GATEWAY "g" DELAY 1 s', 1, 19, 'found GATEWAY "g" without a site, expected AT SITE'),
        ('STREAM d FROM "a" AT GATEWAY "g" DELAY 1 s', 1, 19, "names of gateways are unique within a site only"),
        ('STREAM d FROM "a" AT SITE "s" GATEWAY "" DELAY 1 s', 1, 39, "found an empty gateway, expected its name"),
        ('STREAM d FROM "a" AT SITE "s" GATEWAY "g/1" DELAY 1 s', 1, 39, 'found gateway "g/1", expected a name such as'),
        ('STREAM d FROM "a" AT SITE "s" GATEWAY g DELAY 1 s', 1, 39, "found g, expected a name in quotes"),
        ('STREAM d FROM "a" AT SITE "s" GATEWAY "g" GATEWAY "h" DELAY 1 s', 1, 43, "found a second GATEWAY"),
        ('STREAM d FROM "a" AT ROOM "s" DELAY 1 s', 1, 22, "found ROOM, expected GATEWAY or SITE"),
        ('STREAM d FROM "a+" DELAY 1 s', 1, 15, "expected it to be a whole level"),
        ('STREAM d FROM "a" DELAY 1 s LENGTH 2 s .. 1 s', 1, 29, "expected the shorter one first"),
        (STREAMS + STREAMS, 2, 8, "a second time"),
        (RIGHT.replace("80 %", "0 %"), 2, 61, "at 0 every reading pairs"),
        (RIGHT.replace("80 %", "80"), 2, 61, "did you mean 80 %?"),
        (RIGHT.replace("80 %", "101 %"), 2, 61, "expected at most 1 or 100 %"),
        (RIGHT.replace("80 %", "0.1234567890123"), 2, 61, "expected at most 12"),
        (RIGHT.replace("<=", "<"), 2, 49, "found <, expected `<=`"),
        (RIGHT.replace(" OVER", " $ OVER"), 2, 56, "found $, expected OVER"),
        (RIGHT.replace("CORRELATE d", "CORRELATE dd"), 2, 18, "did you mean d?"),
        (RIGHT.replace("@b|", "@c|"), 2, 46, "found @c, expected @a or @b"),
        (RIGHT.replace("@b|", "@a|"), 2, 46, "found @a twice, expected @b"),
        (RIGHT.replace("AS b", "AS a"), 2, 31, "expected two names"),
        (RIGHT + " AND a.rssi > 3", 2, 66, "found a.rssi > 3, expected a condition on key, uri, gtin, epc_scheme"),
        (RIGHT + " AND a.gtin = b.gtin", 2, 66, "found a.gtin = b.gtin, expected `a.key = b.key`"),
        (RIGHT + " AND a.key = a.key", 2, 66, "found a.key = a.key, expected `a.key = b.key`"),
        (RIGHT + " AND a.gtin = 80614141123458", 2, 66, 'expected a text in quotes: "80614141123458"'),
        (RIGHT + ' AND a.gtin < "80614141123458"', 2, 66, "expected = or !=: text has no order here"),
        (RIGHT + ' AND c.gtin = "80614141123458"', 2, 70, "found c, expected a or b"),
        (RIGHT + ' AND b.gtin = "614141123452"', 2, 66, 'found gtin "614141123452", expected 14 digits: "00614141123452"'),
        (RIGHT + ' AND b.gtin = "80614141123459"', 2, 66, "expected 8 as the last digit, which checks the others"),
        (RIGHT + ' AND b.gtin = "1"', 2, 66, "expected 14 digits, with zeros in front"),
        (RIGHT + ' AND b.gtin = "eight"', 2, 66, 'expected 14 digits such as "80614141123458"'),
        (RIGHT + ' AND b.uri = "urn:epc:tag:sgtin-96:3.0614141.812345.6789"', 2, 66, "expected a pure identity such as"),
        (RIGHT + ' AND b.epc_scheme = "SGTIN"', 2, 66, "expected one of sgtin, sscc, "),
        (RIGHT + ' AND b.company_prefix = "06141"', 2, 66, "expected 6 to 12 digits"),
        (RIGHT.replace("RULE r", "RULE r AT EDGE") + ' AND a.epc_scheme = "sgtin"', 2, 11,
         "found AT EDGE, expected AT CLOUD or nothing: a gateway compares keys with each other only"),
        (timed("@a + 3 s >= @b"), 2, 39, "without WITHIN, expected one before OVER, as in WITHIN 1 h: without a second "
         "limit every earlier reading would match for ever"),
        (timed("@b - 3 s >= @a"), 2, 39, "every later reading would match for ever"),
        (timed("@a + 3 s >= @b WITHIN 0 s"), 2, 54, "found WITHIN 0, expected more than 0"),
        (timed("@a + 3 s >= @b WITHIN -1 s"), 2, 61, "expected 0 or more"),
        (timed("@a - 3 s >= @b WITHIN 1 s"), 2, 54, "expected at least 3000000 us: nothing lies in between"),
        (timed("@b - 3 s >= @a WITHIN 1 s"), 2, 54, "expected at least 3000000 us"),
        (timed("|@a - @b| <= 3 s WITHIN 1 h"), 2, 56, "the condition has both its limits"),
        (timed("@b - @a IN [2 s, -2 s]"), 2, 51, "expected the lower limit first"),
        (timed("@b - @b IN [1 s, 2 s]"), 2, 45, "found @b twice, expected @a"),
        (timed("@b + 1 s >= @c WITHIN 1 h"), 2, 52, "found @c, expected @a or @b"),
        (timed("@b - @a IN [1 s 2 s]"), 2, 55, "found 2, expected `,`"),
        (RIGHT.replace("RULE r", "RULE r AT HOME"), 2, 11, "found HOME, expected CLOUD or EDGE"),
        (RIGHT.replace("RULE r", "RULE r AT EDGE") + " TOP 2", 2, 11, "a gateway finds all pairs, nothing else"),
        (RIGHT.replace("RULE r", "RULE r AT EDGE") + " KEEP ALL a", 2, 11, "expected AT CLOUD or nothing"),
        (RIGHT.replace("RULE r", "RULE " + "r" * 65), 2, 6, "found a name of 65 letters, expected at most 64"),
        (RIGHT + " TOP 0", 2, 70, "expected a whole number from 1 to 1000"),
        (RIGHT + " TOP 1.5", 2, 70, "expected a whole number from 1 to 1000"),
        (RIGHT + " TOP 2 NEAREST", 2, 72, "found a second TOP or NEAREST"),
        (RIGHT + " KEEP ALL b", 2, 75, "the stream that is named first; exchange the two"),
        (RIGHT + " ONLY UNMATCHED c", 2, 81, "found ONLY UNMATCHED c, expected ONLY UNMATCHED a"),
        (RIGHT + " KEEP ALL a ONLY UNMATCHED a", 2, 77, "found a second KEEP ALL or ONLY UNMATCHED"),
        (RIGHT + " NEAREST ONLY UNMATCHED a", 2, 66, "no pairs come out"),
        (RIGHT + " KEEP a", 2, 71, "found a, expected ALL"),
        (STREAMS.strip() + " OFFSET 1.5 us", 1, 36, "expected whole microseconds"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_its_place(text, line, column, said):
    """Line, column, what was found and what was expected; nothing else is complained about."""
    reported = mistakes(text)
    assert [x[:2] for x in reported] == [(line, column)]
    assert said in reported[0][2]


def test_all_mistakes_of_a_file_are_reported_at_once(tmp_path):
    """A slip in each of three declarations, syntax and sense mixed, each with file:line:column."""
    path = tmp_path / "r.wa"
    path.write_text(
        'STREAM d FROM "x" DELAY 2 sec\nSTREAM e "y"\nRULE r CORRELATE d AS a, f AS b WHERE |@a - @b| <= 1 s OVER 0'
    )
    with pytest.raises(RuleError) as caught:
        load_rules(path)
    places = [line.split(": ")[0] for line in str(caught.value).splitlines()]
    assert places == [f"{path}:1:27", f"{path}:2:10", f"{path}:3:26", f"{path}:3:61"]


def test_a_file_that_is_no_text_is_refused(tmp_path):
    """Missing, not UTF-8, far too large: one mistake each, no traceback."""
    with pytest.raises(RuleError, match="found no readable file"):
        load_rules(tmp_path / "none.wa")
    path = tmp_path / "r.wa"
    path.write_bytes(b"\n\xff")
    with pytest.raises(RuleError, match=r"r\.wa:2:1: found byte 0xff"):
        load_rules(path)
    path.write_bytes(b" " * ((1 << 20) + 1))
    with pytest.raises(RuleError, match="is this the rule file"):
        load_rules(path)


@pytest.mark.parametrize(
    ("written", "lo_s", "hi_s"),
    [
        ("|@a - @b| <= 3 s", -3, 3),
        ("|@b - @a| <= 3 s", -3, 3),
        ("@b - @a IN [-3 s, 3 s]", -3, 3),
        ("@b - @a IN [1 s, 2 s]", 1, 2),
        ("@a - @b IN [1 s, 2 s]", -2, -1),
        ("@b - @a IN [-5 s, -5 s]", -5, -5),
        ("@a + 3 s >= @b WITHIN 60 s", -60, 3),  # b at most 3 s after a, or before it
        ("@a + -3 s >= @b WITHIN 60 s", -60, -3),
        ("@a - 3 s >= @b WITHIN 60 s", -60, -3),
        ("@b - 3 s >= @a WITHIN 60 s", 3, 60),  # b at least 3 s after a
        ("@b + 3 s >= @a WITHIN 60 s", -3, 60),
        ("@a + 60 s >= @b WITHIN 1 min", -60, 60),
    ],
)
def test_every_predicate_is_limits_of_b_less_a(written, lo_s, hi_s):
    """However it is written, the condition is lo <= @b - @a <= hi; equal limits are equal conditions."""
    condition = parse_rules(timed(written)).rules[0].condition
    assert (condition.lo_us, condition.hi_us) == (lo_s * 10**6, hi_s * 10**6)
    assert condition == Condition("between", lo=lo_s * 10**6, hi=hi_s * 10**6, confidence="0.8")


def test_the_longest_duration_is_ten_years():
    """To the microsecond."""
    assert parse_rules(STREAMS.replace("1 s", f"{MAX_DURATION_US} us")).streams[0].delay_us == MAX_DURATION_US
    assert "at most ten years" in mistakes(STREAMS.replace("1 s", f"{MAX_DURATION_US + 1} us"))[0][2]


@pytest.mark.parametrize(
    ("words", "kind", "top_k"),
    [
        ("", "inner", None),
        ("NEAREST", "inner", 1),
        ("TOP 3", "inner", 3),
        ("KEEP ALL a", "left", None),
        ("KEEP ALL a NEAREST", "left", 1),
        ("TOP 1000 KEEP ALL a", "left", 1000),
        ("ONLY UNMATCHED a", "anti", None),
    ],
)
def test_the_words_for_what_comes_out(words, kind, top_k):
    """Result kind and nearest-k, in any order, behind the conditions."""
    for keyed in ("", " AND a.key = b.key"):
        rule = parse_rules(f"{RIGHT}{keyed} {words}").rules[0]
        assert (rule.kind, rule.top_k, rule.key_equal) == (kind, top_k, bool(keyed))


def test_place_and_offset_are_read():
    """AT EDGE, AT CLOUD or neither; an offset may be negative."""
    for words, place in (("AT EDGE", "edge"), ("AT CLOUD", "cloud"), ("", "auto")):
        assert parse_rules(RIGHT.replace("RULE r", f"RULE r {words}")).rules[0].place == place
    assert parse_rules(STREAMS.strip() + " OFFSET -1.5 ms").streams[0].offset_us == -1500


def test_words_of_the_language_can_be_names():
    """A stream TOP, a rule NEAREST, aliases KEEP and ALL."""
    text = 'STREAM TOP FROM "x" DELAY 1 s RULE NEAREST CORRELATE TOP AS KEEP, TOP AS ALL WHERE |@KEEP - @ALL| <= 1 s OVER 1'
    rule = parse_rules(text + " KEEP ALL KEEP").rules[0]
    assert (rule.name, rule.a_alias, rule.kind) == ("NEAREST", "KEEP", "left")


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        (STREAMS + "RULE r \u202eevil", "found \\u202e, expected"),
        ('STREAM d FROM "a" \0 DELAY 1 s', "found \\u0000, expected"),
        ('STREAM d FROM "\u202e\u2066#" DELAY 1 s', 'found # inside "\\u202e\\u2066#"'),
        ('STREAM d FROM "a" AT SITE "s" GATEWAY "\x1b[2J" DELAY 1 s', 'found gateway "\\u001b[2J"'),
    ],
)
def test_a_mistake_shows_what_does_not_print_as_an_escape(text, quoted):
    """Control characters and those that turn the direction of text reach no terminal, nor do those of the file's name."""
    with pytest.raises(RuleError) as caught:
        parse_rules(text, "a\u202eb.wa")
    assert quoted in caught.value.mistakes[0].text
    assert all(line.isprintable() for line in str(caught.value).split("\n"))
    assert str(caught.value).startswith("a\\u202eb.wa:")


def test_each_declaration_is_read_once_wherever_it_stands():
    """The parsed parts are together as long as the text, and mistakes keep the places that they have in the file."""
    declared = "".join(f'STREAM d{n} FROM "a" DELAY 1 s{" " if n % 3 else chr(10)}' for n in range(300))
    text = declared + ' STREAM e FROM "a"\n\n  DELAY 1 sec RULE\n r CORRELATE d1 AS a, none AS b WHERE\n 5 RULE x'
    parts = list(parse._declarations(text, []))
    assert "".join(part.text for part in parts) == text
    assert all(text[part.at :].startswith(part.text) for part in parts)
    last = text.count("\n") + 1
    assert [(line, column) for line, column, _ in mistakes(text)] == [(last - 2, 11), (last, 2), (last, 10)]


durations = st.integers(0, 10**12)
decimals = st.integers(1, 10**6).map(lambda n: Fraction(n, 10**6))


@st.composite
def written_rules(draw):
    """Any rule that can be written; from few values, so that two are often equal."""
    few = st.sampled_from([0, 5, 10**12])
    length = draw(st.none() | st.tuples(few, few).map(lambda x: tuple(sorted(x))))
    site, gateway = draw(st.sampled_from([(None, None), ("hall", None), ("hall", "g"), ("hall", "h")]))
    a = Stream("d", "x/+", draw(few), length, site, draw(few) - draw(few), gateway)
    b = draw(st.sampled_from([a, Stream("e", "#", draw(durations))]))
    lo, hi = sorted((draw(few) - draw(few), draw(few) - draw(few)))
    ct = draw(st.sampled_from([Fraction(4, 5), Fraction(1)]) | decimals)
    timing = (
        Condition("within", d=hi, confidence=ct)
        if lo == -hi and draw(st.booleans())
        else Condition("between", lo=lo, hi=hi, confidence=ct)
    )
    kind, top_k, place = draw(
        st.sampled_from(
            [("inner", None, p) for p in ("auto", "edge", "cloud")]
            + [("inner", 1, "auto"), ("left", 3, "cloud"), ("left", None, "auto"), ("anti", None, "auto")]
        )
    )
    keyed = draw(st.booleans())
    tag = st.sampled_from([TagIs("key", "hot"), TagIs("gtin", "80614141123458", False), TagIs("epc_scheme", "sscc")])
    a_tags, b_tags = (() if place == "edge" else tuple(draw(st.lists(tag, max_size=2, unique=True))) for _ in range(2))
    return CorrelateRule(
        draw(st.sampled_from(["r", "OVER"])), a, b, timing, keyed, "a", "b", kind=kind, top_k=top_k, place=place,
        a_tags=a_tags, b_tags=b_tags,
    )  # fmt: skip


@given(written_rules())
@settings(max_examples=examples(200), deadline=None)
def test_the_text_of_a_rule_is_read_back_as_the_rule(rule):
    """`text` and `parse_rules` are inverse."""
    assert parse_rules(rule.text()).rules == (rule,)
    assert parse_rules(rule.text()).rules[0].text() == rule.text()


@given(written_rules(), written_rules())
@settings(max_examples=examples(400), deadline=None)
def test_equal_texts_are_equal_rules(one, other):
    """Text decides equality, in both directions."""
    assert (one.text() == other.text()) == (one == other)


@given(st.text(alphabet='STREAMRULE dFOM"a#DLY1s.,|@-<=>+[]%\n', max_size=80))
@settings(max_examples=examples(300), deadline=None)
def test_no_text_makes_the_parser_fail_in_any_other_way(text):
    """Rules or RuleError, nothing else."""
    try:
        parse_rules(text)
    except RuleError as error:
        assert error.mistakes  # noqa: PT017 - either outcome is right


@pytest.mark.parametrize(
    ("pattern", "inside", "outside"),
    [
        ("dock/tags", ["dock/tags"], ["dock/tags/x", "dock", "dockXtags"]),
        ("dock/+", ["dock/tags", "dock/"], ["dock", "dock/a/b"]),
        ("dock/#", ["dock", "dock/a", "dock/a/b"], ["docks", "a/dock"]),
        ("+/tags/#", ["a/tags", "a/tags/b"], ["tags", "a/b/tags"]),
        ("#", ["dock", "a/b/c"], ["$rule/x"]),
        ("a.b/(c", ["a.b/(c"], ["axb/(c"]),
        ("$rule/+", ["$rule/x"], ["rule/x", "$rule/x/y"]),
        ("+/x", ["rule/x"], ["$rule/x"]),
    ],
)
def test_patterns_cover_what_mqtt_topic_filters_cover(pattern, inside, outside):
    """+ is one level, # the rest and its parent, everything else itself."""
    stream = Stream("s", pattern, 0)
    assert all(stream.matches("any", "any", name) for name in inside)
    assert not any(stream.matches("any", "any", name) for name in outside)
    assert name_regex(pattern)


EVENTS = STREAMS + "RULE r SEQ(d x, d y) WITHIN 5 s WHERE "
STATES = STREAMS + "RULE r POSSIBLY {} WINDOW 4 IN GROUP g"
DEEP = 20_000


@pytest.mark.parametrize(
    ("text", "line", "column", "said"),
    [
        (EVENTS + "NOT " * DEEP + "x.value > 1", 2, 1, "found a declaration with hundreds of parts inside each other"),
        (EVENTS + "x.value + " * DEEP + "1 > 1", 2, 1, "found a declaration with hundreds of parts inside each other"),
        (STATES.format("NOT (" * DEEP + "d" + ")" * DEEP), 2, 1, "found a declaration with hundreds of parts"),
        (EVENTS + "NOT " * 100 + "x.value > 1", 2, 167, "found an expression nested more than 32 deep"),
        (STREAMS + "RULE r " + "SEQ(" * DEEP + "d x, d y" + ")" * DEEP + " WITHIN 1 s", 2, 1, "found a declaration"),
        (STREAMS.replace("1", "9" * DEEP), 1, 25, f"found a number of {DEEP} digits, expected at most 32"),
        (EVENTS + "x.value > 1" + "0" * DEEP, 2, 49, f"found a number of {DEEP + 1} digits"),
        ("RULE " * DEEP, 1, 5, "found the end of the declaration, expected a name"),
        ("\ud800" * DEEP, 1, 1, "found \\ud800, expected STREAM or RULE"),
        ("\r" * DEEP + "\u2028", 1, DEEP + 2, "found the end of the file"),
    ],
    ids=["not", "sum", "predicate", "nested", "sequences", "duration", "number", "rules", "surrogates", "line ends"],
)
def test_a_text_of_any_depth_and_length_has_mistakes_with_places(text, line, column, said):
    """Neither Python's limit of recursion nor that of digits ends the command."""
    first = mistakes(text)[0]
    assert first[:2] == (line, column)
    assert first[2].startswith(said)


def test_parentheses_alone_are_no_depth():
    """They make nothing deeper."""
    parse_rules(EVENTS + "(" * DEEP + "x.value" + ")" * DEEP + " > 1")
