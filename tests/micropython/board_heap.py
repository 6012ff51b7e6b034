"""On the board's VM: memory that a board's whole program holds, and a run of it in a hard heap.

argv: `held` or `work`, kind of reader, folder for the flash, and JSON that the configuration is changed by. The program is
`run.opened`; ports, sockets and time are replaced, nothing else. `held` prints bytes as JSON after each stage, then a map of
the heap. `work` prints what was published in a long run through all stages: readings without the time, with a full store,
a broker that comes late, everything taken.

`main` is an iterator: a simulated board collects memory only between its steps.
"""

import gc
import json
import struct
import sys

S = 1_000_000
EPOCH_S = 1_790_000_000
FRAMES = {
    "rdm6300": lambda n: b"\x02" + f"{n:010X}{xor(n):02X}".encode() + b"\x03",
    "line": lambda n: b'{"t": %d.5, "probe": "north", "ok": true}\n' % n,
}


def xor(n):
    value = 0
    while n:
        value, n = value ^ (n & 255), n >> 8
    return value


class Port:
    """A reader's port; `waiting` is what it sends next."""

    waiting = b""

    def read(self):
        data, self.waiting = self.waiting[:256], self.waiting[256:]
        return data

    def write(self, data):
        pass


class Line:
    """A broker that is there once `up`, takes everything, and counts; answers are minimal."""

    up = False
    kinds = {}  # noqa: RUF012  # MicroPython has no typing

    def __init__(self, host, port):
        if not Line.up:
            raise OSError(111)
        self.answers = b""

    def is_open(self):
        return True

    def write(self, packet):
        kind = packet[0] >> 4
        at = 2 if packet[1] < 128 else 3
        if kind == 1:
            self.answers += b"\x20\x02\x00\x00"
        elif kind == 8:
            self.answers += b"\x90\x03" + packet[at : at + 2] + b"\x01"
        elif kind == 12:
            self.answers += b"\xd0\x00"
        elif kind == 3:
            size = int.from_bytes(packet[at : at + 2], "big")
            leaf = bytes(packet[at + 2 : at + 2 + size]).split(b"/")[-1].decode()
            Line.kinds[leaf] = Line.kinds.get(leaf, 0) + 1
            if packet[0] & 6:
                self.answers += b"\x40\x02" + packet[at + 2 + size : at + 4 + size]
        return len(packet)

    def read(self):
        data, self.answers = self.answers, b""
        return data or None

    def close(self):
        pass


class TimeServer:
    """Answers once `up`, at once and right."""

    up = False
    packet = None

    def __init__(self, host, port):
        pass

    def send(self, data):
        self.packet = data

    def read(self):
        if self.packet is None or not TimeServer.up:
            return None
        cookie, self.packet = self.packet[40:48], None
        utc = struct.pack(">II", EPOCH_S + CLOCK[0] // S + 2_208_988_800, 0)
        return struct.pack(">BBbbII4s", 0x24, 2, 6, -20, 0, 300, b"TEST") + bytes(8) + cookie + utc + utc

    def close(self):
        pass


CLOCK = [1000]
PORT = Port()


def made(kind, folder, more):
    """The board, with all that is replaced."""
    from whenabouts_edge.board import run  # here: memory was measured before

    run.Tcp, run.Udp, run._open = Line, TimeServer, lambda port, baud: PORT
    run.now_us_of_ticks = lambda: lambda: CLOCK[0]
    config = {
        "site": "bench", "gateway": "gw", "broker": {"host": "b"}, "ntp": {"host": "n"},
        "readers": [{"port": 0, "kind": kind, "stream": "gate/tags"}],
        "flash_log": {"folder": folder, "segments": 4, "segment_bytes": 8192},
    }  # fmt: skip
    config.update(more)
    return run.opened(config)


def steps(board, count, frame=None):
    """So many steps of 50 ms, with a frame in each; an iterator."""
    for _ in range(count):
        CLOCK[0] += 50_000
        if frame is not None:
            PORT.waiting += frame(CLOCK[0] // 50_000)
        board.step()
        yield


def stages(kind, board):
    """The name of each stage when it is reached, None for a step on the way."""
    frame = FRAMES[kind]
    yield from steps(board, 3)
    yield "started"
    yield from steps(board, 150, frame)
    yield "full, without the time"
    TimeServer.up = True
    yield from steps(board, 300, frame)
    yield "dated, without a broker"
    Line.up = True
    yield from steps(board, 1200, frame)
    yield "connected"


def main(argv):
    """Run the program as the docstring of this file describes."""
    what, kind, folder, more = argv[1:]
    gc.collect()
    yield
    before = gc.mem_alloc()
    board = made(kind, folder, json.loads(more))
    yield
    results = {}
    for stage in stages(kind, board):
        if stage is not None and what == "held":
            gc.collect()
            yield
            results[stage] = gc.mem_alloc() - before
        elif stage is not None:
            results[stage] = board.flash_log.next_seq
        yield
    if what == "held":
        import micropython

        print(json.dumps(results))
        micropython.mem_info(1)
        return
    store = board.agent.store
    results["stored"], results["refused"] = board.agent.readers[0].readings - store.refused, store.refused
    results["faults"], results["published"] = board.faults, Line.kinds
    print(json.dumps(results))


if __name__ == "__main__":
    for _ in main(sys.argv):
        pass
