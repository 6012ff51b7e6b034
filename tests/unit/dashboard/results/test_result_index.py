"""What jobs have published, as it is shown."""

import json

import pyarrow.parquet as pq
import pytest

from support.browser import known_run
from support.browser.known_run import BEGIN_US, DOCK, EXIT, KEYS, SECOND_US
from whenabouts_cloud.cep.shard.results import RESULT as MATCH
from whenabouts_cloud.correlation.pairs import RESULT as PAIR
from whenabouts_cloud.dashboard.results import kept_tables, result_index
from whenabouts_cloud.dashboard.results.result_index import ResultIndex
from whenabouts_cloud.landing.store import Store
from whenabouts_cloud.latwin.shard.results import RESULT as VERDICT

DOOR_READING = ("gw-2", 1)  # gateway and boot
END_US = BEGIN_US + 3600 * SECOND_US


@pytest.fixture
def run(tmp_path):
    """The results of the known run."""
    return known_run.make(tmp_path)[1]


def read(index):
    """All that there is, now: an index looks at its places twice a second."""
    index._listed_s = -10.0
    while index.follow(10):
        pass
    return index


def index_of(*places):
    return read(ResultIndex([Store.at(place) for place in places]))


def ids(index, from_us=0, to_us=END_US, most=1000, rules=None):
    return {one["id"] for one in index.arcs(from_us, to_us, most, rules)[0]}


def test_results_of_all_kinds_are_found_below_a_place(run):
    """Also when each output, or the folder above, is given."""
    expected = {f"pair-{n}" for n in range(15)} | {f"match-{n}" for n in range(15, 20)}
    assert ids(index_of(run)) == ids(index_of(run.parent)) == expected


def test_a_place_without_results_is_named_until_there_are_some(run, tmp_path):
    """It may be mistyped, or its job has not begun."""
    later = tmp_path / "later"
    index = index_of(run, later)
    assert index.problems() == [f"{later}: no results yet, expected one of pairs/, matches/, counts/, verdicts/ there"]
    before = index.version
    known_run.publish(later / "pairs" / "handover", PAIR, 0, known_run.pairs())
    assert read(index).problems() == []
    assert index.version > before


def test_an_arc_has_the_first_and_the_last_reading(run):
    """Of a match with two events, those of the dock and the exit."""
    found, total = index_of(run).arcs(0, END_US, 1000, ["unpaid"])
    assert total == 5
    one = next(x for x in found if x["id"] == "match-17")
    assert (one["kind"], one["key"], one["status"]) == ("match", KEYS[17], "match")
    assert ((one["a"]["gateway"], one["a"]["stream"]), (one["b"]["gateway"], one["b"]["stream"])) == (DOCK, EXIT)


def test_the_most_probable_come_first_where_there_are_too_many(run):
    """And all are counted."""
    found, total = index_of(run).arcs(0, END_US, 3, ["handover"])
    assert total == 15
    assert [one["probability"] for one in found] == [1.0, 0.99, 0.98]


def test_only_results_that_overlap_the_time_are_found(run):
    """Both ends belong to it."""
    row = next(x for x in known_run.readings() if x["stream"] == DOCK[1] and x["seq"] == 9)
    index = index_of(run)
    assert "pair-9" in ids(index, row["t_min"], row["t_min"])
    assert "pair-2" not in ids(index, row["t_min"], row["t_min"])


def test_new_batches_appear_and_change_the_version(run):
    """Nothing else changes it."""
    index = index_of(run)
    version = index.version
    assert read(index).version == version
    late = {"result_id": "pair-new"}
    known_run.publish(run / "pairs" / "handover", PAIR, 2, [known_run.pairs()[0] | late])
    assert "pair-new" in ids(read(index))
    assert index.version > version


def test_a_retracted_result_is_shown_no_more(tmp_path):
    """Whether its retraction is read before it or after."""
    out = tmp_path / "verdicts" / "staffed"
    row = {
        "result_id": "v", "rule": "staffed", "group": "g", "view": 1, "verdict": "definitely", "status": "emitted",
        "t_min": 1, "t_max": 2,
        "states": [{"name": "a", "site": "s", "gateway": "g", "boot": 1, "seq": 1, "state": 1, "t_min": 1, "t_max": 2}],
    }  # fmt: skip
    known_run.publish(out, VERDICT, 0, [row, row | {"result_id": "w"}])
    index = index_of(tmp_path)
    assert ids(index) == {"v", "w"}
    known_run.publish(out, VERDICT, 1, [row | {"status": "retracted"}])
    assert ids(read(index)) == {"w"}


