"""Figures of a rule."""

import pyarrow as pa

from whenabouts_cloud.dashboard.results import rule_figures
from whenabouts_cloud.dashboard.results.result_rows import ROWS
from whenabouts_cloud.dashboard.results.rule_figures import MINUTE_US, RuleFigures


def rows(*results):
    """Results: t_max, probability, published_us."""
    names = ("t_max", "probability", "published_us")
    return pa.Table.from_pylist([dict(zip(names, result, strict=True)) for result in results], ROWS)


def test_each_result_is_in_one_minute_one_bin_of_probability_and_one_of_delay():
    """A probability of one belongs to the last bin; a delay below zero to the first."""
    figures = RuleFigures()
    figures.add(rows((0, 1.0, -5), (MINUTE_US - 1, 0.0, MINUTE_US), (3 * MINUTE_US, 0.52, 10**12), (0, None, None)))
    value = figures.value()
    assert value["per_minute"] == {"first_us": 0, "counts": [3, 0, 0, 1]}
    assert (
        value["probability"]["counts"][0],
        value["probability"]["counts"][10],
        value["probability"]["counts"][-1],
    ) == (1, 1, 1)
    assert (value["delay"]["counts"][0], value["delay"]["counts"][-1], sum(value["delay"]["counts"])) == (2, 1, 3)


def test_minutes_and_reasons_have_limits(monkeypatch):
    """The oldest minutes go; further reasons share one name."""
    monkeypatch.setattr(rule_figures, "MAX_MINUTES", 3)
    monkeypatch.setattr(rule_figures, "MAX_REASONS", 2)
    figures = RuleFigures()
    figures.add(rows(*((n * MINUTE_US, None, None) for n in range(9))))
    for reason in "abcd":
        figures.add_late(reason, 1)
    assert sorted(figures.minutes) == [6, 7, 8]
    assert figures.value()["late"] == {"a": 1, "b": 1, "other": 2}
    assert figures.value()["results"] == 9
