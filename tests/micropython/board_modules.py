"""On a simulated board, on the MicroPython VM of a PC, and here: the parts of socket, time and os that a board's agent uses.

argv: a port with an echo of TCP and UDP, and one where nobody listens. Prints the results.
"""

import errno
import os
import select
import socket
import sys
import time

LATER = (errno.EAGAIN, errno.EINPROGRESS)


def address(port):
    """An address in the form that the module wants."""
    return socket.getaddrinfo("localhost", port, socket.AF_INET, socket.SOCK_STREAM)[0][-1]


def connected(port):
    """A connection that never waits, or the bits that its poll ended with."""
    line = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    line.setblocking(False)
    try:
        line.connect(address(port))
    except OSError as error:
        if error.errno not in LATER:
            raise
    poll = select.poll()
    poll.register(line, select.POLLOUT)
    events = poll.poll(5000)
    bits = events[0][1] & (select.POLLOUT | select.POLLERR | select.POLLHUP)
    if bits != select.POLLOUT:
        line.close()
        return bits & select.POLLERR
    return line


def received(line, size):
    """So many bytes, or all up to the end."""
    data = b""
    while len(data) < size:
        try:
            more = line.recv(size - len(data))
        except OSError as error:
            if error.errno not in LATER:
                raise
            continue
        if not more:
            break
        data += more
    return data


def echoes(line, text):
    """True if the whole text comes back; piece by piece, as a heap of a board has no room for it twice."""
    sent = back = 0
    while back < len(text):
        try:
            sent += line.send(text[sent : sent + 1000]) if sent < len(text) else 0
        except OSError as error:
            if error.errno not in LATER:
                raise
        if sent > back + 8000 or sent == len(text):
            piece = received(line, min(4000, len(text) - back))
            if not piece or piece != text[back : back + len(piece)]:
                return False
            back += len(piece)
    return True


def main(port, closed):
    line = connected(port)
    print("echo", echoes(line, bytes(range(256)) * 160))
    line.send(b"end")
    print("end", received(line, 4), line.recv(10))
    line.close()
    print("refused", connected(closed) != 0)
    packet = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    packet.setblocking(False)
    try:
        packet.recvfrom(10)
    except OSError as error:
        print("nothing", error.errno in LATER)
    packet.sendto(b"question", address(port))
    for _ in range(5000):
        try:
            answer, _ = packet.recvfrom(100)
            break
        except OSError:
            time.sleep(0.001)
    print("packet", answer)
    packet.close()
    if hasattr(time, "ticks_us"):
        began = time.ticks_us()
        time.sleep_ms(20)
        print("slept", 19000 <= time.ticks_diff(time.ticks_us(), began) < 5000000)
    else:
        print("slept", True)
    print("random", len(os.urandom(9)), os.urandom(9) != os.urandom(9))
    print("epoch", time.gmtime(0)[0], time.time() > 1700000000)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
