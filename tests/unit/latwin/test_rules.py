"""Rules about the states of a group: what is read, what is said about a wrong one, what is explained."""

import itertools
import json

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from whenabouts_cloud.commands.check import check
from whenabouts_cloud.commands.explain import explain
from whenabouts_cloud.rules import LatwinRule, RuleError, parse_rules
from whenabouts_cloud.rules.explain_states import explain_states, lines
from whenabouts_cloud.rules.model import group_regex
from whenabouts_cloud.rules.state_predicate import (
    AllOf,
    AnyOf,
    AtLeast,
    Comparison,
    Not,
    Value,
    alternatives,
    streams_of,
    test,
    values_of,
)
from whenabouts_cloud.rules.states import box_of

holds = test
test = None  # pytest would take the function for a test

STREAMS = """STREAM phone FROM "phone/state" AT SITE "hq" DELAY 1 s LENGTH 0 us .. 100 ms
STREAM rfid FROM "rfid/state" DELAY 2 s
STREAM projector FROM "projector/state" DELAY 1 s
"""
EXAMPLE = 'DEFINITELY phone.room = "meeting" AND rfid.speaker AND projector.on WINDOW 4 IN GROUP office'


def rule(body):
    return parse_rules(f"{STREAMS}RULE mute {body}").latwin_rules[0]


def mistakes(body):
    with pytest.raises(RuleError) as caught:
        rule(body)
    return [(m.line, m.column, m.text) for m in caught.value.mistakes]


def test_the_example_of_the_design_is_read_exactly():
    """Streams in the order of the text, a comparison with a text, bare values; sound and emitted at once by default."""
    parsed = parse_rules(f"{STREAMS}RULE mute\n  # the office\n  {EXAMPLE}")
    [mute] = parsed.rules
    assert mute == LatwinRule(
        "mute",
        parsed.streams,
        "definitely",
        AllOf((Comparison("=", Value("phone", "room"), "meeting"), Value("rfid", "speaker"), Value("projector", "on"))),
        (4, 4, 4),
        "office",
    )
    assert (mute.by_runs, mute.engine, mute.emit, mute.in_window, mute.causal) == (True, "runs", "eager", False, False)


def test_options_and_windows_are_read():
    """A separate window for a stream; POSSIBLY and IN WINDOW wait by default."""
    parsed = rule(
        'POSSIBLY 2 OF (phone, NOT rfid.on, projector > -3.5) WINDOW 4, rfid 8 IN GROUP "office-+" EAGER CAUSAL'
    )
    assert parsed.windows == (4, 8, 4)
    assert (parsed.emit, parsed.causal, parsed.engine) == ("eager", True, "lattice")
    assert parsed.predicate == AtLeast(
        2, (Value("phone"), Not(Value("rfid", "on")), Comparison(">", Value("projector"), -3.5))
    )
    assert rule("POSSIBLY phone WINDOW 1 IN GROUP g").emit == "patient"
    unsound = rule("DEFINITELY IN WINDOW phone AND rfid WINDOW 3 IN GROUP g")
    assert (unsound.in_window, unsound.by_runs, unsound.emit, unsound.engine) == (True, False, "patient", "conjunction")
    assert rule("DEFINITELY phone WINDOW 3 IN GROUP g PATIENT").emit == "patient"
    assert box_of(parsed.windows) == 128


def test_a_number_may_stand_first():
    """3 < x is x > 3; a bare name in a comparison is its value; AT LEAST 2 OF is 2 OF."""
    assert rule("POSSIBLY 3 < phone WINDOW 1 IN GROUP g").predicate == Comparison(">", Value("phone"), 3.0)
    two = rule("POSSIBLY AT LEAST 2 OF (phone, rfid, projector) WINDOW 1 IN GROUP g")
    assert two == rule("POSSIBLY 2 OF (phone, rfid, projector) WINDOW 1 IN GROUP g")


names = st.sampled_from(["phone", "rfid", "projector"])
values = st.builds(Value, names, st.sampled_from(["value", "room", "on"]))
signs = st.sampled_from(["=", "!=", "<", "<=", ">", ">="])
numbers = st.sampled_from([0.0, 3.0, -2.5, 1e-7, 12345.0])
leaves = (
    values
    | st.builds(Comparison, signs, values, values | numbers)
    | st.builds(Comparison, st.sampled_from(["=", "!="]), values, st.just("meeting"))
)
joint = st.recursive(
    leaves,
    lambda inner: (
        st.builds(Not, inner)
        | st.builds(AllOf, st.lists(inner, min_size=2, max_size=3).map(tuple))
        | st.builds(AnyOf, st.lists(inner, min_size=2, max_size=3).map(tuple))
        | st.lists(inner, min_size=1, max_size=3).flatmap(
            lambda parts: st.builds(AtLeast, st.integers(1, len(parts)), st.just(tuple(parts)))
        )
    ),
    max_leaves=6,
)


