"""Documents of EPCIS as readings (`importers.epcis_document`): stamps, keys, what is no reading, what is no document."""

import json
import random

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from support.epcis import rows
from whenabouts_cloud.commands.exchange import importing
from whenabouts_cloud.commands.exchange.importing import imports
from whenabouts_cloud.epcis.document import document
from whenabouts_cloud.epcis.epcis_events import of_reading, taken_back
from whenabouts_cloud.epcis.uris import VOCABULARY, Names
from whenabouts_cloud.importers.epcis_document import NotEpcisError, read_epcis
from whenabouts_cloud.importers.side_output import SideOutput
from whenabouts_protocol import Reading

NOW_US = 1_796_000_000_000_000
T_US = 1_795_000_000_000_000  # 2026-11-18T11:06:40Z
EPC = "urn:epc:id:sgtin:0614141.812345.6789"
CASE = "3074257BF7194E4000001A85"
EVENT = {
    "type": "ObjectEvent", "eventID": "urn:uuid:1", "eventTime": "2026-11-18T13:06:40+02:00",
    "eventTimeZoneOffset": "+02:00",
    "epcList": [EPC], "action": "OBSERVE", "bizStep": "receiving", "readPoint": {"id": "urn:epc:id:sgln:0614141.00777.0"},
}  # fmt: skip


def written(*events, **more):
    """The text of a document of events."""
    head = {"@context": ["https://ref.gs1.org/standards/epcis/2.0.0/epcis-context.jsonld"], "type": "EPCISDocument"}
    head |= {"schemaVersion": "2.0", "creationDate": "2026-11-18T12:00:00Z", "epcisBody": {"eventList": list(events)}}
    return json.dumps(head | more)


def imported(text, error_us=2_000_000, back=frozenset(), seen=None):
    """(readings, (reason, number of the event) of each side output)."""
    found = list(read_epcis(text, error_us, "epcis", NOW_US, back, set() if seen is None else seen))
    return [x for x in found if isinstance(x, Reading)], [
        (x.reason, x.line) for x in found if isinstance(x, SideOutput)
    ]


def of(**change):
    return imported(written(EVENT | change))


def sensed(begin, end):
    return {
        "sensorMetadata": {"startTime": begin, "endTime": end},
        "sensorReport": [{"type": "Temperature", "value": 3}],
    }


def test_an_event_is_a_reading_for_each_object_around_its_time():
    """By its zone and the error that is stated; what else it says is in the attributes."""
    [one, two], left_out = of(epcList=[EPC, "https://id.gs1.org/01/80614141123458/21/1"])
    assert (one.t_min, one.t_max) == (T_US - 2_000_000, T_US + 2_000_000)
    assert (one.key, two.key) == (EPC, "https://id.gs1.org/01/80614141123458/21/1")
    assert (one.site, one.gateway, one.stream, one.kind) == ("epcis", "epcis", "urn:epc:id:sgln:0614141.00777.0", "tag")
    assert one.attrs == {
        "type": "ObjectEvent", "eventID": "urn:uuid:1", "action": "OBSERVE", "bizStep": "receiving", "role": "epcList",
        "eventTimeZoneOffset": "+02:00", "readPoint": "urn:epc:id:sgln:0614141.00777.0",
    }  # fmt: skip
    assert left_out == []


def test_the_interval_of_sensor_metadata_is_used_if_the_event_is_in_it():
    """From the first start to the last end, of the same clock; one of another time says nothing about the event."""
    inside = [
        sensed("2026-11-18T11:06:39.5Z", "2026-11-18T11:06:40.0000001Z"),
        sensed("2026-11-18T12:06:40+01:00", "2026-11-18T11:06:41Z"),
    ]
    [one], _ = of(sensorElementList=inside)
    assert (one.t_min, one.t_max) == (T_US - 2_500_000, T_US + 3_000_000)
    [other], _ = of(sensorElementList=[sensed("2026-11-17T00:00:00Z", "2026-11-18T11:00:00Z"), {"sensorReport": []}])
    assert (other.t_min, other.t_max) == (T_US - 2_000_000, T_US + 2_000_000)


def test_our_own_interval_is_known_by_what_its_prefix_stands_for():
    """And not by the prefix itself."""
    ours = {"w:earliest": "2026-11-18T11:06:40.000001Z", "w:latest": "2026-11-18T11:06:40.000002Z"}
    for context, width in (({"w": VOCABULARY}, 1), ({"w": "urn:other:"}, 4_000_000)):
        [one], _ = imported(written(EVENT | ours, **{"@context": [context]}))
        assert one.t_max - one.t_min == width
        [one], _ = imported(written(EVENT | ours | {"@context": context}))
        assert one.t_max - one.t_min == width


