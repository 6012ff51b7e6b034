"""The product's processes in a simulation, and the simulated machines under them."""

import asyncio
import errno
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random

import pytest

from whenabouts_cloud.durable import sync
from whenabouts_edge.clock.pace import PacedClock
from whenabouts_protocol import Ack, encode_ack
from whenabouts_sim.chaos.disturbances import Disturbances
from whenabouts_sim.chaos.machine.clock import BEGIN_NS, VirtualTime, taken_over
from whenabouts_sim.chaos.machine.disk import Disks
from whenabouts_sim.chaos.machine.loop import VirtualLoop
from whenabouts_sim.chaos.machine.process import Machine, Process, current
from whenabouts_sim.chaos.machine.running import Killed, running
from whenabouts_sim.chaos.network.broker_model import Broker, Message
from whenabouts_sim.chaos.network.gateway_client import GatewayClient
from whenabouts_sim.chaos.network.ingest_source import IngestSource
from whenabouts_sim.chaos.parts.gateway_part import GatewayPlan
from whenabouts_sim.chaos.parts.ingest_part import Ingest
from whenabouts_sim.chaos.parts.job_part import Job
from whenabouts_sim.chaos.parts.job_rules import PAIRS, rule
from whenabouts_sim.chaos.parts.landing_files import FileId
from whenabouts_sim.chaos.parts.micro_batches import Query
from whenabouts_sim.chaos.parts.part import Part
from whenabouts_sim.chaos.parts.serial_line import SerialLine
from whenabouts_sim.chaos.parts.wrong_clock import ClockPlan, WrongClock
from whenabouts_sim.chaos.schedule.fault import Fault
from whenabouts_sim.readers.rdm6300 import Rdm6300
from whenabouts_sim.world.clocks import EPOCH_US
from whenabouts_sim.world.world import Sighting


@pytest.fixture
def world(tmp_path):
    loop = VirtualLoop(BEGIN_NS)
    disks, clock = Disks(tmp_path), VirtualTime(loop)
    with taken_over(clock, "test"), disks.in_use():
        asyncio.set_event_loop(loop)
        yield loop, disks, clock
        loop.end_tasks()
        asyncio.set_event_loop(None)
        loop.close()


def machine(world, name="machine") -> Machine:
    loop, disks, _ = world
    return Machine(name, disks.add(name), loop.now_ns)


def passing(world, seconds: float) -> None:
    world[0].run_until_complete(asyncio.sleep(seconds))


def test_a_killed_process_takes_no_further_step_and_its_finally_has_no_effect(world):
    seen = []
    process = Process("one", machine(world), world[0])

    async def work() -> None:
        path = process.machine.disk.root / "file"
        try:
            seen.append(current() is process)
            await asyncio.sleep(1)
            seen.append("went on")
        finally:
            path.write_text("left")

    process.start(work)
    passing(world, 0.5)
    process.kill()
    passing(world, 2)
    assert seen == [True]
    with pytest.raises(Killed):
        process.context.run((process.machine.disk.root / "file").write_text, "x")
    assert list(process.machine.disk.root.iterdir()) == []
    assert running() is None


def test_what_a_process_begins_while_it_is_killed_is_not_done(world):
    """The exception of the kill goes through its code, which wakes others of its tasks."""
    process, seen = Process("one", machine(world), world[0]), []
    process.writes_left = 0
    woken = asyncio.Event()

    async def other() -> None:
        await woken.wait()
        seen.append("went on")

    async def work() -> None:
        try:
            (process.machine.disk.root / "a").mkdir()
        finally:
            woken.set()

    process.start(other)
    process.start(work)
    passing(world, 0.1)
    assert (process.alive, woken.is_set(), seen) == (False, True, [])


def test_a_process_is_killed_before_the_write_that_was_drawn(world):
    process = Process("one", machine(world), world[0])
    process.writes_left = 1

    async def work() -> None:
        for name in ("a", "b", "c"):
            (process.machine.disk.root / name).mkdir()

    process.start(work)
    passing(world, 0.1)
    assert not process.alive
    assert [one.name for one in process.machine.disk.root.iterdir()] == ["a"]


def test_a_process_is_killed_before_the_sync_of_a_folder_that_was_drawn(world):
    """Syncs of files are not counted, and what it has done before is there."""
    process = Process("one", machine(world), world[0])
    process.syncs_left = 1
    folder, done = process.machine.disk.root, []

    async def work() -> None:
        for name in ("a", "b", "c"):
            (folder / name).write_bytes(b"x")
            sync(folder / name)
            sync(folder)
            done.append(name)

    process.start(work)
    passing(world, 0.1)
    assert (process.alive, done) == (False, ["a"])
    assert sorted(one.name for one in folder.iterdir()) == ["a", "b"]


