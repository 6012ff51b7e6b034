"""The language of event patterns: the pattern read from a valid text, its plan, and the mistakes of an invalid one."""

import re
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from support.cloud.patterns import patterns
from support.search import examples
from whenabouts_cloud.cep import Pattern
from whenabouts_cloud.language.event_conditions import Conditions
from whenabouts_cloud.language.grammar import Part, tree_of
from whenabouts_cloud.language.pattern import read_pattern
from whenabouts_cloud.language.timing import Notes
from whenabouts_cloud.pattern.elements import And, Event, Negated, Or, Seq
from whenabouts_cloud.pattern.expressions import (
    ALLEN,
    Attribute,
    Operation,
    Reference,
    conjuncts,
    program,
    split_column,
    words_of,
)
from whenabouts_cloud.pattern.plan import NEGATED, EventClass, Negation, Step
from whenabouts_cloud.pattern.unfold import orders, shapes
from whenabouts_cloud.rules import CepRule, RuleError, parse_rules

NAMES = ("A", "B", "C", "D")
STREAMS = 'STREAM s FROM "s" DELAY 2 s LENGTH 0 s .. 3 s\nSTREAM t FROM "t" DELAY 1 s OFFSET -4 s\n'


def planned(text):
    return Pattern.parse(text).plan(NAMES)


def mistakes(text, unit_us=1):
    with pytest.raises(RuleError) as caught:
        Pattern.parse(text, unit_us)
    return [(m.line, m.column, m.text) for m in caught.value.mistakes]


def test_the_pattern_of_the_paper():
    """A chain with one gap: classes by type, each positive after all before it, the negated type between its neighbours."""
    pattern = Pattern.parse("SEQ(A, B, !C, D) WITHIN 40", unit_us=1000)
    assert pattern == Pattern(Seq((Event(("A",)), Event(("B",)), Negated(("C",)), Event(("D",)))), 40_000)
    assert (pattern.types, pattern.names) == (("A", "B", "C", "D"), ("A", "B", "D"))
    plan = pattern.plan(["D", "C", "B", "A", "other"], longest=7)
    [alternative] = plan.alternatives
    assert [plan.classes[c] for c in alternative.classes] == [EventClass(frozenset({c})) for c in (3, 2, 0)]
    assert (alternative.before, alternative.columns, alternative.is_chain) == ((0, 1, 3), (0, 1, 2), True)
    [negation] = alternative.negations
    assert plan.classes[negation.event_class] == EventClass(frozenset({1}))
    assert (negation.left, negation.right) == (0b010, 0b100)
    assert (plan.window, plan.width, plan.longest, plan.mode, plan.skip, plan.per_key) == (
        40_000,
        3,
        7,
        "certain",
        "none",
        True,
    )


@pytest.mark.parametrize(
    ("text", "gaps"),
    [
        ("SEQ(!C, A, B)", {(0, 1)}),
        ("SEQ(A, B, !C)", {(2, 0)}),
        ("SEQ(A, !C, !D, B)", {(1, 2)}),
        ("SEQ(A, SEQ(!C, B), D)", {(1, 2)}),  # a gap at the edge of an inner sequence goes on to the outer neighbour
        ("SEQ(SEQ(A, !C), B)", {(1, 2)}),
        ("AND(A, !C, B)", {(0, 0)}),
        ("SEQ(A, AND(B, !C, D), A)", {(1, 8)}),
        ("SEQ(AND(A, B), !C, AND(D, A))", {(3, 12)}),
        ("AND(SEQ(A, !C, B), D)", {(1, 2)}),
        ("SEQ(A{2,2}, !C, B{2,2})", {(2, 4)}),
    ],
)
def test_a_gap_lies_between_what_stands_around_it(text, gaps):
    """Borders as bits of positives: the last ones before, the first ones behind, of the groups around too."""
    [alternative] = planned(f"{text} WITHIN 40").alternatives
    assert {(n.left, n.right) for n in alternative.negations} == gaps
    assert len(alternative.negations) == text.count("!")


