"""The receiving process: serves the calls of `receiver.Receiver` until its end of the socket pair is closed."""

import contextlib
import signal
import sys
from multiprocessing.connection import Connection

from whenabouts_cloud.broker.connection import BrokerError
from whenabouts_cloud.ingest.receiving.reception import Reception
from whenabouts_protocol.logs import write_logs

SWITCH_S = 0.0001  # between threads: with Python's 5 ms, each read of the socket waits as long for a busy other thread


def main() -> None:
    """Serve the calls that come over the socket whose number is the argument."""
    for number in (signal.SIGINT, signal.SIGTERM):  # a service manager sends them to all processes of the ingest
        signal.signal(number, signal.SIG_IGN)
    with Connection(int(sys.argv[1])) as pipe, contextlib.suppress(EOFError, OSError):
        _, *settings, log_format = pipe.recv()
        write_logs(log_format)
        sys.setswitchinterval(SWITCH_S)
        reception = Reception(*settings)
        try:
            pipe.send(_connected(reception))
            while True:
                _answer(pipe, reception)
        finally:
            reception.close()


def _connected(reception: Reception) -> tuple[str, str]:
    """Why it failed, and the version of MQTT in use; one of the two is empty."""
    try:
        return "", reception.connect()
    except BrokerError as error:
        return str(error), ""


def _answer(pipe: Connection, reception: Reception) -> None:
    call, argument = pipe.recv()
    if call == "take":
        pipe.send(tuple(reception.take(argument)))
    else:
        reception.confirm(argument)


if __name__ == "__main__":
    main()
