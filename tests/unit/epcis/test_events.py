"""What each kind of row becomes as an event of EPCIS (`whenabouts_cloud.epcis`)."""

import hashlib
import json

import pytest

from support.epcis import rows
from support.epcis.gs1 import SCHEMA, faults
from whenabouts_cloud.epcis.document import document
from whenabouts_cloud.epcis.epcis_events import NoEventError, of_reading, of_result, taken_back, unnamed
from whenabouts_cloud.epcis.uris import Names, key_in, stream_in
from whenabouts_cloud.epcis.zoned_times import TimeError, hashable, read, written

NAMES = Names()
PALLET, CASE = "3174257BF4499602D2000000", "3074257BF7194E4000001A85"
CASE_URI = "urn:epc:id:sgtin:0614141.812345.6789"
READ = {
    "site": "hall", "gateway": "g1", "boot": 1, "seq": 7, "stream": "dock/tags", "kind": "tag", "key": CASE, "value": None,
    "attrs": '{"rssi": -60}', "clock_state": "bounded", "t_min": 1_795_000_000_000_001, "t_max": 1_795_000_002_000_001,
}  # fmt: skip


def result(**more):
    """A match of two readings at one dock."""
    events = [{"name": "a", **READ}, {"name": "b", **READ, "seq": 8, "t_max": READ["t_max"] + 6}]
    return {
        "result_id": "ab12", "rule": "near", "key": None, "status": "match", "probability": 0.75, "events": events
    } | more  # fmt: skip


def test_a_read_is_an_observation_with_its_interval_in_the_standards_fields_and_in_ours():
    """`eventTime` is the middle; the tag's bits are kept beside its name."""
    assert of_reading(READ, NAMES) == {
        "type": "ObjectEvent",
        "eventID": "ni:///sha-256;1bb7eb92cae937bec8400f7d5ac9c2c98b55cbafe44c4ad3f59222e75242b5cb?ver=CBV2.0",
        "eventTime": "2026-11-18T11:06:41.000001Z",
        "eventTimeZoneOffset": "+00:00",
        "epcList": [CASE_URI],
        "action": "OBSERVE",
        "readPoint": {"id": "urn:whenabouts:readpoint/hall/g1/dock%2Ftags"},
        "bizLocation": {"id": "urn:whenabouts:site/hall"},
        "sensorElementList": [
            {
                "sensorMetadata": {
                    "startTime": "2026-11-18T11:06:40.000001Z",
                    "endTime": "2026-11-18T11:06:42.000001Z",
                    "deviceID": "urn:whenabouts:readpoint/hall/g1/dock%2Ftags",
                },
                "sensorReport": [{"type": "whenabouts:Reading", "uriValue": "urn:whenabouts:reading/hall/g1/1/7"}],
            }
        ],
        "whenabouts:earliest": "2026-11-18T11:06:40.000001Z",
        "whenabouts:latest": "2026-11-18T11:06:42.000001Z",
        "whenabouts:tag": f"urn:epc:raw:96.x{CASE}",
    }


@pytest.mark.parametrize(
    ("kind", "value", "step", "place"),
    [("tag", '"enter"', "arriving", "urn:whenabouts:site/hall"), ("absent", '"leave"', "departing", None)],
)
def test_the_ends_of_a_visit_are_arriving_and_departing(kind, value, step, place):
    """After a leave nobody knows where the object is, so no business location is named."""
    event = of_reading(READ | {"kind": kind, "value": value, "attrs": '{"visit": 3}'}, NAMES)
    assert (event["bizStep"], event["whenabouts:visit"], event.get("bizLocation", {}).get("id")) == (step, 3, place)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"key": None}, "no key"),
        ({"kind": "measure"}, "kind measure"),
        ({"kind": "absent", "value": '"absent"', "attrs": "{}"}, "kind absent"),
    ],
)
def test_what_observes_no_object_is_no_event(change, reason):
    """A tag that was expected and never read was not observed."""
    with pytest.raises(NoEventError, match=reason):
        of_reading(READ | change, NAMES)


