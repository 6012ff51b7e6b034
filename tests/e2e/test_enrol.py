"""Who may speak: mosquitto with the files of `enrol broker`, honest clients, liars and strangers."""

import os
import pwd
import shutil
import signal
import ssl
import tempfile
import time
from pathlib import Path

import pytest
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from support.cloud.enrolled import HOST, MQTT_3, MQTT_5, Client, EnrolledBroker, enrol, enrolled_broker
from support.edge.tls_broker import make_certificates
from support.waiting import until
from whenabouts_cloud.enrol import mosquitto
from whenabouts_cloud.enrol.authority import DAY_S
from whenabouts_cloud.enrol.folder import opened
from whenabouts_cloud.ingest.receiving.buffered_client import MAX_PACKET_BYTES
from whenabouts_edge import mqtt_client as agent_client
from whenabouts_protocol import topic
from whenabouts_protocol.layout import MAX_MESSAGE_BYTES

VERSIONS = [MQTT_5, MQTT_3]
DENIED = "Not authorized"
OWN = ("obs", "heartbeat", "birth", "status", "state")
HEARD = ("ack", "rules", "cmd")


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    """A broker with gateways s/victim and s/liar, and ingest and publisher."""
    with enrolled_broker(tmp_path_factory.mktemp("enrol")) as made:
        for name in ("victim", "liar"):
            made.gateway("s", name)
        made.cloud("ingest")
        made.cloud("publisher")
        yield made


@pytest.fixture
def liar(broker):
    with broker.client(broker.folder / "s.liar") as client:
        yield client


@pytest.fixture
def ingest(broker):
    with broker.client(broker.folder / "ingest") as client:
        yield client


@pytest.mark.parametrize("version", VERSIONS)
def test_a_gateway_publishes_as_itself_and_the_ingest_hears_it(broker, version):
    """With both versions of MQTT, and with the client id of broker.toml."""
    with (
        broker.client(broker.folder / "ingest", version) as ingest,
        broker.client(broker.folder / "s.victim", version, "s/victim") as victim,
    ):
        ingest.subscribe("wa/2/+/+/obs", "wa/2/+/+/birth", "wa/2/+/+/heartbeat")
        victim.subscribe(topic("s", "victim", "ack"))
        for leaf in OWN:
            assert victim.publish(topic("s", "victim", leaf), leaf.encode()) == "Success"
        until(lambda: {p for _, p in ingest.heard} == {b"obs", b"birth", b"heartbeat"}, "the readings")
        assert ingest.publish(topic("s", "victim", "ack"), b"landed") == "Success"
        until(lambda: victim.heard == [(topic("s", "victim", "ack"), b"landed")], "the acknowledgement")


def test_a_gateway_cannot_publish_as_another(broker, liar):
    """Every topic of another gateway, and its own ack and rules, are denied with a reason code."""
    for name, leaves in (("victim", OWN + HEARD), ("liar", HEARD)):
        for leaf in leaves:
            assert liar.publish(topic("s", name, leaf), b"lie", retain=True) == DENIED
    for other in ("wa/2/s/liar/obs/more", "wa/2/s/obs", "wa/2/other/liar/obs", "$SYS/x", "wa/2/liar/s/obs", "x"):
        assert liar.publish(other) == DENIED
    assert liar.publish(topic("s", "liar", "obs")) == "Success"


def test_a_gateway_cannot_read_what_is_for_others(broker, liar, ingest):
    """Whatever it subscribes to, it hears only its own acknowledgement."""
    liar.subscribe("#", "$share/g/wa/2/+/+/ack", "$SYS/#", topic("s", "victim", "ack"), topic("s", "victim", "obs"))
    with broker.client(broker.folder / "s.victim") as victim:
        for leaf in OWN:
            assert victim.publish(topic("s", "victim", leaf), b"private", retain=True) == "Success"
        for name in ("victim", "liar"):
            assert ingest.publish(topic("s", name, "ack"), name.encode(), retain=True) == "Success"
    until(lambda: liar.heard, "its own acknowledgement")
    assert set(liar.heard) == {(topic("s", "liar", "ack"), b"liar")}


