"""The connection of the agent: packets beyond the limit, troubles in words, what acknowledgements may delete."""

import asyncio
import socket
import ssl
import subprocess
import threading
from dataclasses import replace

import paho.mqtt.client as mqtt
import pytest
from paho.mqtt.enums import MQTTProtocolVersion

from support.edge.tls_broker import make_certificates, make_client
from support.ending_client import ending_client
from whenabouts_edge.agent.delivery import birth
from whenabouts_edge.config.load import parse
from whenabouts_edge.mqtt_client import CHUNK_BYTES, MAX_PACKET_BYTES, connect, made, stop_loop
from whenabouts_edge.store.spool import Message
from whenabouts_edge.uplink import certificate
from whenabouts_edge.uplink.outbox import Outbox
from whenabouts_edge.uplink.trouble import CALM_S, QUICK_S, Troubles
from whenabouts_edge.uplink.uplink import Uplink

TEXT = 'site = "hall"\ngateway = "gw"\n[[reader]]\nname = "dock"\nkind = "m6e"\nport = "a"\n[broker]\n'
CONFIG = parse(TEXT)
CONNACK_3, CONNACK_5 = b"\x20\x02\x00\x00", b"\x20\x03\x00\x00\x00"
TAKEN_OVER = b"\xe0\x02\x8e\x00"


def length_of(count: int) -> bytes:
    """A remaining length as MQTT has it."""
    digits = bytearray()
    while True:
        count, digit = divmod(count, 128)
        digits.append(digit | (128 if count else 0))
        if not count:
            return bytes(digits)


def message(topic: bytes, number: int, payload: bytes) -> bytes:
    """A PUBLISH of QoS 1."""
    body = len(topic).to_bytes(2, "big") + topic + number.to_bytes(2, "big") + payload
    return b"\x32" + length_of(len(body)) + body


def test_the_client_id_is_that_of_the_certificate_unless_the_configuration_has_another():
    """Site and gateway are separated by a character that neither can have, so no two pairs make one name."""
    assert CONFIG.broker.client_id == "hall/gw"
    assert parse(TEXT + 'client_id = "x"').broker.client_id == "x"


@pytest.mark.parametrize("extra", [0, 1, 100, CHUNK_BYTES, 8 * CHUNK_BYTES])
def test_a_packet_beyond_the_limit_is_thrown_away_and_those_around_it_arrive(extra):
    """paho's reading, as installed, keeps no more than two chunks of it; its number is acknowledged, the next are whole."""
    came, sizes, acked = [], [], bytearray()
    whole = message(b"t", 2, bytes(MAX_PACKET_BYTES - 5))
    assert len(whole) == MAX_PACKET_BYTES + 4
    long = message(b"t", 1, bytes(MAX_PACKET_BYTES - 4 + extra))
    done = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(10)
        broker = replace(CONFIG.broker, host="127.0.0.1", port=server.getsockname()[1])
        client = made(broker, MQTTProtocolVersion.MQTTv311, "x")

        def on_message(_client, _data, one: mqtt.MQTTMessage) -> None:
            came.append((one.mid, client.too_long, len(one.payload)))
            sizes.append(len(client._in_packet["packet"]))
            if one.mid == 3:
                done.set()

        client.on_message = on_message
        connect(client, broker)
        peer, _ = server.accept()
        with peer:
            peer.settimeout(10)
            client.loop_start()
            peer.sendall(CONNACK_3 + long + whole + message(b"t", 3, b"end"))
            assert done.wait(20)
            while not acked.endswith(b"\x40\x02\x00\x01\x40\x02\x00\x02\x40\x02\x00\x03"):
                acked += peer.recv(100)
            client.disconnect()
            client.loop_stop()
    assert [(mid, too_long) for mid, too_long, _ in came] == [(1, MAX_PACKET_BYTES + 1 + extra), (2, 0), (3, 0)]
    assert [size for _, _, size in came[1:]] == [MAX_PACKET_BYTES - 5, 3]
    assert sizes[0] <= 2 * CHUNK_BYTES + CHUNK_BYTES


def test_the_end_of_a_connection_does_not_fail_if_its_thread_ends_at_that_moment():
    stop_loop(ending_client())