def test_a_clock_that_was_not_bounded_is_told():
    """Its interval is as wide as it is."""
    assert of_reading(READ | {"clock_state": "unbounded"}, NAMES)["whenabouts:clockState"] == "unbounded"


def test_a_result_about_one_object_is_an_observation_of_it():
    """By the key of the result, or as all its readings have the same."""
    by_key = of_result(result(key=CASE), NAMES, {})
    assert (by_key["type"], by_key["epcList"]) == ("ObjectEvent", [CASE_URI])
    keys = {("hall", "g1", 1, 7): CASE, ("hall", "g1", 1, 8): CASE}
    assert of_result(result(), NAMES, keys) == by_key
    assert by_key["whenabouts:probability"] == 0.75
    assert by_key["whenabouts:rule"] == "urn:whenabouts:rule/near"
    ends = [one["sensorMetadata"]["endTime"][-9:] for one in by_key["sensorElementList"]]
    assert ends == ["2.000007Z", "2.000001Z", "2.000007Z"]  # of the result, and of each reading


def test_several_objects_are_associated_and_aggregated_only_where_one_says_so():
    """The object of the first place is the parent."""
    keys = {("hall", "g1", 1, 7): PALLET, ("hall", "g1", 1, 8): CASE}
    for loads, kind in ((frozenset(), "AssociationEvent"), (frozenset({"near"}), "AggregationEvent")):
        event = of_result(result(), NAMES, keys, loads)
        assert (event["type"], event["action"]) == (kind, "OBSERVE")
        assert event["parentID"] == "urn:epc:id:sscc:0614141.1234567890"
        assert event["childEPCs"] == [CASE_URI]


def test_a_result_without_known_objects_names_none():
    """It is valid: an observation at a place."""
    event = of_result(result(), NAMES, {})
    assert event["epcList"] == []
    assert faults(document([event], 0)) == []
    assert [one.seq for one in unnamed([result(), result(key="x")])] == [7, 8]


def test_a_result_at_several_places_names_no_single_one():
    """Each reading has its own in the sensor metadata."""
    row = result()
    row["events"][1] |= {"site": "yard", "stream": "gate"}
    event = of_result(row, NAMES, {})
    assert "readPoint" not in event
    assert "bizLocation" not in event
    devices = [one["sensorMetadata"].get("deviceID") for one in event["sensorElementList"]]
    assert devices == [None, "urn:whenabouts:readpoint/hall/g1/dock%2Ftags", "urn:whenabouts:readpoint/yard/g1/gate"]


def test_a_result_that_is_taken_back_has_the_same_id_and_a_reason():
    """All else is as in the event that it takes back, as the standard wants it."""
    event = of_result(result(), NAMES, {})
    back = taken_back(of_result(result(status="retracted", probability=None), NAMES, {}, probability=0.75), 0)
    said = back.pop("errorDeclaration")
    assert back == event
    assert said == {"declarationTime": "1970-01-01T00:00:00.000000Z", "reason": "did_not_occur"}


def test_the_same_row_has_the_same_id_and_any_change_another_one():
    """A microsecond, a probability, the order of exports: nothing else counts."""
    ids = {of_result(result(key="x"), NAMES, {})["eventID"] for _ in range(2)}
    row = result(key="x")
    for one in row["events"]:
        one["t_min"] += 1
    ids |= {of_result(one, NAMES, {})["eventID"] for one in (row, result(key="y"), result(key="x", result_id="ab13"))}
    assert len(ids) == 4


def test_names_can_be_links_and_private_ones_can_begin_with_an_address_of_ones_own():
    """The hash is the same for both names of an EPC."""
    linked = of_reading(READ, Names("https://id.acme.example/", links=True))
    assert linked["epcList"] == ["https://id.gs1.org/01/80614141123458/21/6789"]
    assert linked["readPoint"] == {"id": "https://id.acme.example/readpoint/hall/g1/dock%2Ftags"}
    assert of_reading(READ, Names(links=True))["eventID"] == of_reading(READ, NAMES)["eventID"]


