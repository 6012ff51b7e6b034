"""Results at a capture interface that answers in every way (`whenabouts_cloud.delivery.capturing`)."""

import json
from collections import Counter

import pytest

from support.cloud.landing import land, reading
from support.cloud.published_results import PLACES, batch, match, publish, states
from support.epcis.capture_server import repository
from support.epcis.rows import pair
from whenabouts_cloud.correlation.pairs import RESULT as PAIRS
from whenabouts_cloud.delivery import http_connection
from whenabouts_cloud.delivery.capturing import capture, refused
from whenabouts_cloud.delivery.deliveries import Deliveries
from whenabouts_cloud.delivery.http_connection import RefusedError
from whenabouts_cloud.delivery.published import Batch, folder_of
from whenabouts_cloud.delivery.targets import open_target
from whenabouts_cloud.delivery.uri import TargetError, identity, shown
from whenabouts_cloud.landing.files import DamagedFileError


@pytest.fixture
def far():
    with repository() as server:
        yield server


@pytest.fixture
def deliver(tmp_path, far):
    """Delivers a batch of these rows by a target; the same target for all batches of a test."""
    made = {}

    def run(rows, number=0, options="", unit="matches"):
        target = made.setdefault(options, open_target(far.uri + options, unit))
        folder = tmp_path / folder_of(number)
        if not folder.exists():
            publish(tmp_path, number, rows)
        try:
            return target.deliver(Batch(folder, "s", number))
        except Exception:
            target.close()  # as a courier does
            raise

    yield run
    for one in made.values():
        one.close()


def kept(far):
    """Ids of results that the repository has as they are at the end: "match", or "retracted" if one takes it back."""
    found = {}
    for (_, back), event in far.events.items():
        name = event["whenabouts:result"].removeprefix("urn:whenabouts:result/")
        found[name] = "retracted" if back else found.get(name, "match")
    return found


def refused_in(tmp_path):
    return [
        json.loads(line) for file in sorted((tmp_path / "_refused").glob("*")) for line in file.read_text().splitlines()
    ]


def test_matches_become_valid_events_and_retractions_take_them_back(tmp_path, deliver, far):
    """Also those of an earlier batch: the event that takes one back is that event with a declaration."""
    assert [deliver(batch(number), number) for number in range(3)] == [len(batch(number)) for number in range(3)]
    assert kept(far) == states(3)
    for (name, back), event in far.events.items():
        if back:
            assert event.pop("errorDeclaration")["reason"] == "did_not_occur"
            assert event == far.events[name, False]
    assert sum(back for _, back in far.events) == 5


def test_the_same_batch_again_has_the_same_ids(deliver, far):
    """So a repository that keeps events by their id has each once."""
    deliver(batch(0))
    first = dict(far.events)
    deliver(batch(0))
    assert far.events.keys() == first.keys()
    assert set(far.posts.values()) == {2, 4}  # the one that is taken back has its id in two events


def test_a_job_is_looked_after_until_it_has_ended(deliver, far):
    """On the same server and with the same credentials, whatever host the location has."""
    far.looks, far.location = 3, "https://inner.example:1"
    deliver([match("a")])
    assert far.looked == ["/v1/capture/0"] * 4


@pytest.mark.parametrize(
    ("location", "asked"),
    [
        ("/jobs/a b", "/jobs/a%20b"),
        ("/jobs/café", "/jobs/caf%E9"),
        ("/jobs/a%20b?x=1", "/jobs/a%20b?x=1"),
        ("capture/7", "/v1/capture/7"),
        ("../jobs/7", "/jobs/7"),
        ("?job=7", "/v1/capture?job=7"),
        ("//inner.example/jobs/7", "/jobs/7"),
        ("mailto:x", None),
        ("http://[/7", None),
    ],
)
def test_any_location_is_looked_at_or_passed_over(deliver, far, location, asked):
    """It may be relative, or have characters that a request may not have; it stops no delivery."""
    far.location, far.numbered = location, False
    assert deliver([match("a")]) == 1
    assert far.looked == ([] if asked is None else [asked])


