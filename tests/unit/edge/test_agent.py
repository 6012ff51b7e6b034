"""The agent without a broker: what its readers read is in its spool."""

import asyncio
import time
from pathlib import Path

import pytest
import requests

from support.edge.llrp import WAIT_S
from support.edge.posting import text
from whenabouts_edge.agent import agent as module
from whenabouts_edge.agent.agent import Agent
from whenabouts_edge.agent.delivery import Delivery
from whenabouts_edge.clock.pace import PacedClock
from whenabouts_edge.clock.system import FixedClock
from whenabouts_edge.config.load import parse
from whenabouts_edge.readers.thread import MAX_WAITING
from whenabouts_edge.store.spool import Spool
from whenabouts_protocol.messages.batch import decode_batch
from whenabouts_sim.stack.broker import free_port

HEAD = 'site="s"\ngateway="g"\nstate_dir="{}"\n[broker]\nhost="127.0.0.1"\nport=1\n[clock]\nsource="fixed"\nbound_us=1000\n'
READER = '[[reader]]\nname="{0}"\nkind="zebra"\nlisten="{1}"\nstream="{0}"\n'


def run(folder, scenario, *readers: str) -> None:
    """A scenario with an agent that has these readers, asked to end behind it."""

    async def main():
        agent = Agent(parse(HEAD.format(folder) + "".join(readers)), PacedClock(FixedClock(1000)))
        running = asyncio.create_task(agent.run())
        try:
            await asyncio.wait_for(scenario(agent), WAIT_S)
        finally:
            agent.stop()
            await running

    asyncio.run(main())


def stored(folder: Path) -> list[tuple[str, str | None]]:
    """Stream and key of all readings in the spool."""
    spool = Spool(folder / "spool.sqlite", 1 << 30, "run")
    try:
        return [(one.stream, one.key) for message in spool.after(None, 10_000) for one in decode_batch(message.payload)]
    finally:
        spool.close()


async def state(agent: Agent, condition) -> None:
    """Until the condition holds."""
    while not condition():
        await asyncio.sleep(0.01)


def test_a_message_of_more_readings_than_may_wait_is_stored_and_other_readers_go_on(tmp_path):
    urls = {name: f"http://127.0.0.1:{free_port()}/{name}" for name in ("a", "b")}
    keys = [f"{number:04X}" for number in range(MAX_WAITING + 1)]

    async def scenario(agent):
        await state(agent, lambda: all(one.state == "reading" for one in agent.readers.values()))
        for name, sent in (("a", keys), ("b", keys[:1])):
            body = text([{"data": {"idHex": key}} for key in sent])
            assert (await asyncio.to_thread(requests.post, urls[name], body, timeout=WAIT_S)).ok
        await state(agent, lambda: agent.spool_state.readings == len(keys) + 1)

    run(tmp_path, scenario, *(READER.format(*one) for one in urls.items()))
    readings = stored(tmp_path)
    assert [key for stream, key in readings if stream == "a"] == keys
    assert ("b", keys[0]) in readings


@pytest.fixture
def slow_disk(monkeypatch):
    """A disk that needs longer for all that waits than the agent has for publishing, and for its threads."""
    append = Spool.append

    def slow(self, *args):
        time.sleep(0.02)
        return append(self, *args)

    monkeypatch.setattr(Spool, "append", slow)
    for name in ("DRAIN_S", "JOIN_S"):
        monkeypatch.setattr(module, name, 0.1)


async def post_many(agent: Agent, url: str, count: int) -> None:
    """Readings of which most wait when this returns."""
    await state(agent, lambda: agent.readers["a"].state == "reading")
    body = text([{"data": {"idHex": f"{number:04X}"}} for number in range(count)])
    assert (await asyncio.to_thread(requests.post, url, body, timeout=WAIT_S)).ok
    await state(agent, lambda: agent.spool_state.readings)


@pytest.mark.parametrize("count", [MAX_WAITING, 2 * MAX_WAITING], ids=["all accepted", "some wait for room"])
def test_an_agent_that_ends_stores_all_that_was_read_on_a_slow_disk(tmp_path, slow_disk, count):
    url = f"http://127.0.0.1:{free_port()}/a"
    run(tmp_path, lambda agent: post_many(agent, url, count), READER.format("a", url))
    assert [key for _, key in stored(tmp_path)] == [f"{number:04X}" for number in range(count)]


def test_an_agent_that_fails_stores_all_that_was_read(tmp_path, slow_disk, monkeypatch):
    url = f"http://127.0.0.1:{free_port()}/a"

    def fail(*_):
        raise ValueError("a fault")

    async def scenario(agent):
        await post_many(agent, url, MAX_WAITING)
        monkeypatch.setattr(Delivery, "heartbeat", fail)
        await state(agent, agent._stopping.is_set)

    with pytest.raises(ValueError, match="a fault"):
        run(tmp_path, scenario, READER.format("a", url), "[heartbeat]\nevery_ms = 100\n")
    assert len(stored(tmp_path)) == MAX_WAITING
