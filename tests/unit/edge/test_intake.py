"""The intake: group commits, gap readings for what a full spool refused, and readers that wait for room."""

import asyncio
import threading
from collections.abc import Sequence

from support.edge.pending import pending
from whenabouts_edge.readers.thread import MAX_WAITING
from whenabouts_edge.store.gaps import Gap
from whenabouts_edge.store.intake import CALM_S, MAX_BATCH, RETRY_S, Intake
from whenabouts_edge.store.spool import SpoolFull
from whenabouts_protocol import Reading, encode_batch
from whenabouts_protocol.reading import MAX_VALUE_BYTES
from whenabouts_sim.chaos.machine.loop import VirtualLoop


class Store:
    """In place of the spool's thread: keeps readings, refuses while full; `changed` is set after every attempt."""

    def __init__(self) -> None:
        self.batches: list[list[Reading]] = []
        self.full = False
        self.attempts = 0
        self.changed = asyncio.Event()
        self.held: asyncio.Event | None = None
        self.kept: list[Gap] = []

    async def keep(self, gaps) -> None:
        self.kept = list(gaps)

    async def append(self, readings, gaps) -> None:
        if self.held is not None:
            await self.held.wait()
        self.attempts += 1
        self.changed.set()
        if self.full:
            raise SpoolFull("spool test: found it full")
        count = sum(map(len, self.batches))
        batch = [one.numbered(1, count + i) for i, one in enumerate([*gaps, *readings])]
        encode_batch(batch)
        self.batches.append(batch)

    @property
    def readings(self) -> list[Reading]:
        return [r for batch in self.batches for r in batch]

    async def attempt(self, number: int) -> None:
        """Until so many attempts were made."""
        while self.attempts < number:
            self.changed.clear()
            await asyncio.wait_for(self.changed.wait(), 5)


def run(scenario, commit_ms: int = 20, before: Sequence[Gap] = (), loop_factory=VirtualLoop) -> None:
    """A scenario with an intake that runs, cancelled at its end; periods pass at once unless threads take part."""

    async def main() -> None:
        store = Store()
        intake = Intake(store.append, lambda: None, commit_ms, store.keep, before)
        job = asyncio.create_task(intake.run())
        try:
            await asyncio.wait_for(scenario(intake, store), 200)
            assert not job.done()
        finally:
            job.cancel()

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(main())


def offer(intake: Intake, keys: list[str], stream: str = "dock/tags", t_us: int = 0) -> None:
    intake.reserve(len(keys))
    intake.accept([pending(key, t_us + i, stream=stream) for i, key in enumerate(keys)])


async def settled(intake: Intake, store: Store) -> None:
    while intake.settled < intake.accepted:
        await asyncio.sleep(0.001)


def test_what_gathers_within_the_period_is_one_commit():
    """Ten deliveries at once make one message, in order."""

    async def scenario(intake, store):
        for n in range(10):
            offer(intake, [f"k{n}"])
        await store.attempt(1)
        assert [r.key for r in store.batches[0]] == [f"k{n}" for n in range(10)]
        offer(intake, ["later"])
        await settled(intake, store)
        assert len(store.batches) == 2
        assert intake.settled == intake.accepted == 11

    run(scenario)


def test_full_batch_does_not_wait_for_the_period():
    """With a period of ten seconds a hundred readings are committed at once; the rest waits for it."""

    async def scenario(intake, store):
        offer(intake, ["first"])
        await asyncio.sleep(0.01)
        for n in range(MAX_BATCH + 49):
            offer(intake, [f"k{n}"])
        await store.attempt(1)
        assert asyncio.get_running_loop().time() < 0.1
        await asyncio.sleep(9.9)
        assert [len(b) for b in store.batches] == [MAX_BATCH]
        await asyncio.sleep(0.2)
        assert [len(b) for b in store.batches] == [MAX_BATCH, 50]

    run(scenario, commit_ms=10_000)


