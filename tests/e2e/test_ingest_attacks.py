"""The ingest as a process on a real broker while one gateway attacks: it stays small, and an honest gateway lands on."""

import time

import psutil
import pytest

from support.cloud.attacks import ATTACKS, EVIL, HONEST, LIMIT_S, Attacker, Honest, memory_bytes
from support.cloud.ingest import SITE
from whenabouts_sim.stack.stack import Stack

MEMORY_BYTES = 400 << 20
ATTACK_S = 3.0


@pytest.fixture(scope="module")
def attacked(tmp_path_factory):
    """Broker as `enrol` configures it and ingest, used by all attacks in turn; an honest gateway has landed a reading."""
    with Stack(tmp_path_factory.mktemp("attacked")) as stack:
        assert stack.enrol({f"{SITE}/{name}": () for name in (EVIL, HONEST)}), "mosquitto is missing"
        stack.broker.start()
        part = stack.start_ingest()
        stack.wait("ingest", lambda: part.said("broker.connected"), LIMIT_S)
        honest = Honest(stack.broker.port, stack.enrolment.context(f"{SITE}/{HONEST}"))
        honest.land()
        yield stack, psutil.Process(part.process.pid), honest
        honest.close()
        assert part.stop() == 0, part.tail()
        assert "Traceback" not in part.log.read_text()


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
def test_others_land_during_an_attack_and_memory_is_bounded(attacked, attack):
    """The honest gateway's readings are confirmed while the other sends as fast as it can."""
    stack, process, honest = attacked
    attacker = Attacker(stack.broker.port, attack(), stack.enrolment.context(f"{SITE}/{EVIL}"))
    landed = most = 0
    try:
        ends_s = time.monotonic() + ATTACK_S
        while time.monotonic() < ends_s:
            honest.land()
            landed += 1
            most = max(most, memory_bytes(process))
    finally:
        attacker.close()
    assert attacker.sent > 3
    assert landed > 0
    assert most < MEMORY_BYTES
