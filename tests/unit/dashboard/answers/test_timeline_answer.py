"""The timeline's answer: counts where readings are many, each reading where they are few, results as arcs."""

import pytest

from support.browser import known_run
from support.browser.known_run import BEGIN_US, DOCK, DOOR, EXIT, FRONTIER_US, KEYS, LATE_SEQ, SECOND_US
from whenabouts_cloud.dashboard.answers import timeline_answer
from whenabouts_cloud.dashboard.answers.timeline_answer import Asked, timeline
from whenabouts_cloud.dashboard.data.landed import LandedIndex
from whenabouts_cloud.dashboard.results.result_index import ResultIndex
from whenabouts_cloud.landing.store import Store

MINUTE = Asked(BEGIN_US - SECOND_US, BEGIN_US + 59 * SECOND_US, 600)
NAMES = ("/".join(("hall", *lane)) for lane in (DOCK, DOOR, EXIT))


@pytest.fixture(scope="module")
def indices(tmp_path_factory):
    """The known run, read whole."""
    landing, results, _ = known_run.make(tmp_path_factory.mktemp("known"))
    landed, found = LandedIndex(Store.at(landing)), ResultIndex([Store.at(results)])
    while landed.follow(10) or found.follow(10):
        pass
    return landed, found


def test_few_readings_are_single_bars_with_their_truth(indices):
    """Every one, in its lane, with late ones marked."""
    answer = timeline(*indices, MINUTE)
    assert answer["cells"] is None
    bars = answer["bars"]
    assert len(bars["lane"]) == 40
    assert [answer["lanes"][lane]["stream"] for lane in sorted(set(bars["lane"]))] == [x[1] for x in (DOCK, DOOR, EXIT)]
    late = [n for n, is_late in enumerate(bars["late"]) if is_late]
    assert [(bars["gateway"][n], bars["seq"][n]) for n in late] == [("gw-2", str(LATE_SEQ))]
    place = list(zip(bars["gateway"], bars["seq"], strict=True)).index(("gw-1", "3"))
    assert bars["true_us"][place] == known_run.true_us(DOCK, 3)
    assert bars["t_min"][place] <= bars["true_us"][place] <= bars["t_max"][place]


def test_many_readings_are_counts_that_add_up(indices, monkeypatch):
    """In columns that the answer tells."""
    monkeypatch.setattr(timeline_answer, "MOST_BARS", 10)
    answer = timeline(*indices, MINUTE)
    assert answer["bars"] is None
    assert (
        [sum(cells[1::2]) for cells in answer["cells"]] == [20, 15, 5] == [lane["readings"] for lane in answer["lanes"]]
    )
    assert answer["most"] == max(max(cells[1::2]) for cells in answer["cells"])
    assert answer["late"] == {"total": 1, "cells": [[], answer["late"]["cells"][1], []]}
    assert answer["exact"]


def test_lanes_tell_their_frontier(indices):
    """That of their gateway."""
    assert {lane["frontier_us"] for lane in timeline(*indices, MINUTE)["lanes"]} == {FRONTIER_US}


def test_arcs_lead_from_the_first_to_the_last_reading_with_their_probability(indices):
    """In the lanes that are shown; others have lane -1."""
    arcs = timeline(*indices, MINUTE)["arcs"]
    assert arcs["total"] == 20
    pairs = {arcs["id"][n]: n for n in range(20) if arcs["rule"][n] == "handover"}
    assert [arcs["probability"][pairs[f"pair-{n}"]] for n in range(15)] == [1 - n / 100 for n in range(15)]
    at = pairs["pair-4"]
    assert (arcs["lane_a"][at], arcs["lane_b"][at]) == (0, 1)
    assert arcs["a_us"][at] == known_run.true_us(DOCK, 4) + 10_000
    alone = timeline(*indices, Asked(MINUTE.from_us, MINUTE.to_us, 600, search="dock"))["arcs"]
    assert set(alone["lane_b"]) == {-1}


def test_only_the_chosen_rules_are_arcs(indices):
    """None of the others."""
    arcs = timeline(*indices, Asked(MINUTE.from_us, MINUTE.to_us, 600, rules=["unpaid"]))["arcs"]
    assert (arcs["total"], set(arcs["rule"]), set(arcs["kind"])) == (5, {"unpaid"}, {"match"})


def test_by_tag_a_lane_has_the_readings_of_a_key(indices):
    """Of all readers."""
    answer = timeline(*indices, Asked(MINUTE.from_us, MINUTE.to_us, 600, by="tag", search=KEYS[17]))
    assert [(lane["key"], lane["readings"]) for lane in answer["lanes"]] == [(KEYS[17], 2)]
    assert set(answer["bars"]["stream"]) == {DOCK[1], EXIT[1]}


def test_by_tag_too_many_readings_are_refused_with_what_to_do(indices, monkeypatch):
    """The answer has no lanes, and says why."""
    from whenabouts_cloud.dashboard.data import landed

    monkeypatch.setattr(landed, "ROWS", 10)
    answer = timeline(*indices, Asked(MINUTE.from_us, MINUTE.to_us, 600, by="tag"))
    assert "choose a shorter time" in answer["refused"]
    assert answer["lanes"] == []


def test_a_page_of_lanes_is_a_part_of_all(indices):
    """Arcs and bars are those of its lanes."""
    answer = timeline(*indices, Asked(MINUTE.from_us, MINUTE.to_us, 600, offset=1, limit=1))
    assert (answer["lanes_total"], [lane["stream"] for lane in answer["lanes"]]) == (3, [DOOR[1]])
    assert set(answer["bars"]["lane"]) == {0}


@pytest.mark.parametrize(("span_us", "px"), [(1, 1), (7, 4000), (10**15, 3), (2**53, 1000)])
def test_any_view_is_answered(indices, span_us, px):
    """From a microsecond to all times."""
    answer = timeline(*indices, Asked(BEGIN_US, BEGIN_US + span_us, px))
    assert answer["to_us"] >= BEGIN_US + span_us
    assert answer["px"] <= px