def test_a_broker_that_says_who_took_the_connection_is_believed_at_once():
    """Reason 0x8E of MQTT 5."""
    came = []

    async def main():
        with socket.create_server(("127.0.0.1", 0)) as server:

            def answer() -> None:
                connection, _ = server.accept()
                connection.settimeout(10)
                with connection:
                    came.append(connection.recv(1000))
                    connection.sendall(CONNACK_5)
                    connection.recv(1000)
                    connection.sendall(TAKEN_OVER)
                    connection.recv(1000)

            thread = threading.Thread(target=answer)
            thread.start()
            broker = replace(CONFIG.broker, host="127.0.0.1", port=server.getsockname()[1])
            lost = asyncio.Event()
            uplink = Uplink(broker, birth(CONFIG, 7, [], None), print, lambda: None, print)
            uplink._say = lambda problem: (setattr(uplink, "problem", problem), lost.set())
            task = asyncio.create_task(uplink.run())
            await asyncio.wait_for(lost.wait(), 10)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await asyncio.to_thread(thread.join, 10)
            assert "Session taken over" in uplink.problem
            assert "another client uses this name, hall/gw" in uplink.problem

    asyncio.run(main())
    assert b"hall/gw" in came[0]
    assert b"\x27" + MAX_PACKET_BYTES.to_bytes(4, "big") in came[0]  # MaximumPacketSize


def test_a_flood_waits_in_the_connection_not_in_memory():
    """While the agent is busy it reads no more than MAX_WAITING messages; then all of them arrive."""
    flood = [message(b"wa/2/hall/gw/rules", 1, bytes(1 + (200 << 10)))] * 400  # without properties
    stalled, release, all_sent = threading.Event(), threading.Event(), threading.Event()

    def serve(server: socket.socket) -> None:
        connection, _ = server.accept()
        with connection:
            connection.recv(1000)
            connection.sendall(CONNACK_5)
            connection.settimeout(1)
            left = memoryview(b"".join(flood))
            while left:
                try:
                    left = left[connection.send(left[: 1 << 20]) :]
                except TimeoutError:
                    assert len(left) > 40 << 20
                    stalled.set()
                    connection.settimeout(30)
            all_sent.set()
            while connection.recv(1000):
                pass

    def ruled(payload: bytes) -> None:
        assert release.wait(30)
        came.append(len(payload))
        if len(came) == len(flood):
            done.set()

    async def main():
        with socket.create_server(("127.0.0.1", 0)) as server:
            thread = threading.Thread(target=serve, args=(server,))
            thread.start()
            threading.Thread(target=lambda: (stalled.wait(30), release.set())).start()
            broker = replace(CONFIG.broker, host="127.0.0.1", port=server.getsockname()[1])
            task = asyncio.create_task(Uplink(broker, birth(CONFIG, 7, [], None), print, lambda: None, ruled).run())
            await asyncio.to_thread(all_sent.wait, 60)
            await asyncio.to_thread(done.wait, 60)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await asyncio.to_thread(thread.join, 10)

    came, done = [], threading.Event()
    asyncio.run(main())
    assert stalled.is_set()
    assert came == [200 << 10] * len(flood)


def test_three_quick_losses_in_a_row_are_another_client_until_a_connection_lasts():
    """One that lasted longer begins the count again; calm forgets it, a new connection does not."""
    troubles = Troubles("hall/gw")
    for lasted_s in (1, 1, QUICK_S, 1, 1):
        troubles.lost(lasted_s, False)
        assert troubles.texts == []
    troubles.lost(1, False)
    assert "another client uses this name, hall/gw, or" in troubles.texts[0]
    troubles.connected()
    assert len(troubles.texts) == 1
    troubles.calm()
    assert troubles.texts == []
    assert CALM_S > QUICK_S