@pytest.mark.parametrize(
    ("text", "before"),
    [
        ("AND(A, B)", (0, 0)),
        ("SEQ(A, AND(B, C), D)", (0, 1, 1, 7)),
        ("AND(SEQ(A, B), SEQ(C, D))", (0, 1, 0, 4)),
        ("SEQ(AND(A, SEQ(B, C)), D)", (0, 0, 2, 7)),
    ],
)
def test_groups_give_a_partial_order(text, before):
    """Bits of what comes before each positive."""
    assert planned(f"{text} WITHIN 40").alternatives[0].before == before


def test_alternatives_and_repetitions_have_separate_places():
    """Places in the order of the text; an alternative leaves those empty that it does not use."""
    pattern = Pattern.parse("SEQ(OR(A, SEQ(B x, C)), D{1,2} d, (A | B)+ e) WITHIN 40")
    assert pattern.names[:5] == ("A", "x", "C", "d[1]", "d[2]")
    assert pattern.names[5:] == tuple(f"e[{i}]" for i in range(1, 9))
    plan = pattern.plan(NAMES)
    assert (plan.width, len(plan.alternatives)) == (13, 2 * 2 * 8)
    assert plan.alternatives[0].columns == (0, 3, 5)
    assert (1, 2, 3, 4, 5, 6) in {v.columns for v in plan.alternatives}
    assert EventClass(frozenset({0, 1})) in plan.classes
    assert Pattern.parse("SEQ(A, A, B) WITHIN 1").names == ("A#1", "A#2", "B")


def test_elements_of_one_class_share_it():
    """Repeated types are one class; so is a negated element of the same type."""
    assert len(planned("SEQ(A, B, A, !A, B) WITHIN 40").classes) == 2


def test_conditions_go_where_they_can_be_decided():
    """On one element into its class, across elements into the alternative, on a negated one into its negation."""
    where = 'a.value > 3 AND c.antenna != "left" AND c.value = a.value AND b.x - a.x < 2 ms'
    plan = planned(f"SEQ(A a, !C c, B b) WITHIN 40 WHERE {where}")
    [alternative] = plan.alternatives
    assert plan.attributes == ("value", 'antenna="left"', "x")
    value, left, x = range(3)
    constant = Step("constant", value=3.0)
    assert plan.classes[alternative.classes[0]].condition == (Step("attribute", 0, value), constant, Step(">"))
    [negation] = alternative.negations
    indicator = (Step("attribute", 0, left), Step("constant", value=0.0), Step("="))
    assert plan.classes[negation.event_class] == EventClass(frozenset({2}), indicator)
    assert negation.condition == (Step("attribute", NEGATED, value), Step("attribute", 0, value), Step("="))
    difference = (Step("attribute", 1, x), Step("attribute", 0, x), Step("-"))
    assert alternative.conditions == ((*difference, Step("constant", value=2000.0), Step("<")),)
    assert plan.classes[alternative.classes[1]].condition == ()


@pytest.mark.parametrize(
    ("condition", "per_alternative"),
    [
        ("b.value > a.value", [1, 2, 3]),  # for every repetition
        ("b[1].value > a.value", [1, 1, 1]),
        ("b[3].value > a.value", [0, 0, 1]),  # no condition where there is no third
        ("b[LAST].value > a.value", [1, 1, 1]),
        ("b.value > b[PREV].value", [0, 1, 2]),
        ("b.value > 3", [0, 0, 0]),  # is in the class
    ],
)
def test_conditions_on_a_repeated_element(condition, per_alternative):
    """Numbers of conditions of the alternatives with one, two and three repetitions."""
    plan = planned(f"SEQ(A a, B{{1,3}} b) WITHIN 40 WHERE {condition}")
    assert [len(v.conditions) for v in plan.alternatives] == per_alternative


def test_attributes_are_named_with_or_without_attrs():
    """`attrs.` only matters where a field of a reading has the same name; a bare attribute is true unless it is 0."""
    assert planned("SEQ(A) WITHIN 1 WHERE A.attrs.rssi > A.rssi").attributes == ("rssi",)
    assert planned("SEQ(A) WITHIN 1 WHERE A.attrs.value > A.value").attributes == ("attrs.value", "value")
    assert planned("SEQ(A) WITHIN 1 WHERE A.open") == planned("SEQ(A) WITHIN 1 WHERE A.open != 0")
    assert split_column('antenna="a=""') == ("antenna", 'a="')
    assert split_column("t_min") == ("t_min", None)