def test_parents_children_inputs_and_outputs_are_objects():
    """A DELETE takes children from a parent: they were there."""
    change = {"type": "AggregationEvent", "action": "DELETE", "parentID": "urn:epc:id:sscc:0614141.1234567890"}
    found, _ = of(**change, epcList=None, childEPCs=[EPC])
    assert [(x.key, x.attrs["role"]) for x in found] == [(change["parentID"], "parentID"), (EPC, "childEPCs")]
    found, _ = of(type="TransformationEvent", epcList=[], inputEPCList=["urn:x:1"], outputEPCList=["urn:x:2"])
    assert [x.key for x in found] == ["urn:x:1", "urn:x:2"]


@pytest.mark.parametrize(
    ("change", "reasons"),
    [
        ({"action": "DELETE"}, ["deleted"]),
        ({"epcList": ["urn:epc:idpat:sgtin:0614141.812345.*"]}, ["class"]),
        ({"epcList": ["https://id.gs1.org/01/80614141123458/10/LOT7"]}, ["class"]),
        (
            {"epcList": [], "quantityList": [{"epcClass": "urn:epc:class:lgtin:4012345.012345.9", "quantity": 3}]},
            ["class"],
        ),
        ({"epcList": []}, ["nothing"]),
        ({"errorDeclaration": {"declarationTime": "2026-11-18T12:00:00Z"}}, ["declaration"]),
        ({"type": 3}, ["malformed"]),
        ({"eventTime": "2026-11-18T13:06:40"}, ["time"]),
        ({"eventTime": "2036-11-18T13:06:40Z"}, ["time"]),
        ({"epcList": [7, "x" * 300]}, ["object", "object"]),
        ({"sensorElementList": [sensed("yesterday", "2026-11-18T11:06:41Z")]}, ["time"]),
    ],
)
def test_what_is_no_reading_is_kept_with_a_reason_and_its_neighbours_land(change, reasons):
    """The number is that of the event."""
    found, left_out = imported(
        written(EVENT, EVENT | {"eventID": "urn:uuid:2"} | change, EVENT | {"eventID": "urn:uuid:3"})
    )
    assert left_out == [(reason, 2) for reason in reasons]
    assert len(found) == 2


def test_an_object_beside_a_class_is_still_a_reading():
    """Identities of objects do not depend on what their neighbours are."""
    found, left_out = of(
        epcList=["urn:epc:class:lgtin:4012345.012345.9", EPC], quantityList=[{"epcClass": "urn:epc:x"}]
    )
    assert [(x.key, x.seq) for x in found] == [(EPC, 1)]
    assert left_out == [("class", 1), ("class", 1)]


def test_events_that_are_taken_back_and_repeats_are_no_readings():
    """In whatever file the declaration is."""
    found, left_out = imported(written(EVENT, EVENT | {"eventID": "urn:uuid:2"}), back={"urn:uuid:2"})
    assert (len(found), left_out) == (1, [("taken back", 2)])
    seen = set()
    imported(written(EVENT), seen=seen)
    assert imported(written(EVENT | {"action": "ADD"}), seen=seen) == ([], [("repeat", 1)])


@pytest.mark.parametrize("fault", [{"eventTime": "yesterday"}, {"epcList": [7]}, {"type": None}])
def test_an_event_with_a_fault_does_not_make_a_repeat_of_the_corrected_one(fault):
    """Which has the same id."""
    found, left_out = imported(written(EVENT | fault, EVENT, EVENT))
    assert len(found) == 1
    assert [number for _, number in left_out] == [1, 3]
    assert left_out[1] == ("repeat", 3)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "found no JSON"),
        ("<?xml version='1.0'?><epcis:EPCISDocument/>", "found XML, expected JSON"),
        ("[]", "expected an object with the type EPCISDocument"),
        ("[" * 100_000, "nested too deeply"),
        ('{"type": "EPCISDocument", "schemaVersion": "1.2"}', "found schemaVersion '1.2', expected 2.0"),
        (written(epcisBody={}), "found no eventList"),
        (written(epcisBody=7), "found no eventList"),
        (written(EVENT)[:-3], "found no JSON"),
        (written(EVENT).replace('"+02:00"', "NaN"), "NaN is no number"),
    ],
)
def test_what_is_no_document_is_refused_with_what_was_found(text, problem):
    """Nothing of it is read."""
    with pytest.raises(NotEpcisError, match=problem):
        imported(text)


def test_results_of_queries_are_documents_too():
    """Repositories answer with them."""
    body = {"queryResults": {"queryName": "q", "resultsBody": {"eventList": [EVENT]}}}
    assert len(imported(written(type="EPCISQueryDocument", epcisBody=body))[0]) == 1


