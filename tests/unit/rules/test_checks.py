"""Declarations of a rule file, checked one by one (`rules.checks`)."""

from whenabouts_cloud.language.errors import Mistake
from whenabouts_cloud.language.grammar import Part, tree_of
from whenabouts_cloud.rules.checks import MAX_TOP, Checker

DOCK = 'STREAM dock FROM "dock/tags" DELAY 1 s'
NEAR = "RULE near CORRELATE dock AS a, dock AS b WHERE |@a - @b| <= 1 s OVER 80 %"


def checked(*declarations):
    """(The file of these declarations, its mistakes)."""
    mistakes: list[Mistake] = []
    trees = [tree_of(Part(text), "start", text, mistakes) for text in declarations]
    return Checker(mistakes).check(trees), mistakes


def test_streams_are_known_to_rules_before_them():
    """The order of declarations does not matter."""
    file, mistakes = checked(NEAR, DOCK)
    assert mistakes == []
    assert [rule.a.name for rule in file.correlate_rules] == ["dock"]


def test_a_stream_with_a_mistake_causes_no_second_one():
    """Its name stays known: the rule that uses it is left out without a note."""
    file, mistakes = checked('STREAM dock FROM "dock/tags"', NEAR)
    assert (file.streams, file.rules) == ((), ())
    assert [one.text.partition(",")[0] for one in mistakes] == ["found stream dock without DELAY"]


def test_a_name_is_declared_once():
    """The first declaration stays."""
    file, mistakes = checked(DOCK, DOCK.replace("1 s", "2 s"))
    assert [stream.delay_us for stream in file.streams] == [1_000_000]
    assert [one.text for one in mistakes] == ["found stream dock a second time, expected a new name"]


def test_a_limit_is_part_of_the_language():
    """The greatest number is accepted, the next one is a mistake that names it."""
    rule = NEAR + " TOP {}"
    assert checked(DOCK, rule.format(MAX_TOP))[1] == []
    assert str(MAX_TOP) in checked(DOCK, rule.format(MAX_TOP + 1))[1][0].text