@pytest.mark.parametrize("key", [*rows.ODD_KEYS, *rows.URIS, CASE])
def test_keys_and_streams_come_back_from_their_names(key):
    """Private ones and raw bits; other URIs are keys themselves."""
    thing = NAMES.thing(key)
    assert key_in(thing.raw or thing.uri) == key
    assert stream_in(NAMES.read_point("a", "b", key).uri) == key
    assert key_in(CASE_URI) == stream_in(CASE_URI) == CASE_URI


def test_what_is_a_uri_already_is_its_own_name():
    """Of keys, streams and sites; those of GS1 only in the form that hashes can be made of."""
    row = READ | {
        "key": CASE_URI,
        "stream": "urn:epc:id:sgln:0614141.00777.0",
        "site": "urn:epc:id:sgln:0614141.00888.0",
    }
    event = of_reading(row, NAMES)
    assert (event["epcList"], event["readPoint"], event["bizLocation"]) == (
        [CASE_URI], {"id": row["stream"]}, {"id": row["site"]}
    )  # fmt: skip
    assert NAMES.thing("https://id.gs1.org/01/614141123452/21/7").uri.startswith("urn:whenabouts:key/")
    assert NAMES.thing("urn:whenabouts:key/x").uri == "urn:whenabouts:key/urn%3Awhenabouts%3Akey%2Fx"


def test_times_are_read_with_their_zone_and_widened_to_microseconds():
    """More digits than six lie between two microseconds."""
    us = 1_795_000_000_000_001
    assert read(written(us)) == read("2026-11-18T13:06:40.000001+02:00") == (us, us)
    assert read("2026-11-18T06:06:40.0000010000001-05:00") == (us, us + 1)
    for text in ("2026-11-18T13:06:40", "2026-02-30T00:00:00Z", "now", 7, None, "2026-11-18T13:06:40.1+99:00"):
        with pytest.raises(TimeError, match="expected one such as"):
            read(text)
    with pytest.raises(TimeError, match="years 1 to 9999"):
        written(1 << 61)


def test_times_that_gs1s_program_cannot_round_are_moved_outwards():
    """By less than a millisecond."""
    assert (hashable(999_499, True), hashable(999_500, False), hashable(999_500, True)) == (999_499, 999_000, 1_000_000)


def test_the_event_time_stays_in_the_interval_where_it_is_moved():
    """The middle cannot be rounded, the start can."""
    event = of_reading(READ | {"t_min": 1_795_000_000_999_439, "t_max": 1_795_000_001_000_438}, NAMES)
    assert (
        event["eventTime"]
        == event["sensorElementList"][0]["sensorMetadata"]["startTime"]
        == "2026-11-18T11:06:40.999439Z"
    )


def test_letters_that_json_escapes_are_escaped():
    """Also at the ends of lines, and outside of ASCII."""
    event = of_reading(READ | {"key": 'E2"\\\t,é\u2028', "site": "Süd"}, NAMES)
    assert json.loads(document([event, event], 0))["epcisBody"]["eventList"] == [event, event]
    assert document([event], 0).isascii()
    assert faults(document([], 0)) == []


def test_the_vendored_schema_is_the_one_that_its_readme_names_by_hash():
    """Nobody changes it unseen; its licence is beside it."""
    text = (SCHEMA / "README.md").read_text()
    files = [file for file in SCHEMA.iterdir() if file.name != "README.md"]
    assert sorted(file.name for file in files) == ["EPCISDocument.schema.json", "LICENSE"]
    assert [file.name for file in files if hashlib.sha256(file.read_bytes()).hexdigest() not in text] == []


def test_the_schema_refuses_what_is_not_valid():
    """So that the checks of these tests can fail."""
    event = of_reading(READ, NAMES)
    for change in (
        {"eventTime": None},
        {"eventTime": "today"},
        {"epcList": ["no uri"]},
        {"surprise": 1},
        {"action": "x"},
    ):
        assert faults(document([event | change], 0))