@pytest.mark.parametrize("looks", [None, 0])
def test_an_answer_without_a_job_is_success(deliver, far, looks):
    """201, or a job that nobody can be asked about."""
    far.looks = looks
    far.location = "/nowhere"
    assert deliver([match("a")]) == 1
    assert len(far.events) == 1


def test_a_job_that_does_not_end_is_a_failure_and_is_not_sent_again(deliver, far, monkeypatch):
    """The next attempt goes on waiting for it."""
    monkeypatch.setattr(capture, "JOB_S", 0.1)
    far.looks = 6
    with pytest.raises(RefusedError, match=r"still runs after 0 s"):
        deliver([match("a")])
    while True:
        try:
            deliver([match("a")])
            break
        except RefusedError:
            pass
    assert list(far.posts.values()) == [1]


def test_no_document_of_a_batch_is_sent_again_after_the_failure_of_another(deliver, far, monkeypatch):
    """Two documents whose jobs take longer than an attempt, and an answer of failure between them."""
    monkeypatch.setattr(capture, "JOB_S", 0.1)
    monkeypatch.setattr(capture, "MAX_BYTES", 2500)
    far.looks, far.answers = 2, [202, 503]
    rows, delivered, failures = [match(f"m{n}") for n in range(4)], 0, 0
    while not delivered and failures < 20:
        try:
            delivered = deliver(rows)
        except RefusedError:
            failures += 1
    assert delivered == 4
    assert failures > 2
    assert len(far.sizes) == len(far.jobs) > 1
    assert set(far.posts.values()) == {1}
    far.looks = 0
    deliver(rows)
    assert set(far.posts.values()) == {2}  # nothing is remembered of a batch that was delivered


@pytest.mark.parametrize("status", [401, 403, 404, 429, 500, 503, 302, 307, 308])
def test_another_answer_than_success_is_a_failure_and_no_redirection_is_followed(deliver, far, status):
    """Credentials go nowhere else; the batch is delivered by the next attempt."""
    far.answers = [status]
    with pytest.raises(RefusedError, match=f"found answer {status}"):
        deliver([match("a")])
    assert far.looked == []
    assert deliver([match("a")]) == 1


@pytest.mark.parametrize("by_job", [False, True])
def test_events_that_are_refused_are_kept_aside_and_the_others_are_delivered(tmp_path, deliver, far, caplog, by_job):
    """Documents are halved until the refused ones are alone. They are named in the log, with the reason."""
    far.by_job, far.refusal = by_job, 422
    far.refuses = lambda event: event["whenabouts:result"].endswith(("/m3", "/m7"))
    assert deliver([match(f"m{n}") for n in range(40)]) == 38
    assert len(kept(far)) == 38
    lines = refused_in(tmp_path)
    assert [one["event"]["whenabouts:result"][-2:] for one in lines] == ["m3", "m7"]
    assert all("not wanted" in one["reason"] for one in lines)
    [record] = [one for one in caplog.records if one.event == "delivery.refused"]
    assert record.levelname == "ERROR"
    assert len(far.sizes) < 20


def test_while_nothing_was_accepted_a_refusal_stops_the_delivery(tmp_path, deliver, far):
    """A wrong address must not set everything aside."""
    far.refuses = lambda event: True
    with pytest.raises(RefusedError, match="no event that is accepted since the start"):
        deliver([match("a"), match("b")])
    assert refused_in(tmp_path) == []


def test_documents_that_are_too_large_are_halved(deliver, far, monkeypatch):
    """By their own limit, and by that of the repository; nothing is refused."""
    far.most_events = 3
    assert deliver([match(f"m{n}") for n in range(10)]) == 10
    assert max(size for size in far.sizes) == 10
    far.sizes.clear()
    monkeypatch.setattr(capture, "MAX_BYTES", 2500)
    deliver([match(f"n{n}") for n in range(10)], 1)
    assert max(far.sizes) <= 3
    assert len(kept(far)) == 20


