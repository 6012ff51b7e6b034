"""Rules with their figures."""

from whenabouts_cloud.dashboard.answers.rules_answer import rules


def test_rules_have_figures_and_results_without_a_rule_are_told_too():
    """A rule without results has none."""
    book = {"file": "f", "text": "t", "ok": True, "mistakes": [], "rules": [{"name": "a"}, {"name": "b"}]}
    found = rules(book, {"a": {"results": 1}, "old": {"results": 2}})
    assert [(one["name"], one["figures"]) for one in found["rules"]] == [
        ("a", {"results": 1}),
        ("b", None),
        ("old", {"results": 2}),
    ]
    assert found["file"] == "f"