def test_words_of_names_mean_the_key_and_attrs_the_attribute_of_that_name():
    """A bare one is true for a key that holds it, and is written so again."""
    where = 'A.gtin AND A.attrs.uri = "x" AND A.uri != A.attrs.gtin AND NOT A.epc_scheme'
    pattern = Pattern.parse(f"SEQ(A) WITHIN 1 WHERE {where}")
    assert pattern.plan(["A"]).attributes == ("gtin", 'attrs.uri="x"', "uri", "attrs.gtin", "epc_scheme")
    assert words_of(pattern.plan(["A"])) == ("uri", "gtin", "epc_scheme")
    assert "WHERE A.gtin AND" in pattern.text()
    assert Pattern.parse(pattern.text(), 1).text() == pattern.text()


def test_exactly_one_of_the_thirteen_relations_holds():
    """For any two closed intervals, those of length zero included; and each is the inverse of its inverse."""
    inverse = {"before": "after", "meets": "met_by", "overlaps": "overlapped_by", "starts": "started_by",
               "during": "contains", "finishes": "finished_by", "equals": "equals"}  # fmt: skip
    intervals = list(combinations_with_replacement(range(4), 2))
    seen = set()
    for a in intervals:
        for b in intervals:
            holding = [relation for relation in ALLEN if relates(relation, a, b)]
            assert len(holding) == 1, (a, b, holding)
            seen.update(holding)
            for one, other in inverse.items():
                assert relates(one, a, b) == relates(other, b, a)
    assert seen == set(ALLEN)
    assert len(ALLEN) == 13
    for relation, a, b in (
        ("before", (0, 1), (2, 3)), ("meets", (0, 1), (1, 3)), ("overlaps", (0, 2), (1, 3)), ("starts", (0, 1), (0, 3)),
        ("during", (1, 2), (0, 3)), ("finishes", (2, 3), (0, 3)), ("equals", (1, 1), (1, 1)),
    ):  # fmt: skip
        assert relates(relation, a, b)


@cache
def related(relation):
    """The plan of two events in a relation."""
    words = relation.upper().replace("_", " ")
    return Pattern.parse(f"AND(A a, B b) WITHIN 9 WHERE a {words} b").plan(["A", "B"])


def relates(relation, a, b):
    """True if the relation holds, evaluated by the steps to which it is compiled."""
    plan = related(relation)
    [steps] = plan.alternatives[0].conditions
    stack = []
    for step in steps:
        if step.op == "attribute":
            stack.append((a, b)[step.element][("t_min", "t_max").index(plan.attributes[step.column])])
        else:
            y, x = stack.pop(), stack.pop()
            stack.append({"<": x < y, ">": x > y, "=": x == y, "and": bool(x and y)}[step.op])
    return stack == [True]