def test_an_event_that_the_repository_has_already_is_no_failure(tmp_path, deliver, far):
    """409 of a single event; of one that takes another back, which has its id, it is a refusal."""
    deliver([match("a")])
    far.refusal, far.refuses = 409, lambda event: True
    assert deliver([match("a")], 1) == 1
    deliver([match("a", status="retracted")], 2)
    assert ["errorDeclaration" in one["event"] for one in refused_in(tmp_path)] == [True]


def test_a_retraction_without_its_match_is_kept_aside(tmp_path, deliver, far):
    """Its folder was deleted: what the event was is not known."""
    deliver([match("a")])
    deliver([match("b", status="retracted")], 1)
    [line] = refused_in(tmp_path)
    assert line["event"]["result_id"] == "b"
    assert "in no batch" in line["reason"]


def test_a_batch_of_nothing_that_can_be_an_event_does_not_stop_the_delivery(tmp_path, deliver, far):
    """The repository has refused nothing, so the address is not in doubt, also at the start."""
    assert deliver([match("b", status="retracted")]) == 0
    assert [one["event"]["result_id"] for one in refused_in(tmp_path)] == ["b"]
    assert deliver([match("a")], 1) == 1


def test_refused_events_that_nobody_looks_at_stop_the_delivery(tmp_path, deliver, far, monkeypatch):
    """Until their files are moved away; the batch is not lost, and one that is repeated needs no room."""
    monkeypatch.setattr(refused, "MOST_FILES", 2)
    lost = [[match(f"b{n}", status="retracted")] for n in range(3)]
    for number in (0, 1, 1):
        deliver(lost[number], number)
    with pytest.raises(refused.FullError, match="found 2 files of refused events, expected fewer than 2"):
        deliver(lost[2], 2)
    assert len(refused_in(tmp_path)) == 2
    next((tmp_path / "_refused").iterdir()).unlink()
    deliver(lost[2], 2)
    assert "b2" in [one["event"]["result_id"] for one in refused_in(tmp_path)]


def test_a_stamp_outside_the_calendar_is_kept_aside(tmp_path, deliver, far):
    """EPCIS has no text for it."""
    far_off = match("b") | {"events": [PLACES[0] | {"t_max": 1 << 61}]}
    assert deliver([match("a"), far_off]) == 1
    assert "years 1 to 9999" in refused_in(tmp_path)[0]["reason"]


def test_the_header_of_authorization_comes_from_the_variable_that_the_uri_names(deliver, far, monkeypatch):
    """Nothing behind # is sent."""
    monkeypatch.setenv("SHOP_TOKEN", "Bearer abc")
    deliver([match("a")], options="#authorization=SHOP_TOKEN")
    assert far.headers[0]["Authorization"] == "Bearer abc"
    assert far.headers[0]["Content-Type"] == "application/json"


def test_keys_are_looked_up_in_a_landing_that_the_uri_names(tmp_path, deliver, far):
    """A pair of two objects is an association, or an aggregation where the URI says that."""
    keys = {7: "3174257BF4499602D2000000", 8: "3074257BF7194E4000001A85"}
    land(tmp_path / "landing", [reading("g", seq, "x", key, 1, 9, site="s") for seq, key in keys.items()])
    rows = [match("a") | {"key": None}]
    deliver(rows, options=f"#landing={tmp_path / 'landing'}")
    deliver(rows, 1, options=f"#landing={tmp_path / 'landing'}&loads=other,unpaid&links")
    association, aggregation = far.events.values()
    assert association["parentID"] == "urn:epc:id:sscc:0614141.1234567890"
    assert (association["type"], aggregation["type"]) == ("AssociationEvent", "AggregationEvent")
    assert aggregation["childEPCs"] == ["https://id.gs1.org/01/80614141123458/21/6789"]