def test_an_error_is_asked_for_only_where_an_event_needs_it():
    """Before anything lands."""
    sensor = {"sensorElementList": [sensed("2026-11-18T11:06:39Z", "2026-11-18T11:06:41Z")]}
    for event in (EVENT, EVENT | sensor):
        with pytest.raises(
            NotEpcisError, match=r"event 1: found no whenabouts:earliest and latest in it, expected --error"
        ):
            imported(written(event), error_us=None)
    some = {"epcList": [], "quantityList": [{"epcClass": "urn:epc:class:lgtin:4012345.012345.9", "quantity": 3}]}
    assert imported(written(EVENT | some), error_us=None) == ([], [("class", 1)])


def test_the_same_events_have_the_same_identity_in_any_document():
    """Of another date and layout; other events have another."""
    one, two = written(EVENT), json.dumps(json.loads(written(EVENT, creationDate="2026-11-19T00:00:00Z")), indent=2)
    [a], [b], [c] = (imported(x)[0] for x in (one, two, written(EVENT | {"eventID": "urn:uuid:9"})))
    assert a.identity == b.identity != c.identity


def test_what_was_exported_comes_back():
    """Stamps to the microsecond, keys, streams, ends of visits and states of clocks: everything but identities."""
    rng = random.Random(5)
    landed = [
        rows.landed(rng) | {"t_min": (t := rows.place(rng)["t_min"]), "t_max": t + rng.choice([0, 77])}
        for _ in range(300)
    ]
    text = document([of_reading(row, Names(links=rng.random() < 0.5)) for row in landed], NOW_US).decode()
    found, left_out = imported(text, error_us=None)
    names = ("t_min", "t_max", "stream", "kind", "clock_state", "key")
    assert [[getattr(x, name) for name in names] for x in found] == [[row[name] for name in names] for row in landed]
    assert [x.value for x in found] == [json.loads(row["value"] or "null") for row in landed]
    assert left_out == []


def run(*arguments):
    return CliRunner().invoke(imports, ["epcis", *map(str, arguments)])


def test_files_land_once_and_declarations_count_across_files(tmp_path):
    """Importing again, also under another name, lands nothing; what is no reading is kept in _dead."""
    row = rows.landed(random.Random(1), key=CASE, kind="tag", value=None, attrs=None)
    event = of_reading(row, Names())
    (tmp_path / "a.json").write_bytes(document([event, of_reading(row | {"seq": 1}, Names())], 0))
    (tmp_path / "b.json").write_bytes(document([taken_back(event, 0)], 0))
    landing = tmp_path / "landing"
    done = run(tmp_path / "a.json", tmp_path / "b.json", "--landing", landing, "--json")
    a, b = map(json.loads, done.output.splitlines())
    assert (a["landed"], a["side_output"], b["landed"], b["side_output"]) == (
        1,
        {"taken back": 1},
        0,
        {"declaration": 1},
    )
    assert [file.parent for file in map(tmp_path.joinpath, [a["side_output_file"]])] == [landing / "_dead"]
    (tmp_path / "a.json").rename(tmp_path / "c.json")
    [again] = map(
        json.loads,
        run(tmp_path / "c.json", tmp_path / "b.json", "--landing", landing, "--json").output.splitlines()[:1],
    )
    assert (again["landed"], again["repeats"]) == (0, 1)
    [file] = landing.glob("hour=*/*.parquet")
    assert pq.read_table(file)["key"].to_pylist() == [CASE]


def test_what_cannot_be_taken_lands_nothing(tmp_path, monkeypatch):
    """Also if the file before it is fine: a bad document, a missing --error, nonsense for it, a file that is too large."""
    (tmp_path / "good.json").write_text(written(EVENT))
    (tmp_path / "bad.json").write_text(written(EVENT)[:-9])
    landing = tmp_path / "landing"
    for arguments, problem in (
        ([tmp_path / "good.json", tmp_path / "bad.json", "--error", "2 s"], "bad.json: found no JSON"),
        (
            [tmp_path / "good.json"],
            "good.json: event 1: found no whenabouts:earliest and latest in it, expected --error",
        ),
        ([tmp_path / "good.json", "--error", "soon"], "expected a duration such as"),
        ([tmp_path / "good.json", "--error", "0.1 us"], "expected whole microseconds"),
        ([tmp_path / "good.json", "--error", "-2 s"], "expected a duration such as"),
        ([tmp_path / "good.json", "--error", "2 s", "--site", "a/b"], "expected one without spaces"),
    ):
        done = run(*arguments, "--landing", landing)
        assert done.exit_code != 0
        assert problem in " ".join(done.output.split())
    monkeypatch.setattr(importing, "MAX_DOCUMENT_BYTES", 10)
    assert (
        "expected at most 10; cut it in parts"
        in run(tmp_path / "good.json", "--landing", landing, "--error", "2 s").output
    )
    assert not landing.exists()