def test_next_and_strict_are_negations():
    """Next: nothing between neighbours that could have come; strict: nothing at all. Orders of an AND are alternatives."""
    [alternative] = planned("SEQ(A, B, C) WITHIN 9 NEXT").alternatives
    assert alternative.negations == (Negation(1, 1, 2), Negation(2, 2, 4))
    plan = planned("SEQ(A, B) WITHIN 9 STRICT")
    [negation] = plan.alternatives[0].negations
    assert plan.classes[negation.event_class] == EventClass(frozenset(range(len(NAMES))))
    plan = planned("SEQ(A, AND(B, C), D) WITHIN 9 NEXT")
    assert [v.columns for v in plan.alternatives] == [(0, 1, 2, 3), (0, 2, 1, 3)]
    assert all(v.is_chain for v in plan.alternatives)
    assert [len(v.negations) for v in plan.alternatives] == [4, 4]  # after A neither B nor C may be passed over
    [shape] = shapes(Pattern.parse("SEQ(A, AND(B, C), D) WITHIN 9"))
    assert list(orders(shape)) == [(0, 1, 2, 3), (0, 2, 1, 3)]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("", {}),
        ("PER key", {}),
        ("ACROSS KEYS", {"per_key": False}),
        ("CERTAIN", {}),
        ("POSSIBLE", {"mode": "possible"}),
        ("CAUSAL", {"mode": "causal"}),
        ("OVER 90 %", {"mode": "over", "probability": Fraction(9, 10)}),
        ("NEXT", {"select": "next"}),
        ("STRICT", {"select": "strict"}),
        ("SKIP TO NEXT", {"skip": "to_next"}),
        ("NEXT SKIP PAST LAST", {"select": "next", "skip": "past_last"}),
        ("WHEN SURE", {}),
        ("ON ARRIVAL PER key OVER 0.5", {"emit": "arrival", "mode": "over", "probability": Fraction(1, 2)}),
    ],
)
def test_the_words_after_the_window(words, expected):
    """In any order, each at most once, with their defaults."""
    assert Pattern.parse(f"SEQ(A) WITHIN 5 {words}") == Pattern(Seq((Event(("A",)),)), 5, **expected)


def test_windows_and_groups_as_they_are_written():
    """Units, plain numbers, strict windows; NOT for !, {n}, {n,}, a name that is the type."""
    assert Pattern.parse("SEQ(A) WITHIN < 1.5 s").window_us == 1_500_000
    assert Pattern.parse("SEQ(A) WITHIN < 40", 1000).strict_window
    assert Pattern.parse("SEQ(A) WITHIN 0.5", 1000).window_us == 500
    assert Pattern.parse("AND(A A, OR(B{3} b, C{2,} c), NOT D d) WITHIN 0").root == And(
        (Event(("A",)), Or((Event(("B",), "b", 3, 3), Event(("C",), "c", 2, 8))), Negated(("D",), "d"))
    )