def test_refused_readings_become_one_gap_a_stream_as_soon_as_there_is_room():
    """Two streams are refused for a while: the gaps count them and cover their stamps, before the next readings.

    spool    ok   | full ............ | ok
    dock     a     b c         d         e
    gate             x                   y
    """

    async def scenario(intake, store):
        offer(intake, ["a"], t_us=1000)
        await settled(intake, store)
        store.full = True
        offer(intake, ["b", "c"], t_us=2000)
        offer(intake, ["x"], "gate/badges", t_us=2500)
        await settled(intake, store)
        assert intake.gap_open
        offer(intake, ["d"], t_us=3000)
        await settled(intake, store)
        assert intake.refused == 4
        store.full = False
        offer(intake, ["e"], t_us=4000)
        offer(intake, ["y"], "gate/badges", t_us=4500)
        await settled(intake, store)
        assert not intake.gap_open
        assert [r.key for r in store.readings if r.kind == "tag"] == ["a", "e", "y"]
        gaps = {r.stream: r for r in store.readings if r.kind == "gap"}
        assert (gaps["dock/tags"].value, gaps["dock/tags"].t_min, gaps["dock/tags"].t_max) == (3, 2000, 3010)
        assert (gaps["gate/badges"].value, gaps["gate/badges"].t_min, gaps["gate/badges"].t_max) == (1, 2500, 2510)
        assert [r.kind for r in store.batches[1]] == ["gap", "gap", "tag", "tag"]
        assert [r.seq for r in store.readings] == list(range(len(store.readings)))
        assert intake.settled == intake.accepted == 7

    run(scenario)


def test_gap_is_reported_even_if_nothing_more_is_read():
    """After a refusal and silence the gap is tried again by itself until there is room."""

    async def scenario(intake, store):
        store.full = True
        offer(intake, ["lost"])
        await store.attempt(4)
        assert intake.gap_open
        assert not store.batches
        store.full = False
        await store.attempt(store.attempts + 1)
        await asyncio.sleep(0)
        assert [(r.kind, r.value) for r in store.readings] == [("gap", 1)]
        assert not intake.gap_open
        assert intake.refused == 1

    run(scenario)


def test_reader_waits_while_the_disk_is_slow_and_goes_on_when_it_writes():
    """The thread that would exceed MAX_WAITING is held until a commit returned."""

    async def scenario(intake, store):
        store.held = asyncio.Event()
        offer(intake, ["k"] * MAX_WAITING)
        begun, through = threading.Event(), threading.Event()
        written_before: list[int] = []

        def reader() -> None:
            begun.set()
            intake.reserve(3)
            written_before.append(len(store.readings))
            through.set()

        threading.Thread(target=reader, daemon=True).start()
        await asyncio.to_thread(begun.wait)
        store.held.set()
        assert await asyncio.to_thread(through.wait, 5)
        assert written_before[0] >= 3
        await settled(intake, store)
        assert len(store.readings) == MAX_WAITING
        assert intake.settled == intake.accepted == MAX_WAITING

    run(scenario, loop_factory=None)


def test_many_readers_that_want_more_room_than_there_is_all_get_through():
    """Eight threads that want 400 each of 2000 places never hold each other up with a part of it."""

    async def scenario(intake, store):
        loop = asyncio.get_running_loop()

        def reader(number: int) -> None:
            for _ in range(4):
                intake.reserve(400)
                loop.call_soon_threadsafe(intake.accept, [pending(f"r{number}")] * 400)

        await asyncio.gather(*(asyncio.to_thread(reader, n) for n in range(8)))
        await settled(intake, store)
        assert len(store.readings) == 8 * 4 * 400
        assert max(map(len, store.batches)) <= MAX_BATCH

    run(scenario, loop_factory=None)