@given(joint)
def test_a_rule_is_read_back_from_its_text(predicate):
    """Brackets, signs and numbers survive; equal texts are equal rules."""
    parsed = rule(f"POSSIBLY {predicate.text()} WINDOW 2 IN GROUP g")
    assert parsed.predicate == predicate
    assert parse_rules(parsed.text()).rules == (parsed,)


scalars = st.sampled_from([None, 0.0, 1.0, 3.0, -2.5, "meeting", "hall"])


@given(joint, st.data())
def test_alternatives_hold_exactly_when_the_predicate_does(predicate, data):
    """Each is a conjunction of local predicates, each on its own streams; none where streams are compared."""
    try:
        disjuncts = alternatives(predicate)
    except ValueError:
        return
    compared = any(isinstance(x, Comparison) and isinstance(x.right, Value) and x.right.stream != x.left.stream
                   for x in leaves_of(predicate))  # fmt: skip
    if disjuncts is None:
        assert compared
        return
    given_values = {value: data.draw(scalars) for value in values_of(predicate)}
    parts = [[(name, holds(one)) for name, one in part.items()] for part in disjuncts]
    for part, tests in zip(disjuncts, parts, strict=True):
        assert all(streams_of(part[name]) == (name,) for name, _ in tests)
    assert any(all(one(given_values) for _, one in part) for part in parts) == holds(predicate)(given_values)


def leaves_of(predicate):
    """The values and comparisons of a predicate."""
    if isinstance(predicate, Value | Comparison):
        return [predicate]
    parts = [predicate.part] if isinstance(predicate, Not) else predicate.parts
    return list(itertools.chain.from_iterable(map(leaves_of, parts)))


def test_of_what_is_missing_neither_a_comparison_nor_its_opposite_holds():
    """Also with !=, and within AND, OR and counts; a text is unequal to every number, and has no order."""
    x, y = Value("phone"), Value("rfid")
    for sign in ("=", "!=", "<", "<=", ">", ">="):
        assert not holds(Comparison(sign, x, 3.0))({})
        assert not holds(Comparison(sign, x, y))({x: 3.0, y: None})
        assert not holds(Not(Comparison(sign, x, 3.0)))({})
    unknown, true, false = Comparison("=", x, 3.0), Comparison("=", y, 1.0), Comparison("=", y, 2.0)
    values = {y: 1.0}
    assert holds(AnyOf((unknown, true)))(values)
    assert holds(Not(AllOf((unknown, false))))(values)
    assert holds(AtLeast(1, (unknown, true, false)))(values)
    assert holds(Not(AtLeast(3, (unknown, true, false))))(values)
    for open_one in (AllOf((unknown, true)), AnyOf((unknown, false)), AtLeast(2, (unknown, true, false))):
        assert not holds(open_one)(values)
        assert not holds(Not(open_one))(values)
    assert holds(Comparison("!=", x, y))({x: 3.0, y: "3"})
    assert not holds(Comparison("<", x, y))({x: "a", y: "b"})
    assert [holds(x)({x: v}) for v in (None, 0.0, 1.0, "", "on")] == [False, False, True, True, True]


def test_a_choice_of_two_of_three_is_three_conjunctions():
    """And what another one demands already is left out."""
    two = rule("DEFINITELY 2 OF (phone, rfid, projector) WINDOW 4 IN GROUP g")
    assert [set(part) for part in two.alternatives] == [
        {"phone", "rfid"}, {"phone", "projector"}, {"rfid", "projector"},
    ]  # fmt: skip
    assert len(rule("DEFINITELY phone AND rfid OR phone WINDOW 4 IN GROUP g").alternatives) == 1


