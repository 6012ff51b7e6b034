"""Counts of refused readings, on disk until a `gap` reading reports them."""

import pytest

from support.child import ran
from support.edge.pending import several
from whenabouts_edge.store.gaps import Gap
from whenabouts_edge.store.spool import Spool, SpoolFull
from whenabouts_protocol import decode_batch

DOCK = Gap("bench", "gw", "dock/tags", 3, 10, 20, "bounded", (4, 2))
GATE = Gap("bench", "gw", "gate/badges", 1, 15, 15, "free-running")


def opened(folder, limit=1 << 24):
    return Spool(folder / "spool.sqlite", limit)


def test_a_next_agent_reads_what_was_written_last(tmp_path):
    """Of each stream the newest count; without the clock of a view that is over."""
    spool = opened(tmp_path)
    spool.keep_gaps([Gap("bench", "gw", "dock/tags", 2, 10, 19, "bounded")])
    spool.keep_gaps([DOCK, GATE])
    spool.close()
    spool = opened(tmp_path)
    assert spool.gaps.read("bench", "gw") == [Gap("bench", "gw", "dock/tags", 3, 10, 20, "bounded"), GATE]
    spool.close()


def test_a_count_leaves_with_its_reading_and_only_then(tmp_path):
    """Other streams stay; a message that finds no room takes nothing with it."""
    spool = opened(tmp_path, 400)
    spool.keep_gaps([DOCK, GATE])
    message = spool.append([], [DOCK])
    assert [(r.kind, r.value, r.t_min, r.t_max) for r in decode_batch(message.payload)] == [("gap", 3, 10, 20)]
    assert spool.gaps.read("bench", "gw") == [GATE]
    with pytest.raises(SpoolFull):
        spool.append(several(["k"], 900), [GATE])
    assert spool.gaps.read("bench", "gw") == [GATE]
    spool.close()


def test_two_gaps_of_a_stream_are_one():
    """The sum, the hull, and what is newer of the rest."""
    more = Gap("bench", "gw", "dock/tags", 2, 5, 18, "unbounded", (5, 2))
    assert DOCK.joined(more) == Gap("bench", "gw", "dock/tags", 5, 5, 20, "unbounded", (5, 2))


def test_counts_survive_a_kill(tmp_path):
    """The process dies at once after the write; the next one reads the count."""
    program = (
        "import os, pathlib, sys\n"
        "from whenabouts_edge.store.gaps import Gap\n"
        "from whenabouts_edge.store.spool import Spool\n"
        "spool = Spool(pathlib.Path(sys.argv[1]), 1 << 20)\n"
        "spool.keep_gaps([Gap('bench', 'gw', 'dock/tags', 9, 1, 2, 'bounded')])\n"
        "os.kill(os.getpid(), 9)\n"
    )
    done = ran(program, tmp_path / "spool.sqlite")
    assert done.returncode == -9, done.stderr
    spool = opened(tmp_path)
    assert [gap.count for gap in spool.gaps.read("bench", "gw")] == [9]
    spool.close()
