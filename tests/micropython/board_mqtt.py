"""On the board's VM and here: the MQTT client against a real broker. argv: port, and how many messages to publish.

Publishes that many at QoS 1 to a topic that it has subscribed, packet ids wrapping, and prints the results; then stays
idle beyond the keep-alive, and ends in order.
"""

import sys
import time

from whenabouts_edge.board.machine.net import Tcp
from whenabouts_edge.board.machine.ticks import Ticks
from whenabouts_edge.board.mqtt import Mqtt

LIMIT_US = 60_000_000
_ticks = Ticks(time.ticks_add(0, -1) + 1) if hasattr(time, "ticks_us") else None


def now():
    return _ticks.at(time.ticks_us()) if _ticks else time.monotonic_ns() // 1000


def step(client, line):
    """One look at the line."""
    events = []
    if line.is_open():
        data = client.to_write()
        if data:
            client.wrote(line.write(data), now())
        try:
            data = line.read()
        except OSError:  # a broker may also reset the line that it closes
            data = b""
        if data == b"":
            client.lost("closed")
        elif data:
            events = client.feed(data, now())
    client.advance(now())
    return events


def connect(port, name, keepalive_s, will=None, first_id=1):
    client, line = Mqtt(name, keepalive_s, will, first_id=first_id), Tcp("127.0.0.1", port)
    client.begin(now())
    begin = now()
    while not client.connected and client.ended is None and now() - begin < LIMIT_US:
        step(client, line)
    return client, line


def run(port, count):
    """Results of the exchange, as texts."""
    client, line = connect(port, "board", 2, ("board/will", b"gone"), first_id=65000)
    if client.ended:
        return ["not connected: " + client.ended]
    client.subscribe(["board/echo"], now())
    heard, wrong, taken, sent, subscribed, begin = 0, 0, 0, 0, False, now()
    while (taken < count or heard < count) and client.ended is None and now() - begin < LIMIT_US:
        for event in step(client, line):
            if event[0] == "subscribed":
                subscribed = True
            elif event[0] == "taken":
                taken += 1
            elif event[0] == "message":
                wrong += int(event[2]) != heard
                heard += 1
        while subscribed and client.room and sent < count:
            client.publish("board/echo", b"%d" % sent, now())
            sent += 1
    result = [f"taken {taken} heard {heard} out of order {wrong} ended {client.ended}"]
    begin = now()
    while client.ended is None and now() - begin < 4_000_000:  # twice the keep-alive of 2 s
        step(client, line)
    result.append("idle " + str(client.ended))
    client.disconnect(now())
    begin = now()
    while client.ended is None and now() - begin < LIMIT_US:
        step(client, line)
    result.append("end " + str(client.ended))
    line.close()
    return result


if __name__ == "__main__":
    for text in run(int(sys.argv[1]), int(sys.argv[2])):
        print(text)
