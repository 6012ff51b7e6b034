"""The modules that simulated boards have in place of those in a board's ROM do what the real ones do."""

import json
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from support.board.micropython import run_on_board
from support.board.node_board import Console, run_on_node
from support.paths import REPOSITORY
from whenabouts_sim.boards.node_board import NodeBoard
from whenabouts_sim.boards.node_vm import node

SCRIPT = Path(__file__).parent / "board_modules.py"
SHIMS = {
    "_start": "firmware_sim/whenabouts_sim/boards/shims/_start.py",
    "machine": "firmware_sim/whenabouts_sim/boards/shims/machine.py",
    "network": "firmware_sim/whenabouts_sim/boards/shims/network.py",
    "os": "firmware_sim/whenabouts_sim/boards/shims/os.py",
    "socket": "firmware_sim/whenabouts_sim/boards/shims/socket.py",
    "time": "firmware_sim/whenabouts_sim/boards/shims/time.py",
}
REPORTED = [
    "echo True", "end b'end' b''", "refused True", "nothing True", "packet b'question'", "slept True",
    "random 9 True", "epoch 1970 True",
]  # fmt: skip


def test_the_modules_are_there_without_a_file(tmp_path):
    """A program imports these modules, and the flash holds no file of them."""
    script = tmp_path / "script.py"
    script.write_text(
        "import os\nfor name in %r:\n    print(__import__(name).__file__)\nprint(os.listdir('/'))\n" % [*SHIMS]
    )
    *files, flash = run_on_node(script, alone=True).splitlines()
    assert files == ["/shims/" + Path(path).name for path in SHIMS.values()]
    assert sorted(path.name for path in (REPOSITORY / SHIMS["os"]).parent.glob("*.py")) == sorted(
        Path(path).name for path in SHIMS.values()
    )
    assert "shims" not in flash


@pytest.fixture
def echo():
    """The port of an echo of TCP, up to the word `end`, and of UDP."""
    listener, packets = socket.create_server(("127.0.0.1", 0)), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    port = listener.getsockname()[1]
    packets.bind(("127.0.0.1", port))

    def serve():
        with listener.accept()[0] as line:
            while data := line.recv(4096):
                line.sendall(data)
                if data.endswith(b"end"):
                    break
        packets.sendto(*packets.recvfrom(100))

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield port
    thread.join(30)
    listener.close()
    packets.close()


@pytest.fixture
def closed():
    """A port where nobody listens, reserved for the test."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


@pytest.mark.parametrize("where", ["here", "unix", "node"])
def test_sockets_and_time_are_the_same(echo, closed, where):
    """A name, an echo larger than any buffer, its end, a refused connection, packets, ticks, random bytes: on all three."""
    if where == "here":
        words = [sys.executable, str(SCRIPT), str(echo), str(closed)]
        output = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True).stdout
    else:
        output = (run_on_node if where == "node" else run_on_board)(SCRIPT, str(echo), str(closed))
    assert output.splitlines() == REPORTED


BETWEEN = """
import { Channels, ENDED, OPEN } from %s;
const channels = new Channels(), target = new Uint8Array(8);
channels.begin(1);
channels.become(1, OPEN);
const available = channels.available;
channels.available = function (channel) {  // what comes right after the ring buffer was checked
  const count = available.call(this, channel);
  channels.available = available;
  channels.put(1, Buffer.from("end"));
  channels.become(1, ENDED);
  return count;
};
console.log(JSON.stringify([1, 2, 3].map(() => channels.takeOrEnd(1, target))));
"""


def test_the_end_of_a_line_is_never_reported_before_its_last_bytes():
    """
    the VM  takes: nothing             takes 3 bytes   the end
    the host             "end", end
    """
    script = BETWEEN % json.dumps((REPOSITORY / "firmware_sim/whenabouts_sim/boards/channels.mjs").as_uri())
    words = [str(node()), "--input-type=module", "--eval", script]
    output = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True).stdout
    assert json.loads(output) == [None, 3, 0]


WATCHED = """
import machine, network, time
wlan = network.WLAN(network.STA_IF)
print("before", wlan.isconnected())
wlan.active(True)
wlan.connect("name", "word")
print("after", wlan.isconnected(), machine.reset_cause())
machine.RTC().datetime((2031, 2, 3, 0, 4, 5, 6, 0))
print("clock", time.gmtime(time.time())[:5])
pin = machine.Pin("LED", machine.Pin.OUT)
pin.on()
print("pin", pin.value())
if machine.reset_cause() == machine.WDT_RESET:
    raise RuntimeError("enough")
dog = machine.WDT(timeout=300)
for _ in range(10):
    time.sleep_ms(100)
    dog.feed()
print("fed")
time.sleep(30)
"""


def test_a_board_that_hangs_is_reset_by_its_watchdog(tmp_path):
    """Fed it does nothing, unfed it resets, and the next life can read the cause; Wi-Fi, pins and the clock obey."""
    (tmp_path / "main.py").write_text(WATCHED)
    with NodeBoard(tmp_path) as board:
        console = Console(board)
        text = console.wait("two lives", lambda text: "enough" in text, 30)
        console.close()
    assert [line for line in text.splitlines() if line[:5] in ("befor", "after", "clock", "pin 1", "fed")] == [
        "before False", "after True 1", "clock (2031, 2, 3, 4, 5)", "pin 1", "fed",
        "before False", "after True 3", "clock (2031, 2, 3, 4, 5)", "pin 1",
    ]  # fmt: skip
