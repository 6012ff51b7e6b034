"""Bytes that a simulated board receives on its connections: all before the end, and none meant for another."""

import socket
import threading
import time
from contextlib import contextmanager

from support.board.node_board import Console
from whenabouts_sim.boards.node_board import NodeBoard


@contextmanager
def served(serve):
    """The port of a server; `serve` gets each connection, which is closed behind it."""
    listener = socket.create_server(("127.0.0.1", 0))

    def accept():
        while True:
            try:
                line, _ = listener.accept()
            except OSError:  # closed
                return
            with line:
                serve(line)

    threading.Thread(target=accept, daemon=True).start()
    yield listener.getsockname()[1]
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()


def flash_beside(folder, script, monkeypatch):
    """The flash of a board, whose host runs this script first."""
    host, flash = folder / "host.mjs", folder / "flash"
    host.write_text(script)
    flash.mkdir()
    monkeypatch.setenv("NODE_OPTIONS", f"--import {host.as_uri()}")
    return flash


def printed(flash, main, last):
    """Lines that main.py printed on a board, up to this word."""
    (flash / "main.py").write_text(main)
    with NodeBoard(flash) as board:
        console = Console(board)
        text = console.wait(last, lambda text: last in text, 30)
        console.close()
    return text.splitlines()


READ_LATE = """
import socket, time
line = socket.socket()
line.connect(("127.0.0.1", PORT))
time.sleep_ms(800)
count = 0
data = line.recv(SIZE)
while data:
    count += len(data)
    data = line.recv(SIZE)
print("heard", count, "ended")
"""


def test_a_connection_ends_behind_its_last_bytes(tmp_path):
    """
    server   20 000, 20 000, end
    ring     16 383 ...            what does not fit waits outside, and the end behind it
    board                          reads all
    """

    def serve(line):
        line.sendall(bytes(20_000))
        time.sleep(0.3)
        line.sendall(bytes(20_000))

    with served(serve) as port:
        for size in (500, 4000, 16_000):
            main = READ_LATE.replace("PORT", str(port)).replace("SIZE", str(size))
            assert "heard 40000 ended" in printed(tmp_path, main, "ended")


LOOKED_UP = """
import machine, socket, time
if machine.reset_cause() != machine.WDT_RESET:
    machine.WDT(timeout=300)
    socket.getaddrinfo("localhost", 1)
line = socket.socket()
line.connect(("127.0.0.1", PORT))
time.sleep_ms(1500)
print("heard", line.recv(100), line.recv(100), "ended")
"""
SLOW_NAMES = """
import dns from "node:dns";
const lookup = dns.lookup;
dns.lookup = (name, options, callback) => lookup(name, options, (...results) => setTimeout(callback, 1000, ...results));
"""


def test_an_answer_that_comes_late_is_not_for_the_next_user_of_its_channel(tmp_path, monkeypatch):
    """
    first life    asks for a name ... reset by the watchdog
    second life                         connects: the first free channel, into which the answer falls
    """
    flash = flash_beside(tmp_path, SLOW_NAMES, monkeypatch)

    def serve(line):
        time.sleep(1.2)
        line.sendall(b"hello")

    with served(serve) as port:
        assert "heard b'hello' b'' ended" in printed(flash, LOOKED_UP.replace("PORT", str(port)), "ended")


FED_LATE = """
import machine, time
print("life", machine.reset_cause())
if machine.reset_cause() == machine.WDT_RESET:
    time.sleep_ms(1500)
    print("ended")
else:
    dog = machine.WDT(timeout=300)
    while True:
        time.sleep_ms(290)
        dog.feed()
"""
BUSY_HOST = """
import { isMainThread } from "node:worker_threads";
const busy = () => { for (const until = performance.now() + 100; performance.now() < until; ); };
if (isMainThread) setInterval(() => setImmediate(busy), 107);
"""


def test_a_late_feed_does_not_wake_the_watchdog_of_the_next_life(tmp_path, monkeypatch):
    """
    first life    feeds ... and once more while the host, which is slow, finds that it is too late
    second life                          has no watchdog
    """
    flash = flash_beside(tmp_path, BUSY_HOST, monkeypatch)
    lines = printed(flash, FED_LATE, "ended")
    assert [line for line in lines if line.startswith("life")] == ["life 1", "life 3"]
