"""Readers that publish their events: real HTTP requests and a real broker, and the true time in every stamp."""

import base64
import socket
import statistics
import threading
import time

import paho.mqtt.client as mqtt
import pytest
import requests
from paho.mqtt.enums import CallbackAPIVersion

from support.edge.llrp import WAIT_S, host_clock
from support.edge.posting import EPC, impinj, now_us, text, zebra
from whenabouts_edge.config.load import parse
from whenabouts_edge.readers.http_listener import CONNECTIONS_MAX, HttpListener
from whenabouts_edge.readers.mqtt_listener import MqttListener
from whenabouts_edge.readers.opening import token
from whenabouts_edge.readers.port import PortError
from whenabouts_edge.readers.thread import Pace, ReaderThread
from whenabouts_sim.stack.broker import free_port, running_broker

LATENCY_US = 1_000_000


class Listening:
    """A reader's thread that listens; its batches."""

    def __init__(self, kind, lines, before=""):
        head = f'site="s"\ngateway="g"\n{before}[[reader]]\nname="door"\nkind="{kind}"\n'
        [reader] = parse(head + lines).readers
        self.batches, self._changed, self.ends_at_reading = [], threading.Condition(), False
        pace = Pace(reopen_us=(50_000, 200_000))
        self.thread = ReaderThread(reader, "s", "g", lambda ns: ns // 1000, host_clock, self._take, pace)

    def _take(self, batch):
        with self._changed:
            self.batches.append(batch)
            if self.ends_at_reading and batch.readings:
                self.thread.stop()
            self._changed.notify_all()

    @property
    def readings(self):
        return [one for batch in list(self.batches) for one in batch.readings]

    def wait(self, what, condition):
        with self._changed:
            assert self._changed.wait_for(condition, WAIT_S), f"{what}: not so; {self.thread.reader_state}"

    def __enter__(self):
        self.thread.start()
        self.wait("listening", lambda: bool(self.batches) and self.thread.reader_state.state == "reading")
        return self

    def __exit__(self, *_):
        self.thread.stop()
        self.thread.join(5)
        assert not self.thread.is_alive()


@pytest.fixture
def url():
    return f"http://127.0.0.1:{free_port()}/dock"


@pytest.mark.parametrize(("kind", "event"), [("impinj", impinj), ("zebra", zebra)])
def test_posted_events_become_readings_with_the_true_time_in_them(url, kind, event):
    """One a request, several as a list, and one after the other without anything between; never by the reader's own time."""
    with Listening(kind, f'listen = "{url}"\n') as listening, requests.Session() as session:
        true_us = {}
        bodies = [text(event(0)), text([event(1), event(2)]), text(event(3)) + text(event(4)), text(event(5)) + b"\n"]
        for n, body in enumerate(bodies):
            true_us[n] = now_us()
            assert session.post(url, data=body, timeout=WAIT_S).status_code == 200
        listening.wait("readings", lambda: len(listening.readings) == 6)
    of = {EPC.format(number): moment for number, moment in enumerate(true_us[n] for n in (0, 1, 1, 2, 2, 3))}
    for one in listening.readings:
        assert one.earliest_us <= of[one.key] <= one.latest_us
        assert one.width_us < LATENCY_US + 1_000_000
        assert one.attrs["antenna"] in (1, 2)
        assert one.attrs["rssi"] in (-53, -52)
    assert {one.stream for one in listening.readings} == {"door/tags"}
    clear_us = 0
    for batch in listening.batches:
        assert all(one.earliest_us >= clear_us - listening.thread.reach_us for one in batch.readings)
        clear_us = max(clear_us, batch.clear_us)


def test_all_requests_that_were_answered_are_delivered_although_the_agent_ends(url):
    """Three that came at once, and the end while the first of them is handed over."""
    request = b"".join(
        b"POST /dock HTTP/1.1\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
        for body in (text(zebra(n)) for n in range(3))
    )
    with Listening("zebra", f'listen = "{url}"\n') as listening:
        listening.ends_at_reading = True
        with socket.create_connection(("127.0.0.1", int(url.split(":")[2].split("/")[0]))) as connected:
            connected.sendall(request)
            listening.thread.join(WAIT_S)
            connected.settimeout(WAIT_S)
            assert connected.recv(10_000).count(b"200 OK") == 3
    assert [one.key for one in listening.readings] == [EPC.format(n) for n in range(3)]


def test_a_request_that_comes_in_pieces_is_bounded_by_its_first_byte(url):
    """
    request   |head ...... 0.4 s ......body|      the clear moment waits at the head
    """
    with Listening("impinj", f'listen = "{url}"\n') as listening:
        host, port = "127.0.0.1", int(url.split(":")[2].split("/")[0])
        body = text(impinj(7))
        with socket.create_connection((host, port)) as connected:
            seen_us = now_us()
            connected.sendall(b"POST /dock HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body))
            time.sleep(0.4)  # the network, not a wait for the agent
            clear_us = listening.batches[-1].clear_us
            connected.sendall(body)
            listening.wait("reading", lambda: bool(listening.readings))
        [one] = listening.readings
        assert clear_us <= seen_us + 50_000
        assert one.earliest_us <= seen_us <= one.latest_us
        assert one.earliest_us >= seen_us - LATENCY_US - 100_000


def test_only_who_knows_the_token_may_post(url, tmp_path):
    """As Bearer, or as the password of Basic, which readers can send."""
    file = tmp_path / "token"
    file.write_text("open sesame\n")
    body = text(zebra(1))
    with Listening("zebra", f'listen = "{url}"\ntoken_file = "{file}"\n') as listening:
        for given in (None, "Bearer wrong", "Bearer", "Basic !!", "Basic " + base64.b64encode(b"u:guess").decode()):
            headers = {} if given is None else {"Authorization": given}
            refused = requests.post(url, data=body, headers=headers, timeout=WAIT_S)
            assert refused.status_code == 401
            assert "sesame" not in refused.text
        assert requests.post(url, body, headers={"Authorization": "Bearer open sesame"}, timeout=WAIT_S).ok
        assert requests.post(url, body, auth=("reader", "open sesame"), timeout=WAIT_S).ok
        listening.wait("both", lambda: len(listening.readings) == 2)
        assert listening.thread.reader_state.status()["left_out"] == 5


def test_what_is_no_event_is_counted_and_costs_no_other(url):
    """No JSON, brackets by the thousand, events without an EPC, other events; the next request is read."""
    bodies = [
        b"hello", b"[" * 100_000, b"\xff\xfe", b"", text(5), text([impinj(1, epcHex="xyz"), impinj(2)]),
        text([impinj(3, epcHex=None), {"eventType": "inventoryStatus", "inventoryStatusEvent": {}}, 7, None]),
        text(impinj(4, epcHex=None, epc=base64.b64encode(bytes(range(12))).decode(), antennaPort="1", peakRssiCdbm=1e300)),
    ]  # fmt: skip
    with Listening("impinj", f'listen = "{url}"\n') as listening:
        for body in bodies:
            assert requests.post(url, body, timeout=WAIT_S).ok
        listening.wait("two", lambda: len(listening.readings) == 2)
        assert requests.post(url, text(impinj(5)), timeout=WAIT_S).ok
        listening.wait("three", lambda: len(listening.readings) == 3)
        counters = listening.thread.reader_state.counters
    assert [one.key for one in listening.readings] == [EPC.format(2), "000102030405060708090A0B", EPC.format(5)]
    assert listening.readings[1].attrs == {"freq_khz": 865700}
    assert counters["bad_content"] == 5  # an empty message is no event and no fault
    assert counters["noise_bytes"] == 0


def test_connections_are_limited_and_the_reader_still_gets_through():
    """More than the limit that send nothing: the one that has been silent longest gives way."""
    with HttpListener("http://127.0.0.1:0/", None) as listener:
        held = []
        for _ in range(2 * CONNECTIONS_MAX):
            held.append(socket.create_connection(listener.address))
            while listener.read() is not None or len(listener._connections) < min(len(held), CONNECTIONS_MAX):
                pass
        body = text(impinj(1))
        with socket.create_connection(listener.address) as reader:
            reader.sendall(b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            while (chunk := listener.read()) is None:
                pass
            assert body in chunk.data
            assert reader.recv(1000).startswith(b"HTTP/1.1 200")
        assert len(listener._connections) <= CONNECTIONS_MAX
        with pytest.raises(PortError, match="expected none"):
            listener.write(b"x")
        for one in held:
            one.close()


def test_an_address_that_cannot_be_used_is_said(url, tmp_path):
    """Taken, or of another machine; a token that is not there."""
    with HttpListener("http://[::1]:0/", None) as listener:
        assert listener.address[0] == "::1"
    with HttpListener(url, None), pytest.raises(PortError, match="cannot listen there"):
        HttpListener(url, None)
    with pytest.raises(PortError, match="cannot listen there"):
        HttpListener("http://192.0.2.1:8080/", None)
    with pytest.raises(PortError, match="cannot read it"):
        token(str(tmp_path / "none"))
    (tmp_path / "empty").write_text("\n")
    with pytest.raises(PortError, match="found no text"):
        token(str(tmp_path / "empty"))


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    with running_broker(tmp_path_factory.mktemp("broker")) as running:
        yield running


def publisher(port):
    """A client as a reader has one."""
    client = mqtt.Client(CallbackAPIVersion.VERSION2)
    client.connect("127.0.0.1", port)
    client.loop_start()
    return client


@pytest.mark.parametrize(("kind", "event"), [("impinj", impinj), ("zebra", zebra)])
def test_published_events_become_readings_with_the_true_time_in_them(broker, kind, event, caplog):
    """A retained message is as old as nobody knows, and left out."""
    client = publisher(broker.port)
    topic = f"readers/{kind}"
    client.publish(topic, text(event(99)), 1, retain=True).wait_for_publish(WAIT_S)
    before = f'[broker]\nhost = "127.0.0.1"\nport = {broker.port}\n'
    with Listening(kind, f'topic = "{topic}"\n', before) as listening:
        true_us = {}
        for number in range(20):
            true_us[EPC.format(number)] = now_us()
            client.publish(topic, text(event(number)), 1).wait_for_publish(WAIT_S)
        client.publish(topic, b"no JSON", 1)
        listening.wait("readings", lambda: len(listening.readings) == 20)
        listening.wait("counted", lambda: listening.thread.reader_state.status()["left_out"] == 1)
    assert "it is retained, of an unknown time" in caplog.text
    client.publish(topic, b"", 1, retain=True).wait_for_publish(WAIT_S)
    client.disconnect()
    client.loop_stop()
    for one in listening.readings:
        assert one.earliest_us <= true_us[one.key] <= one.latest_us
        assert one.width_us < LATENCY_US + 2_000_000


def broker_config(port):
    config = parse(f'site="s"\ngateway="g"\n[broker]\nhost="127.0.0.1"\nport={port}\n[[reader]]\nname="d"\n'
                   'kind="zebra"\ntopic="a"\n')  # fmt: skip
    return config.readers[0].broker


def test_a_published_message_that_comes_in_pieces_is_bounded_by_its_first_byte():
    """
    PUBLISH   |10 bytes ...... 10 quiet polls ......rest|      the clear moment waits at the first byte
    """
    body = b"\0\x01a" + text(zebra(1))
    packet = b"\x30" + bytes([0x80 | len(body) & 0x7F, len(body) >> 7]) + body
    sent_ns, sent, quiet = [], threading.Event(), threading.Event()

    def serve(server):
        connected, _ = server.accept()
        with connected:
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connected.recv(1000)
            connected.sendall(b"\x20\x02\0\0")  # CONNACK
            connected.sendall(b"\x90\x03" + connected.recv(1000)[2:4] + b"\0")  # SUBACK
            connected.sendall(packet[:10])
            sent_ns.append(time.monotonic_ns())
            sent.set()
            quiet.wait(WAIT_S)
            connected.sendall(packet[10:])
            connected.recv(1000)

    with socket.create_server(("127.0.0.1", 0)) as server:
        serving = threading.Thread(target=serve, args=(server,), daemon=True)
        serving.start()
        with MqttListener("a", broker_config(server.getsockname()[1]), "x") as listener:
            assert sent.wait(WAIT_S)
            assert [listener.read() for _ in range(10)] == [None] * 10
            assert listener.empty_ns <= sent_ns[0]
            quiet.set()
            while (chunk := listener.read()) is None:
                assert listener.empty_ns <= sent_ns[0]
            assert chunk.after_ns <= sent_ns[0] <= chunk.before_ns
        serving.join(WAIT_S)


def steady(listener, send):
    """Widths in ns of the messages at 100 a second for two seconds, and how long ago the port was empty at the end."""
    ended = threading.Event()

    def sending():
        for _ in range(200):
            send()
            time.sleep(0.01)  # the pace of a busy portal
        ended.set()

    sender = threading.Thread(target=sending, daemon=True)
    sender.start()
    widths = []
    while len(widths) < 200:
        if (chunk := listener.read()) is not None:
            widths.append(chunk.before_ns - chunk.after_ns)
    age_ns = time.monotonic_ns() - listener.empty_ns
    sender.join(WAIT_S)
    return widths, age_ns


def narrow(widths, age_ns):
    return statistics.median(widths) < 100_000_000 and age_ns < 500_000_000


def test_messages_without_a_pause_are_bounded_as_closely_as_single_ones(broker):
    """One each 10 ms: never a quiet poll of 20 ms; neither stamps nor the clear moment wait for one."""
    client = publisher(broker.port)
    with MqttListener("busy", broker_config(broker.port), "busy") as listener:
        widths, age_ns = steady(listener, lambda: client.publish("busy", text(zebra(1))))
    client.disconnect()
    client.loop_stop()
    assert narrow(widths, age_ns), (widths[::20], age_ns)


def test_connections_without_a_pause_are_bounded_as_closely_as_single_ones():
    """A new connection each 10 ms, as readers make that do not keep one."""
    with HttpListener("http://127.0.0.1:0/", None) as listener:
        request = b"POST / HTTP/1.1\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}"

        def post():
            with socket.create_connection(listener.address) as connected:
                connected.sendall(request)
                connected.recv(1000)

        widths, age_ns = steady(listener, post)
    assert narrow(widths, age_ns), (widths[::20], age_ns)


def test_a_broker_that_is_not_there_is_said_and_tried_again(broker):
    """Nobody listens; a broker that ends."""
    with pytest.raises(PortError, match="no connection to the broker"):
        MqttListener("a", broker_config(free_port()), "x")