@pytest.mark.parametrize(
    ("text", "column", "said"),
    [
        ("", 1, "found the end of the file, expected AND, OR or SEQ"),
        ("SEQ", 4, "expected `(`"),
        ("SEQ()", 5, "found ), expected"),
        ("SEQ(A, B", 9, "found the end of the declaration, expected"),
        ("SEQ(A, B)", 10, "expected WITHIN"),
        ("SEQ(A, B) WITHIN", 17, "expected `<` or a number"),
        ("SEQ(A, B) WITHIN -3", 18, "found -, expected `<` or a number"),
        ("SEQ(A, B) WITHIN 3 sec", 20, "did you mean s?"),
        ("SEQ(A, B) WITHIN 3 PER tag", 24, "found PER tag, expected PER key, or ACROSS KEYS"),
        ("SEQ(A, B) WITHIN 3 PER key PER key", 28, "found a second PER or ACROSS KEYS, expected one"),
        ("SEQ(A, B) WITHIN 3 CERTAIN POSSIBLE", 28, "found a second CERTAIN, POSSIBLE, OVER or CAUSAL"),
        ("SEQ(A, B) WITHIN 3 OVER 90", 25, "did you mean 90 %?"),
        ("SEQ(A, B) WITHIN < 0", 20, "expected more than 0"),
        ("SEQ(A, B) WITHIN 0.5", 18, "expected whole microseconds"),
        ("SEQ(A, B) WITHIN 999999999999999", 18, "at most ten years"),
        ("SEQ(!A) WITHIN 3", 1, "found SEQ with nothing but negated elements"),
        ("SEQ(A, AND(!B)) WITHIN 3", 8, "found AND with nothing but negated elements"),
        ("SEQ(A, OR(!B, C)) WITHIN 3", 11, "found !B as an alternative, expected it inside SEQ or AND"),
        ("SEQ(A, !SEQ(B, C)) WITHIN 3", 12, "found (, expected"),
        ("SEQ(A, !B+) WITHIN 3", 10, "found a repetition of a negated element, expected none"),
        ("SEQ(A, B{0,2}) WITHIN 3", 10, "found 0 repetitions, expected a whole number from 1 to 16"),
        ("SEQ(A, B{1,17}) WITHIN 3", 12, "found 17 repetitions, expected a whole number from 1 to 16"),
        ("SEQ(A, B{3,2}) WITHIN 3", 9, "found 3 to 2 repetitions, expected the smaller number first"),
        ("SEQ(A, (B | B)) WITHIN 3", 13, "found the type B twice in one element"),
        ("SEQ(A x, B x) WITHIN 3", 12, "found x as a name a second time"),
        ("SEQ(A, B A) WITHIN 3", 10, "found A as a name a second time"),
        ("SEQ(A{1,4}, B{1,5}, C{1,5}, A{1,5} d) WITHIN 3", 1, "found 500 alternatives"),
        ("SEQ(A{2,9}, B{2,9}) WITHIN 3", 1, "found matches of up to 18 events, expected at most 16"),
        ("SEQ(A{16}, A{16}, A{16}, A{16}, A) WITHIN 3", 33, "found more than 64 places"),
        ("SEQ(" + "!A, " * 17 + "B) WITHIN 3", 1, "found 17 negated elements, expected at most 16"),
        ("SEQ(" * 9 + "A" + ")" * 9 + " WITHIN 3", 33, "found groups nested more than 8 deep"),
        ("AND(A a, A b, A c, A d, A e, A f) WITHIN 3 NEXT", 1, "found more than 256 alternatives, expected no more: with"),
        ("AND(A, B) WITHIN 3 NEXT POSSIBLE", 1, "found NEXT with an AND in POSSIBLE, expected CERTAIN or CAUSAL"),
        ("SEQ(A, AND(B, C)) WITHIN 3 STRICT OVER 50 %", 1, "found STRICT with an AND in OVER, expected CERTAIN or CAUSAL"),
        ("SEQ(A) WITHIN 3 SKIP TO NEXT ON ARRIVAL", 17, "found SKIP with ON ARRIVAL, expected WHEN SURE"),
        ("SEQ(A, B) WITHIN 3 WHERE x.a > 3", 26, "found x, expected one of the elements, which are A, B"),
        ("SEQ(shelf, B) WITHIN 3 WHERE shelv.a > 3", 30, "did you mean shelf?"),
        ("SEQ(A, A) WITHIN 3 WHERE A.a > 3", 26, "which is 2 elements; expected a different name for each, as in A x"),
        ("SEQ(A) WITHIN 3 WHERE A.a > \"x\"", 27, 'found > "x", expected = or !='),
        ("SEQ(A) WITHIN 3 WHERE \"x\" = \"x\"", 23, 'expected an attribute'),
        ("SEQ(A) WITHIN 3 WHERE A.a + 3", 23, "found the number A.a + 3, expected a condition"),
        ("SEQ(A) WITHIN 3 WHERE (A.a > 3) + 1 > 2", 24, "found the condition A.a > 3, expected a number"),
        ("SEQ(A) WITHIN 3 WHERE A.a + \"x\" > 2", 29, 'found the text "x", expected a number'),
        ("SEQ(A) WITHIN 3 WHERE 3 > 2", 23, "found a condition that names no element"),
        ("SEQ(A) WITHIN 3 WHERE A.attrs > 2", 25, "found attrs, expected an attribute"),
        ("SEQ(A) WITHIN 3 WHERE A.a.b > 2", 25, "found a.b, expected a or attrs.b"),
        ("SEQ(A) WITHIN 3 WHERE A[1].a > 2", 25, "found A[1], expected A: it is not repeated"),
        ("SEQ(A+) WITHIN 3 WHERE A[9].a > 2", 26, "found A[9], expected a whole number from 1 to 8"),
        ("SEQ(A) WITHIN 3 WHERE A.a > 2 sec", 31, "did you mean s?"),
        ("SEQ(A, !B, !C, D) WITHIN 3 WHERE B.a > C.a", 34, "found B and C in one condition, both negated"),
        ("OR(A, B) WITHIN 3 WHERE A.a > B.a", 25, "found a condition on A and B, which are never in one match"),
        ("SEQ(A) WITHIN 3 WHERE " + "(" * 3 + "-" * 40 + "A.a > 2)))", 57, "found an expression nested more than 32 deep"),
        ("SEQ(A) WITHIN 3 WHERE A.gtin = 80614141123458", 23,
         "found A.gtin compared with the number 80614141123458, expected a text in quotes"),
        ("SEQ(A, B) WITHIN 3 WHERE A.gtin < B.gtin", 26, "found A.gtin <, expected = or !=: text has no order here"),
        ("SEQ(A) WITHIN 3 WHERE A.gtin + 1 > 2", 23, "found the text A.gtin, expected a number or an attribute"),
        ("SEQ(A) WITHIN 3 WHERE A.gtin = \"80614141123459\"", 23, "expected 8 as the last digit, which checks the others"),
        ("SEQ(A) WITHIN 3 WHERE A.epc_scheme != \"sgtin-96\"", 23, "expected one of sgtin, sscc"),
        ("SEQ(A) WITHIN 3 WHERE A.a > " + "9" * 400, 29, "found a number of 400 digits"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_its_place(text, column, said):
    """Line, column, what was found and what was expected; nothing else is complained about."""
    reported = mistakes(text)
    assert [x[:2] for x in reported] == [(1, column)], reported
    assert said in reported[0][2]


def test_all_mistakes_of_a_pattern_are_reported_at_once():
    """In elements, window, options and conditions."""
    text = 'SEQ(A{0}, !B+, (C | C)) WITHIN 3 sec PER tag\n WHERE x.a > 3 AND A.z > "k" STRICT\n NEXT'
    assert [x[:2] for x in mistakes(text)] == [(1, 7), (1, 13), (1, 21), (1, 34), (1, 42), (2, 8), (2, 24), (3, 2)]


def test_what_only_the_plan_can_find_is_a_value_error():
    """Unknown types, a name twice, a condition of a pattern made by hand that names nothing."""
    pattern = Pattern.parse("SEQ(A, X, !Y) WITHIN 3")
    with pytest.raises(ValueError, match=re.escape("found the types X, Y, expected of A, B")):
        pattern.plan(["A", "B"])
    with pytest.raises(ValueError, match="expected each once"):
        pattern.plan(["A", "X", "Y", "A"])
    with pytest.raises(ValueError, match="expected 0 or more"):
        pattern.plan(["A", "X", "Y"], longest=-1)
    where = (Operation(">", (Attribute(Reference("q"), "value"), Attribute(Reference("A"), "value"))),)
    deep = Attribute(Reference("A"), "value")
    for _ in range(63):
        deep = Operation("+", (Attribute(Reference("A"), "value"), deep))
    with pytest.raises(ValueError, match="keeps 65 numbers, expected less than 64"):
        Pattern(pattern.root, 3, where=(Operation(">", (deep, deep)),)).plan(["A", "X", "Y"])
    with pytest.raises(ValueError, match="found q in a condition, which is 0 elements"):
        Pattern(pattern.root, 3, where=where).plan(["A", "X", "Y"])


@given(patterns())
@settings(max_examples=examples(300), deadline=None)
def test_the_text_of_a_pattern_is_read_back_as_the_pattern(pattern):
    """`text` and `parse` are inverse, so equal texts are equal patterns; and every pattern that is read has a plan."""
    try:
        parsed = Pattern.parse(pattern.text())
    except RuleError as error:
        above_a_limit = re.search(
            r"(alternatives|up to \d+ events|more than \d+ conditions|negations in one|steps of|with an AND in)",
            str(error),
        )
        assume(not above_a_limit and "never in one match" not in str(error))
        raise
    assert parsed == pattern
    assert parsed.text() == pattern.text()
    assert len(parsed.plan("ABC").alternatives) >= 1


@given(st.text(alphabet='SEQANDOR(,)!|{}+ab 12.WITHIN<PERkeyWHERE"=-*[]NEXT\n', max_size=80))
@settings(max_examples=examples(300), deadline=None)
def test_no_text_makes_the_parser_fail_in_any_other_way(text):
    """A pattern or RuleError, nothing else."""
    for one in (text, f"SEQ(A, {text}) WITHIN 3", f"SEQ(A) WITHIN 3 WHERE {text}"):
        try:
            Pattern.parse(one)
        except RuleError as error:
            assert error.mistakes  # noqa: PT017 - either outcome is right


def test_very_long_conditions_are_refused_or_read():
    """Thousands of brackets, operations and alternatives: a mistake, never a broken stack."""
    for text in ("(" * 5000 + "A.a" + ")" * 5000 + " > 3", "A.a" + " + 1" * 5000 + " > 3", "NOT " * 5000 + "A.a > 3"):
        try:
            Pattern.parse(f"SEQ(A) WITHIN 3 WHERE {text}")
        except RuleError as error:
            assert "found" in str(error)  # noqa: PT017 - either outcome is right
    assert "steps" in mistakes("SEQ(A) WITHIN 3 WHERE " + " OR ".join(["A.a > 3"] * 5000))[0][2]


def test_a_rule_knows_its_streams_its_bound_and_its_longest_stamp():
    """Types are streams; K covers the widest pair of delays and offsets; a stream without LENGTH counts as the window."""
    parsed = parse_rules(STREAMS + "RULE r AT CLOUD SEQ(t a, !s, t b) WITHIN 1 h PER key OVER 90 %")
    [rule] = parsed.rules
    assert isinstance(rule, CepRule)
    assert (rule.name, rule.type_names, rule.place) == ("r", ("t", "s"), "cloud")
    assert rule.lateness_us == 5_000_000  # of t, whose stamps are 4 s earlier than the clock, less than s's 0
    assert rule.longest_us == 3_600_000_000
    assert rule.plan() == rule.pattern.plan(("t", "s"), 3_600_000_000)
    assert (parsed.cep_rules, parsed.correlate_rules) == ((rule,), ())
    assert parse_rules(rule.text()).rules == (rule,)
    [alone] = parse_rules(STREAMS + "RULE r SEQ(s) WITHIN 1 h").rules
    assert (alone.lateness_us, alone.longest_us) == (2_000_000, 3_000_000)


@pytest.mark.parametrize(
    ("rule", "column", "said"),
    [
        ("RULE r SEQ(s, u) WITHIN 1 h", 15, "found u, expected one of the declared streams"),
        ("RULE r SEQ(s, t) WITHIN 40", 25, "found 40 without a unit, expected one as in 40 s"),
        ("RULE r AT EDGE SEQ(s, t) WITHIN 1 h", 11, "a gateway runs CORRELATE rules only"),
        ("RULE r NOT s", 8, "found NOT, expected AND, AT, CORRELATE, DEFINITELY, OR, POSSIBLY or SEQ"),
    ],
)
def test_a_mistake_in_a_rule_is_named_with_its_place(rule, column, said):
    """In a file, under its line."""
    with pytest.raises(RuleError) as caught:
        parse_rules(STREAMS + rule)
    assert [(m.line, m.column) for m in caught.value.mistakes] == [(3, column)]
    assert said in caught.value.mistakes[0].text


def test_the_parts_that_read_a_pattern():
    """Tree, pattern (`whenabouts_cloud.language.sequences`) and conditions, each by itself; the caller checks types."""
    text, noted, seen = "SEQ(A a, !B) WITHIN 3 WHERE a.x > 1 AND (a.y < 2 AND a.z)", [], []
    tree = tree_of(Part(text), "pattern", text, noted)
    pattern = read_pattern(tree, Notes(noted), seen.append, None)
    assert (pattern, [str(x) for x in seen], len(noted)) == (None, ["A", "B"], 1)
    where = next(x for x in tree.children if x.data == "where").children[0]
    conditions = Conditions(Notes(noted), [(Event(("A",), "a"), None)])
    terms = conditions.read(where)
    assert [x.text() for x in terms] == ["a.x > 1", "a.y < 2", "a.z != 0"]
    assert [x for one in terms for x in conjuncts(one)] == terms
    assert len(program(terms[0], lambda _: 0, {"x": 3}.__getitem__)) == 3
