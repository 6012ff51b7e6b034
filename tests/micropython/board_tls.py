"""On the board's VM and here: a TLS line to a real broker. argv: host, port, file of certificates, and where
wanted the files of the certificate that is shown and of its key.

Prints "connected" and the answers to one publication, or why there is no connection; and how often the line was polled,
which is more than once, since no call of the line waits.
"""

import sys
import time

from whenabouts_edge.board.machine.ticks import Ticks
from whenabouts_edge.board.machine.tls import Tls
from whenabouts_edge.board.mqtt import Mqtt

LIMIT_US = 20_000_000
PAYLOAD = bytes(range(256)) * 8  # more than one read takes
_ticks = Ticks(time.ticks_add(0, -1) + 1) if hasattr(time, "ticks_us") else None


def now():
    return _ticks.at(time.ticks_us()) if _ticks else time.monotonic_ns() // 1000


def run(host, port, *files):
    """Course of one connection, as texts."""
    client = Mqtt("board", 30)
    try:
        line = Tls(host, port, *files)
    except (OSError, ValueError) as error:
        return ["no line: " + str(error)]
    client.begin(now())
    begin, asked, longest, reported, heard = now(), 0, 0, [], 0
    try:
        while client.ended is None and not heard and now() - begin < LIMIT_US:
            before = now()
            asked += 1
            if line.is_open():
                data = client.to_write()
                if data:
                    client.wrote(line.write(data), now())
                data = line.read()
                if data == b"":
                    client.lost("closed")
                for event in client.feed(data, now()) if data else ():
                    if event[0] == "connected":
                        reported.append("connected")
                        client.subscribe(["board/echo"], now())
                    elif event[0] == "subscribed":
                        client.publish("board/echo", PAYLOAD, now())
                    elif event[0] == "message":
                        heard = len(event[2])
                        reported.append("heard whole" if event[2] == PAYLOAD else "heard something else")
            client.advance(now())
            longest = max(longest, now() - before)
    except OSError as error:
        reported.append("refused: " + str(error))
        return reported
    finally:
        line.close()
    reported.append("asked again and again" if asked > 2 else "waited")
    return reported + ([] if client.ended is None else [client.ended])


if __name__ == "__main__":
    for text in run(sys.argv[1], int(sys.argv[2]), *sys.argv[3:]):
        print(text)
