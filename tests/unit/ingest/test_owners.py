"""Gateways land what they may publish, and nothing of others."""

import json

import pytest

from support.cloud.ingest import (
    NOW_US,
    at,
    batch,
    birth,
    files,
    frontiers,
    heartbeat,
    identities,
    letters,
    quick_folder,
    reading,
)
from whenabouts_cloud.health.recorder import Recorder
from whenabouts_cloud.health.records import record_in
from whenabouts_cloud.ingest.bridge import Bridge
from whenabouts_cloud.ingest.landing_writer import Landing
from whenabouts_cloud.ingest.owners import Owners, OwnersError, OwnersFile, read_owners
from whenabouts_protocol import Birth, Heartbeat, Status, encode_batch, encode_birth, encode_heartbeat, encode_status
from whenabouts_protocol.messages.compiled_rule import CompiledRule, RuleSide, encode_rules


def owned(folder, streams) -> Owners:
    """Owners as a file of gateways in this folder says: g1 with these streams, g2 revoked."""
    path = folder / "gateways.json"
    path.write_text(json.dumps({"gateways": {"hall/g1": {"streams": streams}, "hall/g2": {"revoked": True}}}))
    return Owners(read_owners(path))


def test_only_named_gateways_land_and_only_their_streams(tmp_path):
    """Unknown and revoked gateways, and other streams, end in dead letters; numbers that were not taken stay in spools."""
    with quick_folder() as folder:
        bridge = Bridge(Landing(folder), lambda: NOW_US, owned(tmp_path, ["dock/+"]))
        other = reading("g1", 0, 1)
        other.stream = "shelf/tags"
        bridge.take(at("g1"), encode_batch([reading("g1", 0, 0), other, reading("g1", 0, 2)]), 1)
        bridge.take(at("g2"), batch("g2", 0, 0, 2), 2)
        bridge.take(at("g3"), batch("g3", 0, 0, 2), 3)
        done = bridge.flush()
        assert done.tokens == [1, 2, 3]
        assert [ack.landed for ack in done.acks] == [{0: 0}]
        assert identities(folder) == [("g1", 0, 0), ("g1", 0, 2)]
        said = {letter["reason"]: letter["text"] for letter in letters(folder)[:2]}
        assert said["stream"] == "hall/g1 may not publish 'shelf/tags'; not taken: 1"
        assert said["gateway"] == "hall/g2 is revoked"
        assert bridge.dead_letters() == {"stream": 1, "gateway": 2}


def test_a_birth_gives_a_watermark_only_for_streams_that_the_gateway_may_publish(tmp_path):
    """Another's stream in it is left out, so that its frontier is not moved."""
    with quick_folder() as folder:
        bridge = Bridge(Landing(folder), lambda: NOW_US, owned(tmp_path, ["dock/tags"]))
        streams = [(name, "tag", None, 0, 0) for name in ("dock/tags", "shelf/tags")]
        bridge.take(at("g1", "birth"), encode_birth(Birth("hall", "g1", 0, streams)), 1)
        bridge.take(at("g1", "heartbeat"), heartbeat("g1", 0, NOW_US, {}), 2)
        bridge.flush()
        assert [row["streams"] for row in frontiers(folder)] == [["dock/tags"]]


def test_a_watermark_names_a_stream_as_soon_as_the_file_allows_it_and_no_longer(tmp_path):
    """A job would wait for ever for the watermark of a stream that was allowed later than its gateway told its birth."""
    now_us = NOW_US
    with quick_folder() as folder:
        owners = owned(tmp_path, ["dock/tags"])
        bridge = Bridge(Landing(folder), lambda: now_us, owners)
        streams = [(name, "tag", None, 0, 0) for name in ("dock/tags", "shelf/tags")]
        bridge.take(at("g1", "birth"), encode_birth(Birth("hall", "g1", 0, streams)), 1)
        for allowed in (["dock/tags"], None, ["shelf/tags"]):
            owned(tmp_path, allowed)
            owners.replace(read_owners(tmp_path / "gateways.json"))
            now_us += 2_000_000
            bridge.take(at("g1", "heartbeat"), heartbeat("g1", 0, now_us, {}), 2)
            bridge.flush()
        told = [row["streams"] for row in sorted(frontiers(folder), key=lambda row: row["frontier_us"])]
        assert told == [["dock/tags"], ["dock/tags", "shelf/tags"], ["shelf/tags"]]
        (tmp_path / "gateways.json").write_text('{"gateways": {}}')
        owners.replace(read_owners(tmp_path / "gateways.json"))
        assert not owners.may_publish(("hall", "g1"), "shelf/tags")


def test_derived_streams_land_only_from_gateways_that_were_sent_the_rule():
    """As the retained rules messages say, also after a restart; no file is needed for it."""
    rule = CompiledRule("$rule/handover", -5, 5, 1, 2, True, 10, RuleSide(["a"], 0, 5), RuleSide(["b"], 0, 5))
    with quick_folder() as folder:
        for start in range(2):
            landing = Landing(folder)
            bridge = Bridge(landing, lambda: NOW_US)
            if not start:
                bridge.take(at("g1", "rules"), encode_rules("hall", "g1", [rule]), 0)
            for gateway in ("g1", "evil"):
                derived = reading(gateway, 0, start)
                derived.stream = "$rule/handover"
                bridge.take(at(gateway), encode_batch([derived]), 1)
            bridge.flush()
            landing.close()
            assert bridge.dead_letters() == {"stream": 1}
        assert identities(folder) == [("g1", 0, 0), ("g1", 0, 1)]


