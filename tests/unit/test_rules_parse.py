"""The rule language: what is read from a right file, and what is said about a wrong one."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whenabouts_cloud.correlation.condition import Condition
from whenabouts_cloud.rules import CorrelateRule, RuleError, Stream, load_rules, parse_rules
from whenabouts_cloud.rules.model import name_regex

STREAMS = 'STREAM d FROM "a" DELAY 1 s\n'
RIGHT = STREAMS + "RULE r CORRELATE d AS a, d AS b WHERE |@a - @b| <= 3 s OVER 80 %"


def mistakes(text):
    with pytest.raises(RuleError) as caught:
        parse_rules(text)
    return [(m.line, m.column, m.text) for m in caught.value.mistakes]


def test_the_example_of_the_design_is_read_exactly():
    """Streams, units, lengths, site, percentage, key equality; comments and wildcards do not clash."""
    found = parse_rules("""
        # STREAM no FROM "comment"
        STREAM dock  FROM "dock/tags"   DELAY 2 s  LENGTH 20 ms .. 300 ms
        STREAM shelf FROM "shelf/#" AT SITE "warehouse" DELAY 1.5s   # the rest is a comment
        RULE handover
          CORRELATE dock AS a, shelf AS b
          WHERE |@a - @b| <= 10 s OVER 80 % AND a.key = b.key
    """)
    dock = Stream("dock", "dock/tags", 2_000_000, (20_000, 300_000))
    shelf = Stream("shelf", "shelf/#", 1_500_000, None, "warehouse")
    assert found.streams == (dock, shelf)
    assert found.rules == (
        CorrelateRule("handover", dock, shelf, Condition("within", d=10_000_000, confidence="0.8"), True),
    )


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
        (RIGHT + " AND a.rssi > 3", 2, 66, "not supported yet; expected `a.key = b.key`"),
        (RIGHT.replace("|@a - @b| <= 3 s", "@a + 3 s >= @b"), 2, 39, "the form `@a + d >= @b`, which is not supported yet"),
        (RIGHT.replace("|@a - @b| <= 3 s", "@b - 3 s >= @a"), 2, 39, "the form `@b - d >= @a`, which is not supported yet"),
        (RIGHT.replace("|@a - @b| <= 3 s", "@b - @a IN [-1 s, 2 s]"), 2, 39, "which is not supported yet"),
        (RIGHT.replace("RULE r", "RULE r AT EDGE"), 2, 11, "AT EDGE, which is not supported yet"),
        (STREAMS + "RULE r SEQ(d a, !d b) WITHIN 1 h PER key", 2, 8, "found SEQ, which is not supported yet"),
        (STREAMS + 'RULE r DEFINITELY x.y = "z" WINDOW 4', 2, 8, "found DEFINITELY, which is not supported yet"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_its_place(text, line, column, said):
    """Line, column, what was found and what was expected; nothing else is complained about."""
    found = mistakes(text)
    assert [x[:2] for x in found] == [(line, column)]
    assert said in found[0][2]


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


durations = st.integers(0, 10**12)
decimals = st.integers(1, 10**6).map(lambda n: Fraction(n, 10**6))


@given(durations, durations, durations, decimals, st.booleans(), st.sampled_from([None, "hall"]))
@settings(max_examples=60, deadline=None)
def test_the_text_of_a_rule_is_read_back_as_the_rule(delay, low, more, ct, key_equal, site):
    """`text` and `parse_rules` are inverse, so equal texts are equal rules."""
    a, b = Stream("d", "x/+", delay, (low, low + more), site), Stream("e", "#", delay)
    job = CorrelateRule("r", a, b, Condition("within", d=low, confidence=ct), key_equal)
    assert parse_rules(job.text()).rules == (job,)


@given(st.text(alphabet='STREAMRULE dFOM"a#DLY1s.,|@-<=%\n', max_size=80))
@settings(max_examples=300, deadline=None)
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
        ("#", ["dock", "a/b/c"], []),
        ("a.b/(c", ["a.b/(c"], ["axb/(c"]),
    ],
)
def test_patterns_cover_what_mqtt_topic_filters_cover(pattern, inside, outside):
    """+ is one level, # the rest and its parent, everything else itself."""
    stream = Stream("s", pattern, 0)
    assert all(stream.matches("any", name) for name in inside)
    assert not any(stream.matches("any", name) for name in outside)
    assert name_regex(pattern)
