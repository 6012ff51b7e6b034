"""Parts of events and of their delivery, each alone: the hashed text, looked-up keys, originals, what is kept aside."""

import json

import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from support.cloud.landing import land, reading
from support.cloud.published_results import batch, match, publish
from whenabouts_cloud.delivery.capturing.originals import probabilities
from whenabouts_cloud.delivery.capturing.refused import Refused, keep
from whenabouts_cloud.delivery.capturing.result_events import Wording
from whenabouts_cloud.epcis.epcis_events import Place
from whenabouts_cloud.epcis.event_hash import event_hash, prehash
from whenabouts_cloud.epcis.landed_keys import keys_of
from whenabouts_cloud.landing.store import Store
from whenabouts_cloud.rules.coverage import streams_in


def test_the_hashed_text_has_the_fields_in_the_order_of_the_standard():
    """Lists sorted, times rounded to milliseconds, the id left out."""
    sensor = {"sensorMetadata": {"startTime": "2026-01-01T00:00:00.0005Z", "endTime": "2026-01-01T00:00:00.0015Z"}}
    event = {
        "whenabouts:b": 2.0, "whenabouts:a": "x", "type": "ObjectEvent", "eventID": "ni:///x",
        "eventTimeZoneOffset": "+00:00",
        "sensorElementList": [sensor | {"sensorReport": [{"type": "whenabouts:T", "uriValue": "urn:u"}]}],
        "readPoint": {"id": "urn:r"}, "bizStep": "arriving", "action": "OBSERVE", "epcList": ["urn:z", "urn:b"],
        "eventTime": "2026-01-01T00:00:00.001499Z", "errorDeclaration": {},
    }  # fmt: skip
    assert prehash(event, {"urn:z": "https://a"}) == (
        "eventType=ObjectEventeventTime=2026-01-01T00:00:00.001ZeventTimeZoneOffset=+00:00epcListepc=https://aepc=urn:b"
        "action=OBSERVEbizStep=https://ref.gs1.org/cbv/BizStep-arrivingreadPointid=urn:r"
        "sensorElementListsensorElementsensorMetadatastartTime=2026-01-01T00:00:00.000ZendTime=2026-01-01T00:00:00.002Z"
        "sensorReporttype=urn:whenabouts:epcis:TuriValue=urn:u{urn:whenabouts:epcis:}a=x{urn:whenabouts:epcis:}b=2"
    )
    assert event_hash(event, {}).endswith("?ver=CBV2.0")


def test_keys_are_those_of_the_readings_with_the_same_identity(tmp_path):
    """Other sites and gateways have the same numbers; readings that are gone have no key."""
    land(tmp_path, [reading("g", 1, "x", "A", 5, 9), reading("h", 1, "x", "B", 5, 9), reading("g", 2, "x", None, 5, 9)])
    places = [Place("hall", "g", 1, seq, "x", 5, 9) for seq in (1, 2, 3)]
    assert keys_of(Store.at(tmp_path), places) == {("hall", "g", 1, 1): "A", ("hall", "g", 1, 2): None}
    assert keys_of(Store.at(tmp_path), []) == {}


def test_the_probability_of_a_match_is_found_in_earlier_batches(tmp_path):
    """Not in later ones."""
    for number in range(3):
        publish(tmp_path, number, [match(f"m{number}") | {"probability": number / 4}, match("m0", status="retracted")])
    store = Store.at(tmp_path)
    assert probabilities(store, 2, {"m0", "m2"}) == {"m0": 0.0, "m2": 0.5}
    assert probabilities(store, 1, {"m2", "none"}) == {}


def test_rows_become_events_in_their_order(tmp_path):
    """A row without one says why."""
    publish(tmp_path, 0)
    rows = [*batch(0), match("lost", status="retracted")]
    found = [event for _, event in Wording().events(rows, Store.at(tmp_path), 0, 0)]
    assert ["errorDeclaration" in one for one in found] == [False, False, False, True, False]
    assert found[4] == "the match that it takes back is in no batch of the folder"


def test_what_is_refused_is_kept_once(tmp_path):
    """A repeated batch writes the same file."""
    paths = {keep(Store.at(tmp_path), 3, "far", [Refused({"eventID": "é"}, "no")]) for _ in range(2)}
    [path] = paths
    assert path.startswith("_refused/batch=00000003-")
    assert json.loads((tmp_path / path).read_text()) == {"target": "far", "reason": "no", "event": {"eventID": "é"}}


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["shelf/#"], ["shelf", "shelf/1"]),
        (["dock"], ["dock"]),
        (["+", "shelf/1"], ["dock", "shelf", "shelf/1"]),
        ([], []),
    ],
)
def test_streams_are_chosen_by_names_and_patterns(names, expected):
    """A line end is no end of a name."""
    table = pa.table({"stream": ["dock", "shelf", "shelf/1", "$state", "a/b"]})
    assert ds.dataset(table).to_table(filter=streams_in(names))["stream"].to_pylist() == expected