def test_a_wrong_clock_never_lies_about_its_bound(world):
    plan = ClockPlan(50, ((0, 1 << 60, 20_000),), ((0, -900), (3_000_000, 1000)), ((1_000_000, 2_000_000, 80_000),))
    clock = PacedClock(source := WrongClock(plan, world[2], EPOCH_US, EPOCH_US), source.pace)
    process = Process("one", machine(world), world[0])
    for _ in range(40):
        passing(world, 0.13)
        sample = process.context.run(clock.sample)
        host_us = process.context.run(lambda: clock.host_us(time.monotonic_ns()))
        stamp = sample.to_utc(host_us, host_us)
        assert stamp.t_min <= world[2].true_us <= stamp.t_max
    assert "20 ms from 0 s" in plan.text()


def test_a_line_gives_the_bytes_of_a_reader_when_they_have_come(world):
    reader = Rdm6300("dock", 1)
    reader.power_on(world[2].true_us)
    reader.load([Sighting(EPOCH_US + 200_000, "dock", 0, "0A0000002B")], world[2].true_us)
    line = SerialLine(reader, world[2], world[0])
    line.open()
    world[0].run_until_complete(line.wait(0.1))
    assert line.read(1) == b""
    world[0].run_until_complete(line.wait(5.0))
    assert 200_000 < world[2].true_us - EPOCH_US < 400_000
    assert line.in_waiting == len(line.read(100)) == 14


def test_a_gateway_hears_its_acknowledgement_unless_it_was_killed(world):
    broker, heard = Broker(world[0], Random(1)), []
    process = Process("one", machine(world), world[0])
    client = GatewayClient(broker, process, 5, "hall/gw")
    client.on_connect = client.on_subscribe = client.on_publish = lambda *_: None
    client.on_message = lambda _client, _userdata, message: heard.append(message.payload)
    client.connect("host", 1, 30)
    client.subscribe([("wa/2/hall/gw/ack", 1)])
    passing(world, 1)
    source = IngestSource(broker, Process("ingest", machine(world, "cloud"), world[0]), "ingest")
    source.connect()
    passing(world, 1)
    from whenabouts_cloud.ingest.receiving.reception import Confirmed

    payload = encode_ack(Ack("hall", "gw", {7: 1}))
    source.confirm(Confirmed([], [("wa/2/hall/gw/ack", payload)]))
    client.publish("wa/2/hall/gw/obs", b"reading", 1)
    passing(world, 1)
    assert heard == [payload]
    assert [message[1] for message in source.take(0).messages] == [b"reading"]
    process.kill()
    broker.published(broker.sessions["ingest"].connection, Message("wa/2/hall/gw/ack", b"late", 1, False), 0)
    passing(world, 3)
    assert heard == [payload]
    assert "hall/gw" not in broker.sessions


def test_an_ingest_holds_its_landing_alone_and_its_successor_goes_on(world):
    told: list[str] = []
    cloud, broker = machine(world, "cloud"), Broker(world[0], Random(1))
    one, two = (
        Ingest(name, cloud.disk.root / "landing", cloud, world[0], broker, told.append) for name in ("one", "two")
    )
    one.start()
    passing(world, 1)
    two.start()
    passing(world, 1)
    assert len(told) == 1
    assert "another ingest writes here" in told[0]
    one.end()
    one.process.bury()
    two.start()
    passing(world, 1)
    assert two.process.alive
    assert len(told) == 1


def test_a_job_over_a_landing_without_files_waits(world):
    told: list[str] = []
    cloud, jobs = machine(world, "cloud"), machine(world, "jobs")
    ingest = Ingest("ingest", cloud.disk.root / "landing", cloud, world[0], Broker(world[0], Random(1)), told.append)
    ingest.start()
    passing(world, 1)
    (ingest.folder / "hour=2026-01-01T00").mkdir()
    job = Job([rule(PAIRS, 1000, 80, 1000)], ingest.folder, jobs, world[0], 0.5, 1, told.append)
    job.start()
    passing(world, 2)
    assert told == []
    assert not job.has_read(FileId(0, 1))
    assert (job.out / PAIRS / "_job.json").exists()


def test_a_query_begins_behind_its_last_commit(tmp_path: Path):
    query = Query(None, lambda *_: iter(())).option("checkpointLocation", str(tmp_path)).start()
    assert query.end == {}
    for name, text in (("offsets/0", 'v1\n{}\n{".": {"number": 4}}'), ("commits/0", "v1\n{}")):
        (tmp_path / name).write_text(text)
    assert query.start().end == {".": {"number": 4}}


def test_the_configuration_of_a_gateway_is_one_that_the_agent_takes():
    from whenabouts_edge.config.load import parse

    plan = GatewayPlan("hall", "gw-1", (("dock", "dock/tags"),), ClockPlan())
    assert parse(plan.configuration(Path("/state"))).readers[0].stream == "dock/tags"


def test_an_agent_runs_on_this_machine_unless_it_is_given_another():
    from whenabouts_edge.agent.machine import THIS_MACHINE
    from whenabouts_edge.readers.thread import ReaderThread
    from whenabouts_edge.store.waiting import this_run

    assert THIS_MACHINE.reader is ReaderThread
    assert THIS_MACHINE.run() == this_run()