@pytest.mark.parametrize(
    ("body", "column", "said"),
    [
        ("DEFINITELY phone.x > rfid.x WINDOW 4 IN GROUP g", 22, "found DEFINITELY of streams compared with each other"),
        ('POSSIBLY phone > "a" WINDOW 4 IN GROUP g', 26, 'found > "a", expected = or !=: text has no order'),
        ("POSSIBLY 3 WINDOW 4 IN GROUP g", 20, "found the number 3, expected a name or a comparison"),
        ('POSSIBLY "x" = 3 WINDOW 4 IN GROUP g', 20, 'found the number 3 compared with the text "x"'),
        (
            "POSSIBLY rfjd WINDOW 4 IN GROUP g",
            20,
            "found rfjd, expected one of the declared streams; did you mean rfid?",
        ),
        ("POSSIBLY 3 OF (phone, rfid) WINDOW 4 IN GROUP g", 20, "found 3 OF 2, expected a whole number from 1 to 2"),
        ("POSSIBLY phone WINDOW 0 IN GROUP g", 33, "found WINDOW 0, expected a whole number of states from 1 to 64"),
        ("POSSIBLY phone WINDOW 4, rfid 3 IN GROUP g", 36, "found a window of rfid, expected one of phone"),
        ("POSSIBLY phone WINDOW 4, phone 3, phone 3 IN GROUP g", 45, "found a second window of phone"),
        ('POSSIBLY phone WINDOW 4 IN GROUP ""', 44, "found an empty group, expected its name"),
        ("POSSIBLY phone WINDOW 4 IN GROUP g EAGER PATIENT", 52, "found a second EAGER or PATIENT, expected one"),
        ("POSSIBLY IN WINDOW phone WINDOW 4 IN GROUP g", 20, "found POSSIBLY IN WINDOW, expected only POSSIBLY"),
        ("POSSIBLY phone", 25, "found the end of the declaration, expected"),
        ("POSSIBLY phone WINDOW 4 IN office", 38, "found office, expected GROUP"),
        ("POSSIBLY phone OR rfid WINDOW 33 IN GROUP g", 34, "found windows of 66 states and 1089 global states"),
        ("AT EDGE POSSIBLY phone WINDOW 4 IN GROUP g", 14, "a gateway runs CORRELATE rules only"),
    ],
)
def test_a_mistake_is_named_with_its_place(body, column, said):
    """Line 4 is the rule's; what was found, what was expected."""
    [(line, place, text)] = mistakes(body)
    assert (line, said in text) == (4, True), text
    assert place == column


def test_limits_keep_the_box_small():
    """A conjunction has no box; a choice of 9 streams with windows of 8 is refused."""
    streams = "".join(f'STREAM s{n} FROM "{n}" DELAY 1 s\n' for n in range(17))
    nine, all17 = (", ".join(f"s{n}" for n in range(count)) for count in (9, 17))
    fine = parse_rules(f"{streams}RULE r POSSIBLY {nine.replace(',', ' AND')} WINDOW 64 IN GROUP g").latwin_rules[0]
    assert fine.engine == "conjunction"
    for body, said in (
        (f"POSSIBLY 2 OF ({nine}) WINDOW 8 IN GROUP g", "134217728 global states"),
        (f"POSSIBLY 2 OF ({all17}) WINDOW 1 IN GROUP g", "found 17 streams, expected at most 16"),
        (f"POSSIBLY 7 OF ({all17.rpartition(',')[0]}) WINDOW 1 IN GROUP g", "more than 64 alternatives"),
    ):
        with pytest.raises(RuleError, match=said):
            parse_rules(f"{streams}RULE r {body}")


@pytest.mark.parametrize(
    ("pattern", "group", "covered"),
    [
        ("office", "office", True),
        ("office", "office-1", False),
        ("office-+", "office-1", True),
        ("office-+", "office-", True),
        ("office-+", "office-1/a", False),
        ("+/office", "hq/office", True),
        ("hq/#", "hq/2/office", True),
        ("o.fice", "office", False),
    ],
)
def test_a_group_may_be_a_pattern_of_many(pattern, group, covered):
    """+ is any text without a slash, # at the end any text."""
    assert rule(f'POSSIBLY phone WINDOW 1 IN GROUP "{pattern}"').covers(group) == covered
    assert group_regex("a+") == "a[^/]*"


def test_what_a_rule_will_do_is_explained():
    """Which gateways, what decides, the limit of the box, what is known of stamps; as text and as JSON."""
    explained = explain_states(rule(EXAMPLE))
    assert (explained.engine, explained.box, [p.length_us for p in explained.processes]) == (
        "runs",
        64,
        [100_000, None, None],
    )
    text = "\n".join(lines(explained))
    assert 'gateway      phone: the one with "phone/state" at site hq, 4 states' in text
    assert "never wrong" in text
    assert 'alternative  (phone.room = "meeting") AND (rfid.speaker) AND (projector.on)' in text
    lattice = explain_states(rule("POSSIBLY phone OR rfid WINDOW 4, rfid 8 IN GROUP g CAUSAL"))
    assert "windows      at most 32 global states" in "\n".join(lines(lattice))
    assert "by vector clocks only" in "\n".join(lines(lattice))


def test_the_commands_know_such_rules(tmp_path):
    """check counts it, explain shows it."""
    file = tmp_path / "rules.wa"
    file.write_text(f"{STREAMS}RULE mute {EXAMPLE}", encoding="utf-8")
    assert CliRunner().invoke(check, [str(file)]).output.endswith("fine, 3 streams and 1 rule\n")
    shown = CliRunner().invoke(explain, [str(file)])
    assert shown.exit_code == 0
    assert "runs         in the cloud: a gateway runs CORRELATE rules only" in shown.output
    [emitted] = json.loads(CliRunner().invoke(explain, [str(file), "--json"]).output)["rules"]
    assert (emitted["engine"], emitted["group"], emitted["box"]) == ("runs", "office", 64)
