"""The environment of a board in a test: a time server with a small error within its claim, badges, its process on the VM."""

import json
import os
import socket
import struct
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path

from support.board.files import board_for
from support.board.micropython import tool
from support.edge.agent import Bench
from support.paths import REPOSITORY
from whenabouts_sim.readers.pty_link import PtyLink
from whenabouts_sim.stack.stack import Part, Stack
from whenabouts_sim.world.clocks import SimClock

BOARD_MAIN = REPOSITORY / "tests" / "support" / "board/main.py"
UNIX_EPOCH_S = 2_208_988_800
WRONG_US = -7000
SAYS_US = 8000


class TimeServer:
    """Answers SNTP from a simulated clock, wrong by WRONG_US, claiming SAYS_US; if `silent`, it does not answer."""

    def __init__(self, clock: SimClock) -> None:
        self._clock, self.silent = clock, False
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self.port = int(self._socket.getsockname()[1])
        self.answered = 0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._stopping = False

    def __enter__(self) -> "TimeServer":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping = True
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as wake:
            wake.sendto(b"", ("127.0.0.1", self.port))
        self._thread.join()
        self._socket.close()

    def _now(self) -> bytes:
        us = self._clock.true_us(time.monotonic_ns()) + WRONG_US
        seconds, part = divmod(us, 1_000_000)
        return struct.pack(">II", seconds + UNIX_EPOCH_S, (part << 32) // 1_000_000)

    def _run(self) -> None:
        while not self._stopping:
            packet, address = self._socket.recvfrom(100)
            if len(packet) != 48 or self.silent:
                continue
            received = self._now()
            head = struct.pack(">BBbbII4s", 0x24, 2, 6, -20, 0, SAYS_US * 65536 // 1_000_000, b"TEST")
            self._socket.sendto(head + bytes(8) + packet[40:48] + received + self._now(), address)
            self.answered += 1


def board_config(stack: Stack, ntp_port: int, readers: list[Mapping[str, object]], **more: object) -> Path:
    """Write the configuration of board `gw` of site `bench` into a file."""
    config = {
        "site": "bench",
        "gateway": "gw",
        "broker": {"host": "127.0.0.1", "port": stack.broker.port, "keepalive_s": 4},
        "ntp": {"host": "127.0.0.1", "port": ntp_port},
        "readers": readers,
        "flash_log": {"folder": str(stack.folder / "flash"), "segments": 3, "segment_bytes": 4096},
        "heartbeat_ms": 200,
        "commit_ms": 100,
        "resend_s": 2,
        **more,
    }
    path = stack.folder / "config" / "board.json"
    path.write_text(json.dumps(config))
    return path


def start_board(stack: Stack, config: Path, where: str, heap: str = "192k") -> Part:
    """The board's agent as a process: on the MicroPython VM, compiled and with a hard heap (`board`), or here (`here`)."""
    end = _end_of(config)
    end.unlink(missing_ok=True)
    if where == "here":
        return stack.start("board", [sys.executable, str(BOARD_MAIN), str(config), str(end)])
    program = board_for(json.loads(config.read_text()), BOARD_MAIN)
    vm = [str(tool("micropython")), "-X", f"heapsize={heap}", str(program / BOARD_MAIN.name), str(config), str(end)]
    return stack.start("board", ["env", f"MICROPYPATH={program}{os.pathsep}.frozen", *vm])


def interrupt_board(config: Path) -> None:
    """End the board with this configuration in order, as Ctrl-C on its console does."""
    _end_of(config).touch()


def _end_of(config: Path) -> Path:
    """The file that interrupts the board when it appears."""
    return config.with_suffix(".end")


def check_landed(bench: Bench, gate: PtyLink) -> None:
    """The readings that the reader reported have landed, each once, and every stamp contains the true time."""
    rows = bench.landed()
    assert len({row.id for row in rows}) == len(rows)
    assert {row.key for row in rows} == {e.key for e in gate.emitted if not e.damaged}
    true_us = {e.key: e.true_us for e in gate.emitted}
    assert [row for row in rows if not row.t_min <= true_us[row.key] <= row.t_max] == []
    assert max(row.t_max - row.t_min for row in rows) < 1_000_000
