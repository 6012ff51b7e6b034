"""What an agent finds on its machine: ports with threads that read them, a client of MQTT, the name of this run."""

from collections.abc import Callable
from dataclasses import dataclass

from whenabouts_edge.mqtt_client import MakeClient, made
from whenabouts_edge.readers.thread import ReaderThread
from whenabouts_edge.store.waiting import this_run


@dataclass(frozen=True)
class Machine:
    """A real machine; a simulation hands in its own parts.

    reader: makes the thread of a reader. client: makes the client of one connection. run: names the time since the machine
    was switched on.
    """

    reader: Callable[..., ReaderThread] = ReaderThread
    client: MakeClient = made
    run: Callable[[], str] = this_run


THIS_MACHINE = Machine()