def test_a_reading_tells_its_results_and_its_side_output(run):
    """All results that contain it."""
    index = index_of(run)
    assert [one["id"] for one in index.of_reading("hall", "gw-1", 1, 17)["results"]] == ["match-17"]
    found = index.of_reading("hall", "gw-2", 1, known_run.LATE_SEQ)
    assert [one["id"] for one in found["results"]] == [f"pair-{known_run.LATE_SEQ}"]
    assert found["side_output"] == [{"rule": "handover", "reason": "late b"}]
    assert index.of_reading("hall", "gw-9", 1, 17) == {"results": [], "side_output": []}


def test_a_reading_has_its_results_whatever_tables_these_are_in(run, monkeypatch):
    """Also after the oldest of a table were dropped."""
    monkeypatch.setattr(kept_tables, "JOINED", 7)
    monkeypatch.setattr(result_index, "MAX_RESULTS", 12)
    index = index_of(run)
    found = {n: [x["id"] for x in index.of_reading("hall", *DOOR_READING, n)["results"]] for n in range(15)}
    assert {n: some for n, some in found.items() if some} == {
        n: [f"pair-{n}"] for n in range(15) if f"pair-{n}" in ids(index)
    }
    assert 0 < sum(map(len, found.values())) < 15


@pytest.mark.parametrize("first", ["result", "retraction"])
def test_a_retracted_result_is_not_shown_whichever_is_read_first(tmp_path, first):
    """Jobs publish side by side; the other results stay."""
    match = known_run.matches()[0]
    gone = match | {"status": "retracted"}
    other = known_run.matches()[1]
    for number, one in enumerate((match, gone) if first == "result" else (gone, match)):
        known_run.publish(tmp_path / "matches", MATCH, number, [one])
    known_run.publish(tmp_path / "matches", MATCH, 2, [other])
    assert ids(index_of(tmp_path)) == {other["result_id"]}


def test_figures_count_results_by_probability_and_late_readings_by_reason(run):
    """Every result, in one bin."""
    figures = index_of(run).figures()
    assert figures["handover"]["results"] == 15 == sum(figures["handover"]["probability"]["counts"])
    assert figures["handover"]["late"] == {"late b": 1}
    assert sum(figures["unpaid"]["per_minute"]["counts"]) == 5


def test_an_output_that_was_replaced_as_a_whole_is_read_anew(run):
    """As --once does with its one batch."""
    out = run / "matches"
    index = index_of(run)
    for file in (out / "batch=00000000").iterdir():
        file.unlink()
    (out / "batch=00000000").rmdir()
    known_run.publish(out, MATCH, 0, [known_run.matches()[0] | {"result_id": "again"}])
    (out / "batch=00000000" / "_input.json").write_text('{"digest": "other"}')
    assert {one for one in ids(read(index)) if not one.startswith("pair")} == {"again"}
    assert index.figures()["unpaid"]["results"] == 1


def test_the_oldest_results_are_forgotten_at_the_limit_and_still_counted(run, monkeypatch):
    """And the page is told."""
    monkeypatch.setattr(result_index, "MAX_RESULTS", 8)
    index = index_of(run)
    assert len(ids(index)) == 8
    assert "the oldest 12 are counted, but not shown" in index.problems()[0]
    assert index.figures()["handover"]["results"] == 15


def test_queries_of_the_same_name_in_two_places_are_both_told(tmp_path):
    """As two sites have them."""
    for number, place in enumerate(("north", "south")):
        known_run.publish(tmp_path / place / "matches", MATCH, 0, [])
        told = {"updated_us": 10 + number, "started_us": 0, "batches": 1, "rules": {}, "recent": []}
        (tmp_path / place / "matches" / "_progress.json").write_text(json.dumps(told))
    found = index_of(tmp_path / "north", tmp_path / "south").queries()
    assert [(one["name"], one["updated_us"]) for one in found] == [("matches", 10), ("matches", 11)]


def test_a_damaged_batch_is_named_and_the_others_are_shown(run):
    """Nothing is raised."""
    for file in (run / "pairs" / "handover" / "batch=00000001").glob("part-*.parquet"):
        file.write_bytes(b"PAR1 nonsense PAR1")
    (run / "matches" / "_progress.json").write_text("[" * 10_000)
    index = index_of(run)
    assert len(ids(index, rules=["handover"])) == 10
    assert "found no readable batch" in index.problems()[0]
    assert index.queries() == []


def test_a_batch_with_other_columns_is_named(run):
    """A folder may hold anything."""
    [file, *_] = (run / "matches" / "batch=00000000").glob("part-*.parquet")
    pq.write_table(pq.read_table(file).select(["rule"]), file)
    assert "found no readable batch" in index_of(run).problems()[0]
