"""What is told about ingests, dead letters, the landing and queries."""

import base64
import json

from support.browser import known_run
from support.browser.known_run import BEGIN_US, SECOND_US
from whenabouts_cloud.dashboard.answers.health_answer import health
from whenabouts_cloud.dashboard.data.landed import LandedIndex
from whenabouts_cloud.dashboard.results.health_state import HealthState
from whenabouts_cloud.dashboard.results.result_index import ResultIndex
from whenabouts_cloud.landing.store import Store

PROGRESS = {
    "updated_us": BEGIN_US, "started_us": BEGIN_US, "batches": 3, "recent": [{"number": 2}],
    "rules": {"handover": {"readings": 5, "streams_us": {"dock": BEGIN_US, "door": BEGIN_US + SECOND_US}}},
}  # fmt: skip


def test_health_tells_ingests_letters_landing_and_queries(tmp_path):
    """Each with its figures."""
    landing, results, _ = known_run.make(tmp_path)
    (landing / "_dead").mkdir()
    letter = {
        "landed_us": BEGIN_US, "topic": "wa/2/x", "reason": "undecodable", "text": "found <b>", "bytes": 3,
        "payload": base64.b64encode(b"\xff\x00a").decode(),
    }  # fmt: skip
    (landing / "_dead" / "letters-0001.jsonl").write_text(json.dumps(letter) + "\nnonsense\n")
    (results / "pairs" / "handover" / "_progress.json").write_text(json.dumps(PROGRESS))
    state, landed, found = (
        HealthState(Store.at(landing)),
        LandedIndex(Store.at(landing)),
        ResultIndex([Store.at(results)]),
    )
    while state.follow(10) or landed.follow(10) or found.follow(10):
        pass
    answer = health(Store.at(landing), state, landed, found, BEGIN_US + 60 * SECOND_US)
    [ingest] = answer["ingests"]
    assert (ingest["counters"], ingest["age_us"], ingest["connected"]) == ({"landed": 40}, 20 * SECOND_US, True)
    assert ingest["history"]["landed"] == [0, 40]
    assert answer["dead_letters"]["by_reason"] == [{"reason": "undecodable", "count": 2}]
    assert [(one["content"], one["binary"]) for one in answer["dead_letters"]["letters"]] == [("ff 00 61", True)]
    assert (answer["landing"]["readings"], answer["landing"]["files"]) == (40, 3)
    [query] = answer["queries"]
    assert (query["name"], query["batches"], query["age_us"]) == ("pairs/handover", 3, 60 * SECOND_US)
    [lag] = answer["lag"]["queries"]
    assert lag["behind_us"] == max(row["t_max"] for row in known_run.readings()) - BEGIN_US


def test_a_landing_without_anything_is_told_as_such(tmp_path):
    """No value is invented."""
    answer = health(Store.at(tmp_path / "nothing"), None, None, None, 1)
    assert (answer["ingests"], answer["landing"], answer["queries"]) == ([], {}, [])
    assert answer["lag"]["landed_us"] is None