def test_retained_messages_cannot_be_planted(broker, liar):
    """Neither published, nor as a last will."""
    with broker.client(broker.folder / "publisher") as late:
        planted = topic("s", "planted", "birth")
        assert liar.publish(planted, b"lie", retain=True) == DENIED
        will = Client(broker.port, broker.folder / "s.liar", will=(planted, b"lie"))
        will.close(abruptly=True)
        with broker.client(broker.folder / "s.victim") as victim:
            assert victim.publish(topic("s", "victim", "birth"), b"honest", retain=True) == "Success"
        late.subscribe("wa/2/+/+/birth")
        until(lambda: (topic("s", "victim", "birth"), b"honest") in late.heard, "the honest birth")
        assert planted not in {name for name, _ in late.heard}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_gateway_cannot_take_the_connection_of_another(broker, version):
    """The client id that it gives is replaced by its own identity."""
    with (
        broker.client(broker.folder / "s.victim", version, "s/victim") as victim,
        broker.client(broker.folder / "s.liar", version, "s/victim") as liar,
    ):
        assert liar.publish(topic("s", "liar", "obs")) == "Success"
        assert victim.publish(topic("s", "victim", "obs")) == "Success"
        assert (victim.connections, victim.refused) == (1, "")


def test_publisher_and_ingest_have_only_their_own_rights(broker, ingest):
    """The one gives rules, the other acknowledges; neither can speak as a gateway."""
    with broker.client(broker.folder / "publisher") as publisher:
        ingest.subscribe("wa/2/+/+/rules")
        assert publisher.publish(topic("s", "victim", "rules")) == "Success"
        until(lambda: ingest.heard, "the rules, whose streams the ingest must know")
        assert [publisher.publish(topic("s", "victim", leaf)) for leaf in (*OWN, "ack", "cmd")] == [DENIED] * 7
        assert [ingest.publish(topic("s", "victim", leaf)) for leaf in (*OWN, "rules", "cmd")] == [DENIED] * 7


