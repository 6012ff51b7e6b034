"""Ingests that take a landing over from each other in an object store, with every request paused, late, or without answer.

Three writers run one request at a time, in an order that is drawn. A writer that is not chosen is paused, before its request
takes effect; a request may arrive after its writer has given it up. Time passes between requests as drawn.
"""

import contextlib
import io
import json
import random
import threading
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.cloud.ingest import NOW_US, reading
from support.search import examples
from whenabouts_cloud.ingest import conditional
from whenabouts_cloud.ingest import lease as lease_module
from whenabouts_cloud.ingest.holding import LandingError
from whenabouts_cloud.ingest.landing_writer import Landing
from whenabouts_cloud.landing.layout import DATA, FRONTIER, HOUR, numbers_of
from whenabouts_cloud.landing.ranges import as_ranges
from whenabouts_cloud.landing.store import Entry, Store

SPEED = 300  # an hour of folders passes in 12 s of leases
LEASE_S = 5.0


class Gone(BaseException):
    """The writer was killed, or the example is over."""


@dataclass
class Step:
    """One request of a writer. how: "done", its answer is "lost", or it arrives "late"."""

    writer: int
    how: str
    passed_s: float


class World:
    """A store in memory with the conditions of an object store, and the clock of all."""

    def __init__(self) -> None:
        self.objects: dict[str, tuple[bytes, int]] = {}
        self.created: list[str] = []  # paths in the order in which they appeared
        self.late: list = []
        self.now_s, self.version = 0.0, 0
        self.turns = [threading.Semaphore(0) for _ in range(3)]
        self.paused = [threading.Semaphore(0) for _ in range(3)]
        self.how, self.over = "done", False
        self.confirmed: set[int] = set()
        self.problems: list[str] = []

    def clock_s(self) -> float:
        """The clock of the writer of this thread; that of the first nearly stands still, as while a machine is frozen."""
        return self.now_s * (0.05 if threading.current_thread().name == "0" else 1.0)

    def turn(self) -> None:
        """Wait until the writer of this thread may make its next request."""
        number = int(threading.current_thread().name)
        self.paused[number].release()
        self.turns[number].acquire()
        if self.over:
            raise Gone

    def put(self, path: str, data: bytes, mode) -> dict:
        known = self.objects.get(path)
        if (mode == "create" and known) or (isinstance(mode, dict) and (not known or mode["e_tag"] != known[1])):
            raise conditional.Conflict(path)
        if not known:
            self.created.append(path)
        self.version += 1
        self.objects[path] = data, self.version
        return {"e_tag": self.version}


class MemoryStore(Store):
    """The part of a store that a landing needs, one turn for each request."""

    def __init__(self, world: World) -> None:
        super().__init__("s3://bucket/landing")
        object.__setattr__(self, "world", world)

    def entries(self, folder=""):
        self.world.turn()
        start = f"{folder}/" if folder else ""
        found = {path.removeprefix(start).split("/")[0] for path in self.world.objects if path.startswith(start)}
        return [Entry(name) for name in found]

    def read(self, path):
        self.world.turn()
        if path not in self.world.objects:
            raise FileNotFoundError(path)
        return self.world.objects[path][0]

    def open(self, path):
        return pa.BufferReader(self.read(path))

    def write(self, path, data):
        self.world.turn()
        self.world.put(path, data, None)

    @contextlib.contextmanager
    def writing(self, path):
        file = io.BytesIO()
        yield file
        self.write(path, file.getvalue())


def put(store, path, data, mode):
    world = store.world
    world.turn()
    if world.how == "late":
        world.late.append(lambda: world.put(path, data, mode))
        raise OSError("no answer")
    done = world.put(path, data, mode)
    if world.how == "lost":
        raise OSError("no answer")
    return done


def read(store, path):
    store.world.turn()
    found = store.world.objects.get(path)
    return None if found is None else (found[0], {"e_tag": found[1]})


