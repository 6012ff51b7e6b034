"""The ingest's MQTT session (`whenabouts_cloud.ingest.receiving.reception`) against a broker played byte by byte."""

import socket
import threading

from whenabouts_cloud.broker.connection import Credentials
from whenabouts_cloud.ingest.receiving.buffered_client import BufferedClient
from whenabouts_cloud.ingest.receiving.reception import Confirmed, Reception

WAIT_S = 30.0
CONNECT, SUBSCRIBE = 0x10, 0x82
CONNACK, PUBACK = b"\x20\x03\x00\x00\x00", b"\x40\x02\x00\x07"
MESSAGE = b"\x32\x0a\x00\x03s/g\x00\x07\x00hi"  # number 7


def packet(stream):
    """The next packet, of at most 127 bytes behind its head."""
    head = stream.read(2)
    return head + stream.read(head[1])


def test_what_became_durable_while_the_connection_is_made_again_is_acknowledged_when_it_comes_again(monkeypatch):
    """
    connection 1    message 7 comes, and the connection is lost
    between         7 is durable: an acknowledgement now would go out before CONNECT
    connection 2    CONNECT, SUBSCRIBE; 7 comes again and is acknowledged
    """
    dial, dials = BufferedClient._create_socket, []

    def dial_slowly(client):
        dials.append(client)
        if len(dials) == 2:
            confirming = threading.Thread(target=reception.confirm, args=(Confirmed([first.messages[0][2]]),))
            confirming.start()
            confirming.join(WAIT_S)
        return dial(client)

    monkeypatch.setattr(BufferedClient, "_create_socket", dial_slowly)
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(WAIT_S)
        reception = Reception("127.0.0.1", server.getsockname()[1], "id", Credentials(), ["s"])
        connecting = threading.Thread(target=reception.connect)
        connecting.start()
        connection, _ = server.accept()
        with connection:
            connection.sendall(CONNACK)
            connecting.join(WAIT_S)
            connection.sendall(MESSAGE)
            first = reception.take(WAIT_S)
        connection, _ = server.accept()
        connection.settimeout(WAIT_S)
        with connection, connection.makefile("rb") as stream:
            assert packet(stream)[0] == CONNECT
            connection.sendall(CONNACK + MESSAGE)
            again = reception.take(WAIT_S)
            reception.confirm(Confirmed([again.messages[0][2]]))
            assert [packet(stream)[0], packet(stream)] == [SUBSCRIBE, PUBACK]
            reception.close()
    assert [one.messages[0][1] for one in (first, again)] == [b"hi", b"hi"]
