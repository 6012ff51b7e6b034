"""The board's own MQTT client against a real broker, here and on the MicroPython VM."""

import socket
import threading
from pathlib import Path

import paho.mqtt.client as mqtt
import pytest
from paho.mqtt.enums import CallbackAPIVersion

from support.board.micropython import run_on_board
from support.board.scripts import as_module
from support.paths import REPOSITORY
from whenabouts_edge.board.machine.net import Tcp
from whenabouts_sim.stack.broker import running_broker

SCRIPT = REPOSITORY / "tests/micropython/board_mqtt.py"
EXPECTED = ["taken 1500 heard 1500 out of order 0 ended None", "idle None", "end closed"]


@pytest.fixture
def broker(tmp_path: Path):
    with running_broker(tmp_path, kind="mosquitto") as made:
        yield made


@pytest.mark.parametrize("where", ["here", "board"])
def test_messages_go_out_and_come_back(broker, where):
    """1500 with packet ids beyond their wrap, sixteen at a time, then silence for twice the keep-alive, then the end."""
    if where == "here":
        assert as_module(SCRIPT).run(broker.port, 1500) == EXPECTED
    else:
        assert run_on_board(SCRIPT, str(broker.port), "1500").splitlines() == EXPECTED


def test_the_will_is_published_when_the_line_is_cut_and_not_after_an_orderly_end(broker):
    """First a client that sends DISCONNECT, then one whose line is cut."""
    here, said, came = as_module(SCRIPT), [], threading.Event()
    seen = mqtt.Client(CallbackAPIVersion.VERSION2)
    ready = threading.Event()
    seen.on_connect = lambda c, *_: c.subscribe("+/will", qos=1)
    seen.on_subscribe = lambda *_: ready.set()
    seen.on_message = lambda _c, _u, m: (said.append((m.topic, m.payload)), came.set())
    seen.connect("127.0.0.1", broker.port)
    seen.loop_start()
    try:
        assert ready.wait(60)
        client, line = here.connect(broker.port, "orderly", 60, ("orderly/will", b"gone"))
        client.disconnect(here.now())
        while client.ended is None:
            here.step(client, line)
        line.close()
        client, line = here.connect(broker.port, "cut", 60, ("cut/will", b"gone"))
        assert client.connected
        line.close()
        assert came.wait(60)
        assert said == [("cut/will", b"gone")]
    finally:
        seen.disconnect()
        seen.loop_stop()


def test_nobody_there_is_an_error_and_not_a_wait():
    """A port that nobody listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(OSError, match="refused"):
        opened(port)


def opened(port):
    """A line that is open."""
    line = Tcp("127.0.0.1", port)
    try:
        while not line.is_open():
            pass
        return line
    except OSError:
        line.close()
        raise