def write_for_ever(world: World, number: int) -> None:
    """Start again whenever the landing is lost, or cannot be had."""
    seqs = iter(range(number, 10**9, 3))
    skew_us = (number - 1) * 3_000_000_000
    while True:
        try:
            landing = Landing(MemoryStore(world), LEASE_S)
            known = {seq for _, _, first, last in landing.recover() for seq in range(first, last + 1)}
            for _ in range(6):
                now_us = NOW_US + skew_us + int(world.now_s * SPEED * 1e6)
                seq = next(seqs)
                one = reading("g1", 0, seq)
                with contextlib.suppress(OSError):
                    landing.write([one], as_ranges([("hall/g1", 0, seq)]), now_us)
                    known.add(seq)
                    world.confirmed.add(seq)
                with contextlib.suppress(OSError):
                    landing.write_frontiers([{"landed_us": now_us, "covers": sorted(known)}])
                with contextlib.suppress(OSError):
                    landing.keep()
            with contextlib.suppress(OSError):
                landing.snapshot(as_ranges(("hall/g1", 0, seq) for seq in known))
            if number:
                landing.close()  # the first one never ends in order
        except LandingError as error:
            if "damaged" in str(error) or "another program" in str(error):
                world.problems.append(str(error))


def run(world: World, steps: list[Step]) -> None:
    def live(number):
        try:
            write_for_ever(world, number)
        except Gone:
            pass
        except BaseException as error:
            world.problems.append(repr(error))
            world.paused[number].release()

    threads = [threading.Thread(target=live, args=(number,), name=str(number), daemon=True) for number in range(3)]
    for thread, paused in zip(threads, world.paused, strict=True):
        thread.start()
        paused.acquire()
    for step in steps:
        world.now_s += step.passed_s
        world.how = step.how
        if step.how == "done" and step.passed_s > 2 and world.late:
            with contextlib.suppress(conditional.Conflict):
                world.late.pop(0)()
        world.turns[step.writer].release()
        world.paused[step.writer].acquire()
        if world.problems:
            break
    world.over = True
    for thread, turn in zip(threads, world.turns, strict=True):
        turn.release()
        thread.join()


def check(world: World) -> int:
    """What readers rely on; returns the number of readings."""
    seen: dict[int, str] = {}
    held: dict[int, int] = {}
    last_hour = ""
    for path in (path for path in world.created if HOUR in path):
        *kind, hour, name = path.split("/")
        number, data = numbers_of(name).first, world.objects[path][0]
        says = (
            pq.read_table(pa.BufferReader(data))["seq"].to_pylist() if path.endswith(".parquet") else data.splitlines()
        )
        if number not in seen:
            assert number == len(seen) + 1, f"{path} leaves a gap"
            assert hour >= last_hour, f"{path} goes back"
            seen[number], last_hour = path, hour
        elif "/".join(kind) == DATA:
            assert not says, f"{path} appeared after {seen[number]}: readers may have passed it"
        if "/".join(kind) == FRONTIER:
            for row in says:
                beyond = [seq for seq in json.loads(row)["covers"] if held.get(seq, 10**9) >= number]
                assert not beyond, f"{path} covers {beyond}, which are not before it"
        else:
            held |= {seq: min(number, held.get(seq, number)) for seq in says}
    assert world.confirmed <= set(held), "a confirmed reading is in no file"
    assert not world.problems
    return len(held)


@pytest.fixture(scope="module", autouse=True)
def in_memory():
    """Conditional writes go to the world of the thread's writer, by its clock."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(conditional, "_put", put)
        patch.setattr(conditional, "read", read)
        yield patch


def steps(chance: random.Random) -> list[Step]:
    """Bursts of requests of one writer, while the others are paused."""
    drawn = []
    for _ in range(60):
        writer = chance.randrange(3)
        drawn.append(Step(writer, chance.choice(["done"] * 6 + ["lost", "late"]), chance.choice([0, 0, 0.1, 1, 3, 6])))
        for _ in range(chance.randint(0, 40)):
            how = chance.choice(["done"] * 20 + ["lost", "late"])
            drawn.append(Step(writer, how, chance.choice([0, 0, 0, 0, 0.1, 0.5])))
    return drawn


@settings(max_examples=examples(30), deadline=None)
@given(st.integers(0, 2**32))
def test_readers_see_one_history_whoever_writes_and_whenever_requests_arrive(in_memory, seed):
    """Numbers without a gap, hours that never go back, no file of readings behind a reader's back, true frontiers."""
    world = World()

    def sleep(duration_s):
        until_s = world.now_s + duration_s
        while world.now_s < until_s:
            world.turn()

    in_memory.setattr(lease_module, "now_s", world.clock_s)
    in_memory.setattr(lease_module.acquire, "__defaults__", (LEASE_S, sleep))
    run(world, steps(random.Random(seed)))
    assert check(world) >= len(world.confirmed) > 0