class Writer(Part):
    """Writes for ever, or ends with the error that it is given."""

    error: Exception | None = None

    async def _serve(self, process: Process) -> None:
        while True:
            if self.error is not None:
                raise self.error
            (self.machine.disk.root / f"{time.monotonic_ns()}").mkdir()
            await asyncio.sleep(0.1)

    def _stop(self) -> None:
        self.end()


def test_a_part_that_ends_with_an_error_is_told_unless_its_disk_is_full(world):
    told: list[str] = []
    part = Writer("writer", machine(world), world[0], told.append)
    full = OSError(errno.ENOSPC, "no space")
    for is_full, error in ((False, OSError("a")), (True, full), (True, OSError("b")), (True, ValueError("c"))):
        part.machine.disk.full, part.error = is_full, error
        part.start()
        passing(world, 1)
        assert not part.process.alive
    assert told == ["writer ended: OSError('a')", "writer ended: OSError('b')", "writer ended: ValueError('c')"]


def test_a_power_cut_takes_what_was_not_synced_and_the_part_starts_again(world):
    loop = world[0]
    noted: list[str] = []
    part = Writer("writer", machine(world), loop, noted.append)
    begin_ns = loop.now_ns

    def at(at_us, happens):
        loop.call_later(max(0, at_us - (loop.now_ns - begin_ns) // 1000) / 1e6, happens)

    disturbances = Disturbances(
        {"writer": part}, Broker(loop, Random(1)), loop, Random(1), noted.append, at, lambda _: True
    )
    part.start()
    passing(world, 0.55)
    first = part.process
    disturbances.begin(Fault("power_cut_at_write", 550_000, 300_000, "writer", 2))
    passing(world, 0.35)  # three writes later
    assert not first.alive
    assert part.machine.runs == 1
    left = len(list(part.machine.disk.root.iterdir()))
    assert left < 8
    passing(world, 1)
    assert part.process is not first
    assert part.process.alive
    assert len(list(part.machine.disk.root.iterdir())) > left
    assert noted == ["power cut at write of writer before write 3 for 0.300 s", "the power of machine is cut"]


def test_a_part_waits_for_the_power_of_its_machine(world):
    part = Writer("writer", machine(world), world[0], lambda _: None)
    part.machine.off = True
    part.start()
    assert part.process is None


def test_what_a_slow_disk_is_given_is_done_late_and_in_order(world):
    loop, _, _ = world
    process = Process("one", Machine("slow", world[1].add("slow"), loop.now_ns, usual_disk_s=2.0), loop)
    executor, done = object.__new__(ThreadPoolExecutor), []

    async def work() -> None:
        await asyncio.gather(*(loop.run_in_executor(executor, done.append, n) for n in range(5)))

    process.start(work)
    passing(world, 1e-3)
    assert done != [0, 1, 2, 3, 4]
    passing(world, 10)
    assert done == [0, 1, 2, 3, 4]


def test_a_process_whose_threads_are_slow_wakes_late_and_others_do_not(world):
    loop, _, _ = world
    process = Process("one", Machine("slow", world[1].add("slow"), loop.now_ns, usual_threads_s=2.0), loop)
    woken = []

    async def sleep(name: str) -> None:
        for _ in range(5):
            await asyncio.sleep(1)
        woken.append((name, loop.time()))

    process.start(lambda: sleep("slow"))
    loop.run_until_complete(sleep("world"))
    passing(world, 10)
    assert [name for name, _ in woken] == ["world", "slow"]


def test_what_comes_behind_a_question_of_a_slow_thread_is_not_in_its_answer(world):
    """Its clock stands where it asked until it reads."""
    reader = Rdm6300("dock", 1)
    reader.power_on(world[2].true_us)
    sightings = (Sighting(EPOCH_US + at_us, "dock", at_us, "0A0000002B") for at_us in (100_000, 400_000))
    reader.load(sightings, world[2].true_us)
    line = SerialLine(reader, world[2], world[0])
    line.open()
    passing(world, 0.2 + 1e-6 * (1 - world[2].true_us % 2))
    asked_ns = world[2].now_ns
    line.look()
    passing(world, 1)
    world[2].behind_ns = asked_ns - 100_000_000
    assert len(line.read(1)) == 1
    assert world[2].behind_ns == asked_ns
    assert line.in_waiting == 13
    assert len(line.read(100)) == 13
    assert world[2].behind_ns is None
    assert line.in_waiting == 14


def test_a_read_returns_what_the_system_saw_before_the_thread_went_on(world):
    reader = Rdm6300("dock", 1)
    reader.power_on(world[2].true_us)
    reader.load([Sighting(EPOCH_US + 200_000, "dock", 0, "0A0000002B")], world[2].true_us)
    line = SerialLine(reader, world[2], world[0])
    line.open()
    line.look()
    passing(world, 1)
    assert line.read(1) == b""
    assert len(line.read(100)) == 14
