"""`whenabouts-cloud export epcis`: documents of a landing and of results, complete and the same each time.

The events come from `whenabouts_cloud.commands.exchange.exported_events`, and go to a folder by `exported_folder`.
"""

import json
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from support.cloud.landing import EPOCH_US, land, reading
from support.cloud.published_results import batch, match, publish
from support.epcis.gs1 import faults, hashes
from support.epcis.rows import pair
from whenabouts_cloud.commands.exchange.export import exports
from whenabouts_cloud.commands.exchange.exported_folder import Written, add
from whenabouts_cloud.correlation.pairs import RESULT as PAIRS
from whenabouts_cloud.landing.store import Store

PALLET, CASE = "3174257BF4499602D2000000", "3074257BF7194E4000001A85"


def export(*arguments):
    return CliRunner().invoke(exports, ["epcis", *map(str, arguments)])


def events_of(*texts):
    for text in texts:
        assert faults(text) == []
    return [event for text in texts for event in json.loads(text)["epcisBody"]["eventList"]]


@pytest.fixture
def landing(tmp_path):
    """Five reads of two streams, a second apart, and one reading without a key."""
    rows = [
        reading("g", n, ("dock/tags", "shelf/1")[n % 2], CASE, EPOCH_US + n * 10**6, EPOCH_US + n * 10**6 + 5)
        for n in range(5)
    ]
    land(tmp_path / "landing", rows[:3])
    land(tmp_path / "landing", [*rows[3:], reading("g", 9, "dock/button", None, EPOCH_US, EPOCH_US, kind="event")])
    return tmp_path / "landing"


def test_readings_become_one_document_on_stdout(landing):
    """What is no event is counted on stderr."""
    done = export("--landing", landing)
    events = events_of(done.stdout)
    assert [one["eventID"] for one in events] == hashes(done.stdout)
    assert len({one["eventID"] for one in events}) == 5
    assert done.stderr.splitlines() == ["5 events", "left out: 1 no key"]
    assert done.exit_code == 0


def test_documents_in_a_folder_have_names_by_their_events_and_are_written_once(landing, tmp_path):
    """An export that is repeated, or that was cut off, adds what is missing; the files do not change."""
    out = tmp_path / "out"
    assert (
        f"{out}: 5 events, 5 of them new, in 3 documents"
        in export("--landing", landing, "--out", out, "--events", 2).stderr
    )
    first = {file: file.read_bytes() for file in out.iterdir()}
    assert len(events_of(*first.values())) == 5
    gone = sorted(first)[1]
    gone.unlink()
    lost = len(events_of(first[gone]))
    assert (
        f"5 events, {lost} of them new, in 1 documents"
        in export("--landing", landing, "--out", out, "--events", 2).stderr
    )
    assert set(out.iterdir()) == set(first)
    assert all(file.read_bytes() == text for file, text in first.items() if file != gone)


def test_exports_of_a_landing_that_grows_have_each_event_once(tmp_path):
    """However many events a document has; a damaged document, or a file of somebody else, is not relied on."""
    out, met = tmp_path / "out", []
    for day in range(3):
        rows = [reading("g", 3 * day + n, "dock", CASE, EPOCH_US + n, EPOCH_US + n + 5) for n in range(3)]
        land(tmp_path / "landing", rows)
        for _ in range(2):
            met += [export("--landing", tmp_path / "landing", "--out", out, "--events", 2 + day).stderr]
        (out / "epcis-notes.json").write_bytes(b'[{"eventID": 7},\n"\xff\n{"eventID": null}')
    (out / "epcis-notes.json").unlink()
    texts = [file.read_bytes() for file in out.iterdir()]
    ids = [one["eventID"] for one in events_of(*texts)]
    assert len(ids) == len(set(ids)) == 9
    assert ["0 of them new, in 0 documents" in said for said in met] == [False, True] * 3
    some = next(out.iterdir())
    some.write_bytes(some.read_bytes()[:-200])
    assert "0 of them new" not in export("--landing", tmp_path / "landing", "--out", out).stderr


def test_an_event_is_new_once_in_a_folder_and_its_taking_back_once_more(tmp_path):
    """Also where it comes twice in one call."""
    out, one = Store.at(tmp_path), {"eventID": "ni:///a", "type": "ObjectEvent"}
    back = one | {"errorDeclaration": {}}
    assert add(out, [one, one], 5, EPOCH_US) == Written(met=2, new=1, documents=1)
    assert add(out, [one, back], 5, EPOCH_US) == Written(met=2, new=1, documents=1)
    assert str(add(out, [back, one], 5, EPOCH_US)) == "2 events, 0 of them new, in 0 documents"


def test_streams_and_times_are_chosen(landing):
    """Readings that may have happened in between."""
    done = export("--landing", landing, "--stream", "shelf/#")
    assert done.exit_code == 0
    found = events_of(done.stdout)
    assert {one["readPoint"]["id"] for one in found} == {"urn:whenabouts:readpoint/hall/g/shelf%2F1"}
    between = export("--landing", landing, "--from", EPOCH_US + 10**6 + 5, "--to", "2026-11-18T11:06:42Z")
    assert [one["sensorElementList"][0]["sensorReport"][0]["uriValue"][-4:] for one in events_of(between.stdout)] == [
        "/1/1",
        "/1/2",
    ]


