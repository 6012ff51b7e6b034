"""On the board's VM and here: one simulated run of a board's agent by seed, its whole life in simulated time.

A badge reader sends frames in pieces, a time server answers at some time, a broker takes messages, loses connections and
forgets, a cloud confirms what it got, the flash is small, and the board boots in between. Prints what the broker saw, one
line of JSON each: ["obs", [[boot, seq, kind, key, value, t_min, t_max], ...]], ["heartbeat", boot, frontier, [[boot,
first, last], ...], refused], ["status", condition], and at the end ["end", counters].
argv: seeds.
"""

import gc
import json
import struct
import sys

from whenabouts_edge.board import flash_log as flash_log_module
from whenabouts_edge.board import store as store_module
from whenabouts_edge.board.agent import Agent
from whenabouts_edge.board.config import checked
from whenabouts_edge.board.flash_log import FlashLog
from whenabouts_hardware.readers.em4100 import encode
from whenabouts_protocol import Ack, decode_heartbeat, decode_status, encode_ack
from whenabouts_protocol.messages.batch import decode_batch

EPOCH_US = 1_790_000_000_000_000
COOKIE = b"cookie!!"
STEPS = 400
CONFIG = {
    "site": "bench", "gateway": "gw", "broker": {"host": "b"}, "ntp": {"host": "n"}, "heartbeat_ms": 300, "commit_ms": 400,
    "resend_s": 2, "readers": [{"port": 0, "kind": "rdm6300", "stream": "gate/tags"}],
}  # fmt: skip


class Chance:
    """Random numbers that are equal on every machine."""

    def __init__(self, seed):
        self.state = seed * 7919 + 1

    def below(self, limit):
        self.state = (self.state * 1103515245 + 12345) & 0x7FFFFFFF
        return (self.state >> 8) % limit


class Flash:
    def __init__(self):
        self.files = {}

    def read(self, name, offset, size):
        return self.files.get(name, b"")[offset : offset + size]

    def write(self, name, offset, data):
        old = self.files.get(name, b"")
        self.files[name] = old[:offset] + data + (old[offset + len(data) :] if offset else b"")


class Broker:
    """Takes packets off a client, answers, and reports them; confirms the numbers that it got without gaps."""

    def __init__(self, emit):
        self.emit = emit
        self.numbers = {}  # boot -> numbers that came
        self.ids = []  # QoS 1 publications that wait for their answer

    def answer(self, packet):
        kind, at, length, shift = packet[0] >> 4, 1, 0, 0
        while True:
            length |= (packet[at] & 127) << shift
            shift += 7
            at += 1
            if packet[at - 1] < 128:
                break
        body = packet[at : at + length]
        if kind == 1:
            return b"\x20\x02\x00\x00"
        if kind == 8:
            return b"\x90\x03" + body[:2] + b"\x01"
        if kind == 12:
            return b"\xd0\x00"
        if kind == 3:
            return self.published(packet[0], body)
        return b""

    def published(self, first, body):
        size = int.from_bytes(body[:2], "big")
        leaf = str(body[2 : 2 + size], "utf-8").split("/")[-1]
        at = 2 + size + (2 if first & 6 else 0)
        payload = body[at:]
        if leaf == "obs":
            rows = []
            for r in decode_batch(payload):
                rows.append([r.boot, r.seq, r.kind, r.key, r.value, r.t_min, r.t_max])
                self.numbers.setdefault(r.boot, set()).add(r.seq)
            self.emit(["obs", rows])
        elif leaf == "heartbeat":
            heartbeat = decode_heartbeat(payload)
            ranges = [
                [boot, heartbeat.published[boot][0], heartbeat.published[boot][1]]
                for boot in sorted(heartbeat.published)
            ]
            self.emit(["heartbeat", heartbeat.boot, heartbeat.frontier_us, ranges, heartbeat.refused])
        elif leaf == "status":
            self.emit(["status", decode_status(payload).condition])
        return b"\x40\x02" + body[2 + size : at] if first & 6 else b""

    def confirm(self):
        landed = {}
        for boot in sorted(self.numbers):
            n = 0
            while n in self.numbers[boot]:
                n += 1
            if n:
                landed[boot] = n - 1
        topic = b"wa/2/bench/gw/ack"
        body = len(topic).to_bytes(2, "big") + topic + encode_ack(Ack("bench", "gw", landed))
        assert len(body) < 128
        return bytes([0x30, len(body)]) + body


def ntp(us):
    return struct.pack(">II", us // 1_000_000 + 2_208_988_800, (us % 1_000_000 << 32) // 1_000_000)


def time_answer(now):
    utc = EPOCH_US + now - 1000
    return struct.pack(">BBbbII4s", 0x24, 2, 6, -20, 0, 300, b"TEST") + bytes(8) + COOKIE + ntp(utc) + ntp(utc)


def run(seed, emit):
    """One life."""
    flash_log_module.MESSAGE_BYTES_MAX = store_module.MESSAGE_BYTES_MAX = 900
    chance, flash, broker = Chance(seed), Flash(), Broker(emit)
    config = checked(CONFIG)
    now, number, agent, line_up, answers = 1000, 0, None, False, b""
    clock_from = chance.below(6_000_000)
    silent_cloud = chance.below(3) == 0  # until near the end: the flash log becomes full
    pending, last = b"", now
    refused = boots = 0
    for step in range(STEPS):
        ending = step > STEPS - 100
        if agent is None:
            flash_log = FlashLog(flash, 2, 950, seed)
            agent, line_up, answers, pending, last = Agent(config, flash_log, now), False, b"", b"", now
            boots += 1
        now += 1 + chance.below(1_500_000 if ending else 200_000)  # in the end any pause is over
        # The reader: whole frames, in pieces, up to four at once.
        if not ending:
            for _ in range(chance.below(5)):
                pending += encode(1, number)
                number += 1
        cut = len(pending) if chance.below(3) else chance.below(len(pending) + 1)
        if cut:
            agent.took(0, pending[:cut], last, now)
            pending = pending[cut:]
        else:
            agent.silent(0, now)
        last = now
        # The time server.
        if agent.exchange.due(now, COOKIE) and now > clock_from:
            now += chance.below(20_000)
            agent.exchange.heard(time_answer(now), now)
        # The broker.
        if agent.wants_line(now):
            if ending or chance.below(3):
                agent.begin(now)
                line_up, answers = True, b""
            else:
                agent.lost("nobody there", now)
        if line_up and agent.mqtt is not None:
            agent.heard(answers, now)
            answers = b""
            while agent.mqtt is not None and agent.mqtt.to_write():
                packet = agent.mqtt.to_write()
                answers += broker.answer(packet)
                agent.mqtt.wrote(len(packet), now)
            if agent.mqtt.connected and broker.numbers and (ending or (not silent_cloud and chance.below(4) == 0)):
                answers += broker.confirm()
            if not ending and chance.below(40) == 0:
                agent.lost("the line broke", now)
                line_up = False
        agent.step(now)
        if not ending and chance.below(150) == 0:  # the power goes
            refused += agent.store.refused
            agent = None
        if not step % 8 and sys.implementation.name == "micropython":
            gc.collect()
    emit(["end", number, boots, agent.store.refused + refused, agent.store.accepted - agent.store.settled,
    flash_log.readings,
          agent.publisher.resends > 0, agent.acks_refused, agent.problem])  # fmt: skip


if __name__ == "__main__":
    for seed in sys.argv[1:]:
        run(int(seed), lambda row: print(json.dumps(row)))