def test_readings_that_are_too_long_for_one_message_become_several():
    """Ninety readings of 4 kB, which are beyond the limit of a message, are stored in order in two."""

    async def scenario(intake, store):
        keys = [f"k{n}" for n in range(90)]
        intake.reserve(len(keys))
        intake.accept([pending(key, size=MAX_VALUE_BYTES) for key in keys])
        await settled(intake, store)
        assert [r.key for r in store.readings] == keys
        assert [len(batch) for batch in store.batches] == [45, 45]
        assert intake.settled == len(keys)

    run(scenario)


def test_what_was_refused_is_written_down_with_each_refusal():
    """The count on the disk is never behind the one in memory."""

    async def scenario(intake, store):
        store.full = True
        for n in range(1, 4):
            offer(intake, ["lost"], t_us=n)
            await settled(intake, store)
            assert [(gap.stream, gap.count, gap.t_min, gap.t_max) for gap in store.kept] == [
                ("dock/tags", n, 1, n + 10)
            ]

    run(scenario)


def test_a_gap_of_a_reader_that_is_refused_keeps_its_number():
    """Seven tags that the reader's thread left out, and one reading."""

    async def scenario(intake, store):
        store.full = True
        gap = pending(None, 5, stream="dock/tags")
        gap.kind, gap.value, gap.unit = "gap", 7, "{readings}"
        intake.reserve(1)
        intake.accept([gap])
        offer(intake, ["lost"], t_us=1)
        await settled(intake, store)
        assert [(one.count, one.t_min, one.t_max) for one in store.kept] == [(8, 1, 15)]

    run(scenario)


def test_refusing_is_logged_once_and_its_end_with_the_count(caplog):
    """A spool near its limit takes a reading, refuses the next, and so on: that is one spell, until it has been calm."""

    async def scenario(intake, store):
        for spell in range(2):
            for n in range(10):
                store.full = n % 2 == 0
                offer(intake, [f"k{n}"])
                await settled(intake, store)
            assert [r.levelname for r in caplog.records] == ["ERROR", "WARNING"] * spell + ["ERROR"]
            intake.offer([pending("derived", 0)] * (MAX_WAITING + 1))
            await asyncio.sleep(CALM_S - 1)
            assert len(caplog.records) == 2 * spell + 1
            await asyncio.sleep(1 + 2 * RETRY_S)
            assert len(caplog.records) == 2 * spell + 2
        said = caplog.records
        assert (said[0].event, said[0].getMessage()) == (
            "spool.refuses", "spool test: found it full; refuses new readings until there is room",
        )  # fmt: skip
        assert [(one.event, one.fields) for one in (said[1], said[3])] == [("spool.stores", {"refused": 6})] * 2
        assert intake.refused == 12

    run(scenario, commit_ms=1)


def test_what_an_earlier_agent_refused_is_reported_at_once():
    """Even if nothing is read; its clock is empty."""
    before = [Gap("bench", "gw", "dock/tags", 7, 10, 20, "bounded")]

    async def reported(intake, store):
        await store.attempt(1)
        assert [(r.kind, r.value, r.t_min, r.t_max, r.vclock) for r in store.readings] == [("gap", 7, 10, 20, ())]

    run(reported, before=before)


def test_what_is_refused_while_a_gap_is_being_stored_is_reported_after_it():
    """Derived readings find no room while the disk is slow: counted, though a gap reading is under way."""
    before = [Gap("bench", "gw", "dock/tags", 7, 10, 20, "bounded")]

    async def scenario(intake, store):
        store.held = asyncio.Event()
        intake.reserve(MAX_WAITING)  # readers hold all the room
        await asyncio.sleep(0.01)
        intake.offer([pending("derived", 30)])
        assert intake.gap_open
        store.held.set()
        await store.attempt(2)
        await asyncio.sleep(0)
        assert [(r.kind, r.value) for r in store.readings] == [("gap", 7), ("gap", 1)]
        assert not intake.gap_open

    run(scenario, before=before)