def test_a_derived_stream_lands_from_a_gateway_of_which_the_file_names_it(tmp_path):
    """It has the rule from its own rules_file. A pattern that begins with a wildcard names none."""
    with quick_folder() as folder:
        bridge = Bridge(Landing(folder), lambda: NOW_US, owned(tmp_path, ["#", "$rule/near"]))
        for number, stream in enumerate(("dock/tags", "$rule/near", "$rule/other")):
            derived = reading("g1", 0, number)
            derived.stream = stream
            bridge.take(at("g1"), encode_batch([derived]), number)
        bridge.flush()
        assert bridge.dead_letters() == {"stream": 1}
        assert identities(folder) == [("g1", 0, 0), ("g1", 0, 1)]
        [letter] = letters(folder)
        assert "whenabouts-cloud publish" in letter["text"]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"gateways": {"a/b": 5}}', '{"gateways": {"a/b": {"streams": "x"}}}',
                                  '{"gateways": {"a/b": {"revoked": 1}}}'])  # fmt: skip
def test_a_file_of_gateways_that_cannot_be_used_is_named(tmp_path, text, caplog):
    """At the start it is an error; when it changes later, the one before it stays in use."""
    path = tmp_path / "gateways.json"
    path.write_text(text)
    with pytest.raises(OwnersError, match=r"gateways .*gateways.json: cannot be used"):
        read_owners(path)
    owned(tmp_path, ["dock/+"])
    watched = OwnersFile(path)
    owners = watched.owners
    path.write_text(text)
    watched.look()
    watched.look()
    assert owners.refusal(("hall", "g2")) == "is revoked"
    assert [record.event for record in caplog.records] == ["gateways.unusable"]
    path.write_text('{"gateways": {}}')
    watched.look()
    assert owners.refusal(("hall", "g1")) == "is not in the file of gateways"


def test_a_file_of_gateways_that_changes_while_an_ingest_starts_counts_at_its_first_look(tmp_path, monkeypatch):
    """A start may wait for a lease for half a minute, and somebody revokes a gateway meanwhile."""
    path = tmp_path / "gateways.json"
    path.write_text('{"gateways": {"hall/g1": {}}}')

    def then_changed(place):
        entries = read_owners(place)
        path.write_text('{"gateways": {"hall/g1": {"revoked": true}}}')
        return entries

    with monkeypatch.context() as patched:
        patched.setattr("whenabouts_cloud.ingest.owners.read_owners", then_changed)
        watched = OwnersFile(path)
    assert watched.owners.refusal(("hall", "g1")) is None
    watched.look()
    assert watched.owners.refusal(("hall", "g1")) == "is revoked"


def test_one_site_cannot_touch_the_readings_of_another_with_an_equally_named_gateway(bridge):
    """Numbers belong to (site, gateway): a foreign heartbeat that claims everything as landed changes nothing here."""
    bridge.take(
        "wa/2/evil/g1/heartbeat",
        encode_heartbeat(Heartbeat("evil", "g1", 77, NOW_US, {77: (1000, 1000)}, "bounded", 1)),
        1,
    )
    bridge.take(at("g1"), batch("g1", 77, 0, 5), 2)
    [ack] = [ack for ack in bridge.flush().acks if ack.site == "hall"]
    assert ack.landed == {77: 4}
    assert bridge.counters.landed == 5
    assert bridge.counters.forgotten == 1000


def test_what_gateways_report_is_recorded_if_it_is_theirs_and_lands_nothing(bridge):
    """Births, statuses, heartbeats; not those that are refused. A status that is removed at the broker says nothing."""
    recorder = Recorder()
    with quick_folder() as folder:
        landing = Landing(folder)
        recording = Bridge(landing, lambda: NOW_US, owners=owned(folder, ["dock/+"]), health=recorder)
        for one in (bridge, recording):
            one.take(at("g1", "birth"), birth("g1"), 0)
            one.take(at("g1", "status"), encode_status(Status("hall", "g1", 0, "online")), 1)
            one.take(at("g1", "status"), b"", 2)
            one.take(at("g1", "heartbeat"), heartbeat("g1", 0, None, {}), 3)
            one.take(at("g1", "status"), b"\xff", 4)
            one.take(at("g2", "status"), encode_status(Status("hall", "g2", 0, "online")), 5)
            assert one.flush().tokens == list(range(6))
        found = [record_in(line) for _, line in recorder.take()]
        assert [(r["type"], r["gateway"], r["at_us"]) for r in found] == [
            (kind, "g1", NOW_US) for kind in ("birth", "status", "heartbeat")
        ]
        assert (recording.counters.messages, recording.counters.dead, bridge.counters.dead) == (6, 2, 1)
        assert not files(folder)
        landing.close()
