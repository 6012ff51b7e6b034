"""A stream that the file of gateways lacks until somebody corrects it: then all lands, and all is told."""

from dataclasses import replace

import pytest

from whenabouts_cloud.ingest.dead_letter_files import DEAD
from whenabouts_sim.chaos.schedule.fault import CLOUD, FORGOTTEN, Fault
from whenabouts_sim.chaos.schedule.schedule import ALONE, draw
from whenabouts_sim.chaos.schedule_run import run


@pytest.mark.parametrize("number", range(3))
def test_what_a_gateway_may_not_publish_waits_until_it_may(number, tmp_path):
    drawn = next(
        one for one in map(draw, range(100)) if len(one.gateways) == 1 and one.ingests == ALONE and not one.liar
    )
    gateway = drawn.gateways[0]
    length_us = 3_000_000
    fault = Fault(FORGOTTEN, 0, length_us, f"{gateway.site}/{gateway.name}", number)
    schedule = replace(drawn, faults=(fault,), numbers=(0,))
    assert schedule.has_owners
    outcome = run(schedule, tmp_path)
    assert outcome.broken == []
    assert outcome.landed >= len(schedule.sightings)
    letters = (path.read_text() for path in (tmp_path / CLOUD / "landing" / DEAD).glob("*.jsonl"))
    assert "may not publish" in "".join(letters)