def test_results_are_exported_with_their_retractions_and_keys_from_the_landing(tmp_path):
    """Of any place that a job has published in; rules are chosen, and those about loads."""
    for number in range(2):
        publish(tmp_path / "out" / "matches", number, [one | {"key": None} for one in batch(number)])
    land(tmp_path / "landing", [reading("g", n, "x", key, 1, 9, site="s") for n, key in ((7, PALLET), (8, CASE))])
    plain = export("--results", tmp_path / "out")
    assert "left out: 9 object in an event, as the key is not known" in plain.stderr
    assert {one["type"] for one in events_of(plain.stdout)} == {"ObjectEvent"}
    named = export("--results", tmp_path / "out" / "matches", "--landing", tmp_path / "landing", "--loads", "stolen")
    found = events_of(named.stdout)
    assert hashes(named.stdout) == [one["eventID"] for one in found]
    assert {(one["type"], one["whenabouts:rule"][-6:]) for one in found} == {
        ("AssociationEvent", "unpaid"), ("AggregationEvent", "stolen")
    }  # fmt: skip
    back = [one for one in found if "errorDeclaration" in one]
    assert len(back) == 3
    assert {one["eventID"] for one in back} < {one["eventID"] for one in found if "errorDeclaration" not in one}
    some = export("--results", tmp_path / "out", "--rule-name", "stolen")
    assert len(events_of(some.stdout)) == 2
    assert len(events_of(export("--results", tmp_path / "out", "--from", 10).stdout)) == 0


def test_pairs_are_exported_with_any_name_for_objects(tmp_path):
    """Links for EPCs, and addresses of ones own for the rest."""
    rng = random.Random(8)
    folder = tmp_path / "pairs" / "near" / "batch=00000000"
    folder.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist([pair(rng) for _ in range(40)], PAIRS), folder / "part.parquet")
    done = export("--results", tmp_path, "--links", "--base", "https://id.acme.example/")
    text = done.stdout
    assert len(events_of(text)) == 40
    assert "urn:epc:id:sgtin:" not in text.replace(
        "urn:epc:id:sgtin:0614141.812345.6789", ""
    )  # which was the key itself
    assert "https://id.gs1.org/" in text
    assert "https://id.acme.example/result/" in text


def test_a_damaged_file_is_named_and_the_others_are_exported(landing):
    """The exit code says that something is missing."""
    file = sorted(landing.glob("hour=*/*"))[0]
    file.write_bytes(file.read_bytes()[:-20])
    done = export("--landing", landing)
    assert done.exit_code == 1
    assert f"{file.name}: found no whole Parquet file" in done.stderr
    assert len(events_of(done.stdout)) == 2


def test_a_damaged_batch_of_results_is_named_and_the_others_are_exported(tmp_path):
    """Wherever it is damaged; also a batch whose retractions are of matches in it is not whole."""
    folders = [publish(tmp_path / "out", number) for number in range(4)]
    [file] = folders[1].glob("*.parquet")
    whole = file.read_bytes()
    changed = whole[:200] + bytes([whole[200] ^ 8]) + whole[201:]  # in a column that retractions do not need
    for data, exported in ((whole[:-20], (0, 3)), (changed, (0, 2, 3))):
        file.write_bytes(data)
        done = export("--results", tmp_path / "out")
        assert done.exit_code == 1
        assert done.exception is None or isinstance(done.exception, SystemExit)
        assert f"{file}: found a damaged file" in done.stderr
        assert (f"{folders[2]}: not all results in it are exported" in done.stderr) == (2 not in exported)
        assert len(events_of(done.stdout)) == sum(len(batch(number)) for number in exported)
    for one in folders:
        next(one.glob("*.parquet")).write_bytes(b"")
    assert export("--results", tmp_path / "out").exit_code == 1


def test_a_damaged_file_of_keys_is_named_only_if_keys_may_be_in_it(tmp_path):
    """Events without their objects have other ids, so the exit code says it."""
    out, landing = tmp_path / "out", tmp_path / "landing"
    publish(out, 0, [match("a") | {"key": None}])
    land(landing, [reading("g", n, "x", key, 1, 9, site="s") for n, key in ((7, PALLET), (8, CASE))])
    [needed] = landing.glob("hour=*/*")
    land(landing, [reading("h", 7, "x", PALLET, 1, 9, site="s")])
    [other] = set(landing.glob("hour=*/*")) - {needed}
    for file, code in ((other, 0), (needed, 1)):
        whole = file.read_bytes()
        file.write_bytes(whole[:-20])
        done = export("--results", out, "--landing", landing)
        assert done.exit_code == code
        assert (f"{file.name}: found no whole Parquet file" in done.stderr) == bool(code)
        assert len(events_of(done.stdout)) == 1
        file.write_bytes(whole)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ([], "found neither --landing nor --results"),
        (["--results", ".", "--stream", "x"], "--stream: found it with --results"),
        (["--landing", ".", "--rule-name", "x"], "found one without --results"),
        (["--landing", ".", "--base", "no uri"], "--base: found 'no uri'"),
        (["--landing", ".", "--from", "soon"], "--from: found 'soon', expected ISO 8601"),
        (["--results", "."], "found no published pairs or matches"),
        (["--landing", "/none"], "found nothing at /none"),
    ],
)
def test_wrong_usage_is_told(arguments, problem, tmp_path, monkeypatch):
    """With what was expected."""
    monkeypatch.chdir(tmp_path)
    done = export(*arguments)
    assert done.exit_code != 0
    assert problem in " ".join(done.stderr.split())


def test_an_export_of_results_is_not_confused_by_counts(tmp_path):
    """Only pairs and matches are events."""
    publish(tmp_path / "matches", 0, [match("a")])
    (tmp_path / "counts" / "batch=00000000").mkdir(parents=True)
    pq.write_table(pa.table({"matches": [3]}), tmp_path / "counts" / "batch=00000000" / "part.parquet")
    assert len(events_of(export("--results", tmp_path).stdout)) == 1
    assert export("--results", tmp_path / "counts").exit_code == 1