def test_a_batch_waits_while_keys_may_be_in_a_damaged_file_of_the_landing(tmp_path, deliver, far):
    """Without them its events would name no objects, and have other ids afterwards."""
    land(tmp_path / "landing", [reading("g", seq, "x", "A", 1, 9, site="s") for seq in (7, 8)])
    [file] = (tmp_path / "landing").glob("hour=*/*")
    whole = file.read_bytes()
    file.write_bytes(whole[:-20])
    options = f"#landing={tmp_path / 'landing'}"
    with pytest.raises(DamagedFileError, match=f"{file.name}: found no whole Parquet file"):
        deliver([match("a") | {"key": None}], options=options)
    assert far.posts == {}
    file.write_bytes(whole)
    deliver([match("a") | {"key": None}], options=options)
    assert [one["epcList"] for one in far.events.values()] == [["urn:whenabouts:key/A"]]


def test_pairs_are_events_too(tmp_path, far):
    """Their columns are others."""
    import random

    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = random.Random(3)
    (tmp_path / "batch=00000000").mkdir()
    rows = [pair(rng) for _ in range(50)]
    pq.write_table(pa.Table.from_pylist(rows, PAIRS), tmp_path / "batch=00000000" / "part.parquet")
    assert open_target(far.uri, "pairs").deliver(Batch(tmp_path / "batch=00000000", "s", 0)) == 50
    assert Counter(kept(far).values()) == {"match": 50}


def test_a_server_that_does_not_answer_is_a_failure(deliver, far, monkeypatch):
    """After the time that a request may take; the events that it has kept meanwhile come again with their ids."""
    monkeypatch.setattr(http_connection, "TIMEOUT_S", 0.2)
    far.slow_s = 1.0
    with pytest.raises(TimeoutError):
        deliver([match("a")])
    far.slow_s = 0.0
    assert deliver([match("a")]) == 1


def test_a_courier_goes_on_after_failures_and_loses_nothing(tmp_path, far):
    """Cut connections, answers of all kinds, and a refused event in the middle."""
    far.answers = [0, 500, 0, 302, 401, 202, 0, 503]
    far.refuses = lambda event: event["whenabouts:result"].endswith("/1-1")
    for number in range(4):
        publish(tmp_path, number)
    some = Deliveries(tmp_path, "matches", [far.uri], {})
    for courier in some._couriers:
        courier._pause_s = lambda failures: 0.01
    some.start()
    for courier in some._couriers:
        courier._pause_s = lambda failures: 0.01
    assert some.finish(None) == []
    assert kept(far) == {name: state for name, state in states(4).items() if name != "1-1"}
    assert {one["event"]["whenabouts:result"][-3:] for one in refused_in(tmp_path)} == {"1-1"}


@pytest.mark.parametrize(
    ("uri", "unit", "problem"),
    [
        ("epcis:https://h/x", "counts", "found it for counts, expected pairs or matches"),
        ("epcis:https:///x", "pairs", "found no host"),
        ("epcis:postgresql://h/x", "pairs", "found no host, expected https://HOST/PATH"),
        ("epcis:https://h:x/x", "pairs", "expected https://HOST:PORT/PATH"),
        ("epcis:https://h/x#nonsense=1", "pairs", "found nonsense after #, expected one of authorization, landing"),
        ("epcis:https://h/x#authorization=NOT_SET", "pairs", "no header in the environment variable NOT_SET"),
        ("epcis:https://h/x#landing=/none", "pairs", "found nothing at /none"),
        ("epcis:https://me@h/x", "pairs", "found a user without password"),
    ],
)
def test_a_uri_that_cannot_be_used_is_refused_before_the_job_runs(uri, unit, problem, monkeypatch, tmp_path):
    """With what was found and what is expected."""
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(TargetError, match=problem):
        open_target(uri, unit)


def test_secrets_are_not_shown_and_options_are_no_part_of_what_a_target_is():
    """As of a webhook, only the host."""
    assert shown("epcis:https://me:secret@h/secret?x=secret#landing=l") == "epcis:https://***@h/..."
    one = identity("epcis:https://me:secret@h/x?tenant=1#links")
    assert one == identity("epcis:https://me:other@h/x?tenant=1") != identity("epcis:https://me:other@h/x?tenant=2")
    assert "secret" not in one