@pytest.mark.parametrize("stranger", ["anonymous", "foreign authority", "plain TCP", "TLS 1.1", "server's certificate"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_strangers_are_refused(broker, stranger, tmp_path):
    """Before they can send any message."""
    victim = broker.folder / "s.victim"
    if stranger == "anonymous":
        client = Client(broker.port, None, ca=victim / "ca.crt")
    elif stranger == "plain TCP":
        client = Client(broker.port, None)
    elif stranger == "TLS 1.1":
        client = Client(broker.port, victim, tls=ssl.PROTOCOL_TLSv1_1)
    elif stranger == "server's certificate":
        for name in ("crt", "key"):
            shutil.copy(broker.files / f"server.{name}", tmp_path / f"client.{name}")
        client = Client(broker.port, tmp_path, ca=victim / "ca.crt")
    else:
        make_certificates(tmp_path)
        (tmp_path / "client.pem").rename(tmp_path / "client.crt")
        client = Client(broker.port, tmp_path, ca=victim / "ca.crt")
    assert client.connections == 0
    assert client.refused
    client.close()


def test_an_expired_certificate_is_refused(broker, tmp_path):
    """A certificate that was valid until an hour ago."""
    with opened(broker.ca, None) as ca:
        ca.enrol_client("s/victim", tmp_path, int(time.time()) - DAY_S - 3600, 1)
    with broker.client(tmp_path) as client:
        assert client.connections == 0
    with broker.client(broker.folder / "s.victim") as client:
        assert client.connections == 1


@pytest.mark.parametrize("version", VERSIONS)
def test_an_oversize_message_ends_the_connection_that_sends_it(broker, version, ingest):
    """It reaches nobody, and the broker does not keep it."""
    ingest.subscribe("wa/2/+/+/obs")
    with broker.client(broker.folder / "s.liar", version) as liar:
        liar.client._maximum_packet_size = None
        assert liar.publish(topic("s", "liar", "obs"), bytes(2 << 20)) not in ("Success", "")
    with broker.client(broker.folder / "s.liar", version) as liar:
        assert liar.publish(topic("s", "liar", "obs"), b"small") == "Success"
    until(lambda: b"small" in [payload for _, payload in ingest.heard], "a small message")
    assert max(len(payload) for _, payload in ingest.heard) < 100


@pytest.mark.parametrize("version", VERSIONS)
def test_messages_longer_than_the_ingest_takes_do_not_stop_the_others(broker, version):
    """A broker that accepts such counts each as on the way to the ingest for ever, until nothing more fits."""
    window = Properties(PacketTypes.CONNECT)
    window.ReceiveMaximum, window.MaximumPacketSize = 3, MAX_PACKET_BYTES
    longest = bytes(MAX_PACKET_BYTES)
    with (
        broker.client(broker.folder / "ingest", properties=window) as ingest,
        broker.client(broker.folder / "s.victim") as victim,
    ):
        ingest.subscribe("wa/2/+/+/obs")
        for _ in range(4):
            with broker.client(broker.folder / "s.liar", version) as liar:
                liar.client._maximum_packet_size = None
                assert liar.publish(topic("s", "liar", "obs"), longest) not in ("Success", "")
        assert victim.publish(topic("s", "victim", "obs"), b"honest") == "Success"
        until(lambda: b"honest" in [payload for _, payload in ingest.heard], "the honest message")


def test_a_message_as_long_as_the_protocol_allows_arrives(broker, ingest):
    """With the longest names; the broker's limit is above that of messages, and below those of its receivers."""
    assert min(MAX_PACKET_BYTES, agent_client.MAX_PACKET_BYTES) > mosquitto.MAX_PACKET_BYTES + 8
    ingest.subscribe("wa/2/+/+/heartbeat")
    with broker.client(broker.gateway("s", "l" * 62)) as longest:
        assert longest.publish(topic("s", "l" * 62, "heartbeat"), bytes(MAX_MESSAGE_BYTES)) == "Success"
    until(lambda: MAX_MESSAGE_BYTES in [len(payload) for _, payload in ingest.heard], "the message")


@pytest.mark.parametrize("version", VERSIONS)
def test_messages_that_the_broker_would_have_to_keep_for_their_sender_end_the_connection(broker, version):
    """QoS 2 is for nobody: without its last step the message stays in the broker's memory."""
    with broker.client(broker.folder / "s.liar", version) as liar:
        liar.client.publish(topic("s", "liar", "obs"), b"x", qos=2)
        until(lambda: liar.refused, "the end of the connection")


NAMES = ["ünïcödé-日本", "%u", "%c", "em\u2003space", 'quo"te\\', "x" * 62, "topic", "it's"]


@pytest.mark.parametrize("name", NAMES)
def test_any_valid_name_is_bound_to_its_topics(broker, name):
    """Names with signs that mean something to mosquitto or to TOML speak for themselves and for nobody else."""
    folder = broker.gateway("s", name)
    with broker.client(folder, client_id=f"s/{name}") as client:
        assert client.publish(topic("s", name, "obs")) == "Success"
        assert client.publish(topic("s", "victim", "obs")) == DENIED


def test_members_of_a_group_hear_each_other(broker):
    """Birth, status and state of other members, after mosquitto has read its files again; nobody else's."""
    folders = {name: broker.gateway("g", name, "--group", "meeting") for name in ("desk", "phone")}
    broker.process.send_signal(signal.SIGHUP)
    with (
        broker.client(folders["desk"]) as desk,
        broker.client(folders["phone"]) as phone,
        broker.client(broker.folder / "s.liar") as liar,
    ):
        for client in (desk, liar):
            client.subscribe("wa/2/g/phone/#")
        for leaf in ("obs", "heartbeat", "state", "status", "birth"):
            assert phone.publish(topic("g", "phone", leaf), leaf.encode()) == "Success"
        until(lambda: len(desk.heard) == 3, "three messages")
        assert {payload for _, payload in desk.heard} == {b"birth", b"status", b"state"}
        assert desk.publish(topic("g", "phone", "state")) == DENIED
        assert liar.heard == []


def test_several_ingests_are_connected_at_once_and_have_only_their_own_sites(broker):
    """Each has a certificate with its name; one without a site reads and acknowledges all."""
    for name, *sites in (("a", "s"), ("b", "yard", "roof"), ("c",)):
        options = [part for site in sites for part in ("--site", site)]
        enrol("ingest", "--dir", broker.ca, "--out", broker.folder / f"ingest-{name}", "--name", name, *options)
    broker.process.send_signal(signal.SIGHUP)
    with (
        broker.client(broker.folder / "ingest-a") as a,
        broker.client(broker.folder / "ingest-b") as b,
        broker.client(broker.folder / "ingest-c") as c,
        broker.client(broker.folder / "s.victim") as victim,
    ):
        acked = topic("s", "victim", "ack")
        until(lambda: a.publish(acked) == "Success", "the rules that mosquitto reads again")
        assert (b.publish(acked), c.publish(acked)) == (DENIED, "Success")
        assert b.publish(topic("roof", "g", "ack")) == "Success"
        for one in (a, b, c):
            one.subscribe("wa/2/+/+/obs", "wa/2/s/+/obs")
        assert victim.publish(topic("s", "victim", "obs")) == "Success"
        until(lambda: a.heard and c.heard, "the readings")
        assert b.heard == []
        assert [one.connections for one in (a, b, c)] == [1, 1, 1]


def test_a_revoked_gateway_is_refused_and_its_connection_has_no_rights(broker):
    """From SIGHUP on; `enrol gateway` lets it in again."""
    folder = broker.gateway("s", "stolen")
    with broker.client(folder) as open_one, broker.client(broker.folder / "s.victim") as honest:
        assert open_one.publish(topic("s", "stolen", "obs")) == "Success"
        assert "restart mosquitto" in enrol("revoke", "s", "stolen", "--dir", broker.ca)
        broker.process.send_signal(signal.SIGHUP)
        until(lambda: open_one.publish(topic("s", "stolen", "obs")) != "Success", "the end of its rights")
        assert honest.publish(topic("s", "victim", "obs")) == "Success"
    with broker.client(folder) as again:
        assert again.connections == 0
    assert "restart mosquitto" in enrol("gateway", "s", "stolen", "--dir", broker.ca, "--out", folder)
    broker.process.send_signal(signal.SIGHUP)

    def lets_in():
        with broker.client(folder) as client:
            return client.connections and client.publish(topic("s", "stolen", "obs")) == "Success"

    until(lets_in, "the new certificate")


def test_a_session_of_the_ingest_outlives_it_and_the_broker(tmp_path):
    """What comes while it is away waits under its identity, also while mosquitto is started again."""
    properties = Properties(PacketTypes.CONNECT)
    properties.SessionExpiryInterval = 3600
    with enrolled_broker(tmp_path) as broker:
        victim, folder = broker.gateway("s", "victim"), broker.cloud("ingest")
        session = {"clean_start": False, "properties": properties}
        with broker.client(folder, client_id="wa-ingest-1", **session) as ingest:
            ingest.subscribe("wa/2/+/+/obs")
        with broker.client(victim) as client:
            assert client.publish(topic("s", "victim", "obs"), b"kept") == "Success"
        broker.stop()
        broker.start()
        with broker.client(folder, client_id="wa-ingest-2", **session) as ingest:
            until(lambda: ingest.heard == [(topic("s", "victim", "obs"), b"kept")], "the message that waited")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start processes of other users")
@pytest.mark.parametrize("how", ["root, in a folder of mosquitto", "root, where mosquitto cannot enter", "nobody"])
def test_mosquitto_starts_as_any_user(how):
    """As root it becomes its own user where that can read the files, and otherwise stays who it is. A renewal of its
    certificate leaves the files to the same user.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o700 if "cannot" in how else 0o755)
        broker = EnrolledBroker(folder, options=("--user", "nobody") if how == "nobody" else ())
        broker.start("nobody" if how == "nobody" else None)
        try:
            owner = Path(f"/proc/{broker.process.pid}").stat().st_uid
            expected = "nobody" if how == "nobody" else "root" if "cannot" in how else "mosquitto"
            assert pwd.getpwuid(owner).pw_name == expected
            enrol("broker", "--dir", broker.ca, "--out", broker.files, "--port", broker.port)
            broker.process.send_signal(signal.SIGHUP)
            renewed = (broker.files / "server.crt").read_text()
            until(lambda: ssl.get_server_certificate((HOST, broker.port)) == renewed, "the broker's new certificate")
            with broker.client(broker.gateway("s", "a")) as client:
                assert client.publish(topic("s", "a", "obs")) == "Success"
        finally:
            broker.stop()
