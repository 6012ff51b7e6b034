"""The soak in short: agent, ingest, broker and Spark job are killed with SIGKILL while readings flow."""

import pytest

from whenabouts_sim.soak.kill_plan import Kill
from whenabouts_sim.soak.soak_run import Soak

SECONDS = 26
KILLS = (
    Kill(3, "dock-1", 1.0),
    Kill(6, "ingest-shop", 1.0),
    Kill(9, "broker", 2.0),
    Kill(10, "ingest-warehouse", 3.0),
    Kill(12, "door-1", 0.5),
    Kill(15, "job", 0.1),
)


@pytest.mark.timeout(600)
def test_nothing_is_lost_and_nothing_comes_twice_when_every_part_is_killed(tmp_path):
    """Every reading that reached a living agent lands once, and results are exactly those of the rules, each once."""
    said = []
    found = Soak(tmp_path, 20, SECONDS, said.append, KILLS).run()
    assert found.sound, found.text()
    assert found.kills == {"agent": 2, "ingest": 2, "broker": 1, "job": 1}
    assert found.landed > 40
    assert found.pairs > 0
    assert found.thefts.expected_matches > 0
    assert set(found.memory) >= {"dock-1", "ingest-shop", "job"}
    assert "waiting until all has landed" in said[-1]
