"""A reader that speaks LLRP, by an emulator that nobody here wrote, and a network in front of it that can fail.

`Portal` runs the emulator in a thread. It gives every sighting an EPC of its own and remembers its true moment, and its
clock can be wrong; the protocol is the emulator's. `Cable` is a TCP proxy that delays, freezes, cuts and injects.
"""

import asyncio
import contextlib
import copy
import socket
import struct
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

from llrpkit.emulator import EmulatedTag, LLRPEmulator
from llrpkit.protocol import messages, params

from whenabouts_edge.clock import ClockSample
from whenabouts_edge.config.load import parse
from whenabouts_edge.readers.host_session import Batch
from whenabouts_edge.readers.thread import Pace, ReaderThread

WAIT_S = 20.0


def now_us() -> int:
    """The host's clock, which stamps count in."""
    return time.monotonic_ns() // 1000


def host_clock() -> ClockSample:
    """UTC is the host's clock."""
    return ClockSample(now_us(), 0, 0, "bounded")


class Portal(LLRPEmulator):
    """The emulator with a truth. seen: true moment and antenna of every sighting, by its EPC. error_us: of its clock."""

    def __init__(self, reads_per_sec: float = 200.0, antennas: int = 2, tags_in_report: int = 1) -> None:
        tags = [
            EmulatedTag(epc=bytes(12), antennas=tuple(range(1, antennas + 1)), rssi_dbm=-50.0 - n) for n in range(3)
        ]
        super().__init__(tags=tags, reads_per_sec=reads_per_sec, antenna_count=antennas)
        self.seen: dict[str, tuple[int, int]] = {}
        self._tags_in_report = tags_in_report
        self.error_us = 0
        self.heard: list[str] = []  # names of the messages of the client
        self.bytes_sent: list[bytes] = []  # of the last reports
        self._true_us = 0

    def _now_us(self) -> int:  # type: ignore[override]
        self._true_us = now_us()
        return max(0, time.time_ns() // 1000 + self.error_us)

    async def _handle_message(self, msg: Any) -> None:
        self.heard.append(type(msg).__name__)
        await super()._handle_message(msg)

    async def _send(self, msg: Any, *, message_id: int = 0) -> None:
        if isinstance(msg, messages.RO_ACCESS_REPORT):
            [one] = msg.tag_report_datas
            msg.tag_report_datas = [self._named(copy.copy(one)) for _ in range(self._tags_in_report)]
            self.bytes_sent = [*self.bytes_sent[-9:], msg.to_bytes(message_id=message_id)]
        await super()._send(msg, message_id=message_id)

    def _named(self, tag: Any) -> Any:
        """The sighting of a tag of its own."""
        epc = (0x30 << 88 | len(self.seen)).to_bytes(12, "big")
        tag.epc_parameter = params.EPC_96(epc=epc)
        [rospec] = [i for i, (_, state) in self._rospecs.items() if state == "Active"] or [0]
        tag.ro_spec_id = params.ROSpecID(ro_spec_id=rospec)  # as asked for; the emulator leaves it out
        self.seen[epc.hex().upper()] = self._true_us, tag.antenna_id.antenna_id
        return tag


class Cable:
    """A TCP proxy. frozen: forwards nothing and ends nothing. delay_s: holds what the reader sends. cut_after: bytes of the
    reader that are still forwarded before the connection breaks. injected: sent to the client behind the greeting."""

    def __init__(self, portal: LLRPEmulator) -> None:
        self._portal = portal
        self.frozen = False
        self.delay_s = 0.0
        self.cut_after: int | None = None
        self.injected = b""
        self.connections = 0
        self._writers: list[tuple[asyncio.StreamWriter, asyncio.StreamWriter]] = []
        self._server: asyncio.Server | None = None
        self.port = 0

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        await self.reset()

    async def reset(self) -> None:
        """Break all connections, with RST to the client."""
        for client, reader in self._writers:
            with contextlib.suppress(OSError):
                raw = client.get_extra_info("socket")
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.transport.abort()
            reader.transport.abort()
        self._writers = []

    async def forget(self) -> None:
        """The reader gives its client up, which hears nothing of it."""
        for _, reader in self._writers:
            reader.transport.abort()

    async def _connected(self, incoming: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        self.connections += 1
        outgoing, reader = await asyncio.open_connection("127.0.0.1", self._portal.port)
        self._writers.append((client, reader))
        with contextlib.suppress(OSError, asyncio.CancelledError):
            await asyncio.gather(self._forward(outgoing, client, True), self._forward(incoming, reader, False))

    async def _forward(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, from_reader: bool) -> None:
        first = from_reader
        while data := await source.read(65536):
            while self.frozen:
                await asyncio.sleep(0.01)
            if from_reader and self.delay_s:
                await asyncio.sleep(self.delay_s)
            if from_reader and self.cut_after is not None:
                data, rest = data[: self.cut_after], data[self.cut_after :]
                self.cut_after -= len(data)
                sink.write(data)
                if rest or not self.cut_after:
                    await sink.drain()
                    self.cut_after = None
                    return await self.reset()
                continue
            sink.write(data + (self.injected if first else b""))
            first = False
            await sink.drain()
        if not self.frozen:
            sink.close()
        return None


class Reading:
    """A reader's thread at a portal: every reading, and the clear moments between them."""

    def __init__(self, port: int, more: str = "", **pace: Any) -> None:
        table = f'site="s"\ngateway="g"\n[[reader]]\nname="portal"\nkind="llrp"\nhost="127.0.0.1"\nport={port}\n{more}'
        self.batches: list[Batch] = []
        self.taking = lambda batch: None  # what taking a batch costs
        self._changed = threading.Condition()
        [reader] = parse(table).readers
        pace = {"reopen_us": (50_000, 200_000), **pace}
        self.thread = ReaderThread(reader, "s", "g", lambda ns: ns // 1000, host_clock, self._take, Pace(**pace))

    def _take(self, batch: Batch) -> None:
        self.taking(batch)
        with self._changed:
            self.batches.append(batch)
            self._changed.notify_all()

    @property
    def readings(self) -> list[Any]:
        return [one for batch in list(self.batches) for one in batch.readings]

    def wait(self, what: str, condition: Callable[[], object]) -> None:
        """Wait until the condition holds after a batch."""
        with self._changed:
            assert self._changed.wait_for(condition, WAIT_S), f"{what}: not so; {self.thread.reader_state}"

    def __enter__(self) -> "Reading":
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.thread.stop()
        self.thread.join(5)
        assert not self.thread.is_alive()


@contextmanager
def running(*parts: Any) -> Iterator[Callable[[Awaitable[Any]], Any]]:
    """The parts, started in one event loop in a thread, in their order; gives a function that runs a coroutine there."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    def do(coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, loop).result(WAIT_S)

    try:
        for part in parts:
            do(part.start())
        yield do
    finally:
        for part in reversed(parts):
            do(part.stop())
        loop.call_soon_threadsafe(loop.stop)
        thread.join(5)
        loop.close()
