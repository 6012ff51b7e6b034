"""Questions are few at once, end in time, and end with whoever asked."""

import asyncio
import os
from contextlib import suppress

import pytest

from whenabouts_cloud.dashboard.questions.asking import LONG, Asker, BusyError, Limits

EXPLAIN = Limits(30, 1 << 30)
STREAM = 'STREAM a FROM "a/+" DELAY 1 s\n'


@pytest.fixture
def silent(tmp_path):
    """A landing that never answers: a pipe stands where a file would be. A question about it takes for ever."""
    hour = tmp_path / "landing" / "hour=2026-11-20T18"
    hour.mkdir(parents=True)
    os.mkfifo(hour / "part-00000001.parquet")
    return {"landing": str(tmp_path / "landing"), "text": f"{STREAM}RULE r SEQ(a x, a y) WITHIN 1 s", "rule": None,
            "from_us": 0, "to_us": 2**60}  # fmt: skip


def running(asker: Asker) -> set[int]:
    return set(asker._running)


def gone(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    return False


async def begun(asker: Asker, values, number: int):
    """Questions that have their processes."""
    tasks = [asyncio.ensure_future(asker.ask("try", values)) for _ in range(number)]
    while len(running(asker)) < min(number, 2):
        await asyncio.sleep(0.01)
    return tasks


def test_a_question_is_answered_by_a_process():
    """Which is gone afterwards."""

    async def play():
        asker = Asker({"explain": EXPLAIN})
        found = await asker.ask("explain", {"text": "RULE"})
        assert found["mistakes"]
        assert running(asker) == set()
        assert asker.counters.asked == 1

    asyncio.run(play())


def test_a_question_is_killed_in_time(silent):
    """The answer says how long it may take."""

    async def play():
        asker = Asker({"try": Limits(2, 3 << 30)})
        [task] = await begun(asker, silent, 1)
        [process] = running(asker)
        assert await task == {"error": f"found no answer within 2 s; {LONG}"}
        assert gone(process)
        assert asker.counters.killed == 1

    asyncio.run(play())


def test_a_question_ends_with_who_asked(silent):
    """Its task is cancelled when the page goes."""

    async def play():
        asker = Asker({"try": Limits(60, 3 << 30)})
        [task] = await begun(asker, silent, 1)
        [process] = running(asker)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        assert gone(process)

    asyncio.run(play())


def test_the_end_of_the_server_ends_all_questions(silent):
    """Those that wait are not asked any more."""

    async def play():
        asker = Asker({"try": Limits(60, 3 << 30)})
        tasks = await begun(asker, silent, 4)
        processes = running(asker)
        asker.close()
        assert await asyncio.gather(*tasks) == [{"error": "the server ends"}] * 4
        assert all(map(gone, processes))

    asyncio.run(play())


def test_too_many_questions_are_refused_at_once(silent):
    """Two run, four wait, the seventh is told to come again."""

    async def play():
        asker = Asker({"try": Limits(60, 3 << 30)})
        tasks = await begun(asker, silent, 6)
        with pytest.raises(BusyError, match="found 6 questions"):
            await asker.ask("try", silent)
        assert len(running(asker)) == 2
        assert asker.counters.busy == 1
        asker.close()
        await asyncio.gather(*tasks)

    asyncio.run(play())


def test_a_process_that_dies_is_told():
    """It knows no such question."""

    async def play():
        asker = Asker({"odd": EXPLAIN})
        assert "ended without an answer" in (await asker.ask("odd", {}))["error"]
        assert asker.counters.failed == 1

    asyncio.run(play())