def test_a_trouble_is_told_once_and_ends_with_its_cause():
    """Each text is new only once; a topic that is permitted, a new connection, or usable files remove it."""
    troubles = Troubles("hall/gw")
    assert "publish to t: no" in troubles.not_published("t", "no")
    assert troubles.not_published("t", "no") == ""
    assert "read r: no" in troubles.not_subscribed("r", "no")
    assert "found a message of 9 bytes and did not read it, expected at most 5" in troubles.too_long("b", 9, 5)
    assert "are used on: broken" in troubles.stale_files("broken")
    assert (troubles.refused, troubles.oversized, len(troubles.texts)) == (2, 1, 4)
    troubles.published("t")
    assert len(troubles.texts) == 3
    troubles.connected()
    assert len(troubles.texts) == 1
    troubles.stale_files("")
    assert troubles.texts == []


def test_what_the_broker_refused_is_no_longer_waited_for_but_not_published():
    """It goes out again after the time for what does not land; until then the watermark stands before it."""
    outbox = Outbox(4.0)
    for n in range(3):
        outbox.sent(Message(1, n, n, b""), 0.0)
    outbox.taken((1, 0))
    outbox.refused((1, 1))
    assert not outbox.overdue(5.0)  # the last one is still on its way
    outbox.taken((1, 2))
    assert outbox.published == (1, 0)
    assert outbox.overdue(5.0)
    assert (outbox.cursor, outbox.reach(1), outbox.reach(2)) == (None, 2, -1)


@pytest.mark.parametrize("is_late", [False, True], ids=["refused before it landed", "refused after it landed"])
def test_what_was_refused_and_has_landed_by_an_earlier_copy_leaves_its_place_in_the_window(is_late):
    """Once refused messages filled the window, nothing was sent until the next connection."""
    outbox = Outbox(4.0)
    outbox.window = 1
    outbox.sent(Message(1, 0, 0, b""), 0.0)
    if is_late:
        outbox.landed(1, 0, 1.0)
    outbox.refused((1, 0))
    if not is_late:
        assert outbox.room() == 0
        outbox.landed(1, 0, 1.0)
    assert (outbox.room(), outbox.published) == (1, (1, 0))


def test_the_end_of_a_certificate_is_that_which_openssl_reads(tmp_path):
    """Times with two digits of the year and with four, with and without a version; of a file with several, each."""
    make_certificates(tmp_path)
    make_client(tmp_path, "late", 12_000)  # beyond 2049
    for name in ("ca", "server", "client", "late"):
        path = tmp_path / f"{name}.pem"
        shown = subprocess.run(
            ["openssl", "x509", "-noout", "-enddate", "-in", path], check=True, capture_output=True, text=True
        ).stdout
        assert certificate.ends(str(path)) == [ssl.cert_time_to_seconds(shown.strip().partition("=")[2])]
    both = tmp_path / "both.pem"
    both.write_bytes((tmp_path / "ca.pem").read_bytes() + b"text\n" + (tmp_path / "client.pem").read_bytes())
    assert len(certificate.ends(str(both))) == 2


def test_a_file_that_is_no_certificate_is_refused_with_a_reason(tmp_path):
    """Whatever is cut off or altered: an error of one kind, never another exception."""
    make_certificates(tmp_path)

    der = ssl.PEM_cert_to_DER_cert((tmp_path / "server.pem").read_text())
    for size in range(150):
        with pytest.raises((ValueError, IndexError)):
            certificate.end_of(der[:size])
    (tmp_path / "no.pem").write_text("no certificate")
    with pytest.raises(ValueError, match="found no certificate, expected PEM"):
        certificate.ends(str(tmp_path / "no.pem"))


def test_files_are_used_only_as_a_pair(tmp_path):
    """A key of another certificate is a fault; a change of any file changes the stamp."""
    make_certificates(tmp_path)
    files = {name: str(tmp_path / file) for name, file in (("ca_file", "ca.pem"), ("cert_file", "client.pem"))}
    broker = replace(CONFIG.broker, **files, key_file=str(tmp_path / "client.key"))
    assert certificate.fault(broker) == ""
    assert "key_file" in certificate.fault(replace(broker, key_file=str(tmp_path / "other.key")))
    assert "No such file" in certificate.fault(replace(broker, ca_file=str(tmp_path / "gone")))
    before = certificate.stamp(broker)
    (tmp_path / "client.key").write_text("half")
    assert certificate.stamp(broker) != before
    assert certificate.fault(broker) != ""
