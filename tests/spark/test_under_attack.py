"""Rules of all three engines have the results of their definitions while one gateway attacks, as they have without it."""

import json
import random
from collections import Counter
from itertools import chain

import pytest

from reference.latwin import simulate
from spark.test_run_command import RULES, check
from support.cep.landing import random_readings
from support.cloud.attacks import EVIL, Attacker, Honest, births_and_heartbeats, conflicts, future, past, wide
from support.cloud.ingest import SITE
from support.latwin.states import states_of
from whenabouts_protocol import Reading, encode_batch
from whenabouts_sim.stack.stack import Stack

LIMIT_S = 120.0  # far above what any step takes
PIECE = 40  # readings of a message


def as_reading(row: dict) -> Reading:
    """A row of the landing, as its gateway sends it."""
    parsed = {name: json.loads(row[name]) if row[name] else None for name in ("value", "attrs")}
    names = ("site", "gateway", "boot", "seq", "stream", "kind", "key", "unit", "t_min", "t_max", "clock_state")
    return Reading(
        **{name: row[name] for name in names},
        value=parsed["value"],
        attrs=parsed["attrs"] or {},
        vclock=tuple(row["vclock"]),
    )


def forged(rows: list[dict]):
    """The others' readings under the attacker's name: pairs and states that never were, and their opposites."""
    made = [as_reading({**row, "gateway": EVIL, "seq": n, "boot": 7}) for n, row in enumerate(rows)]
    for reading in made:
        reading.value = not reading.value
    while True:
        for first in range(0, len(made), 100):
            yield "obs", encode_batch(made[first : first + 100])


def land(folder, honest: dict[str, list[Reading]], attack) -> str:
    """Send readings of gateways through broker and ingest while an attack goes on; the log of the ingest."""
    with Stack(folder) as stack:
        assert stack.enrol({f"{SITE}/{name}": () for name in (EVIL, *honest)}), "mosquitto is missing"
        owned = json.loads(stack.enrolment.gateways.read_text())
        owned["gateways"][f"{SITE}/{EVIL}"]["streams"] = ["dock/tags"]
        stack.enrolment.gateways.write_text(json.dumps(owned))
        stack.broker.start()
        ingest = stack.start_ingest()
        stack.wait("ingest", lambda: ingest.said("broker.connected"), LIMIT_S)
        context = stack.enrolment.context
        attacker = Attacker(stack.broker.port, attack, context(f"{SITE}/{EVIL}"))
        try:
            for name, readings in honest.items():
                gateway = Honest(stack.broker.port, context(f"{SITE}/{name}"), name)
                for first in range(0, len(readings), PIECE):
                    gateway.confirmed(readings[first : first + PIECE])
                gateway.close()
        finally:
            attacker.close()
        assert ingest.stop() == 0, ingest.tail()
        return ingest.log.read_text()


@pytest.mark.parametrize("attacks", [(), (future, births_and_heartbeats, conflicts, wide, past)], ids=["none", "all"])
def test_results_of_three_engines_are_those_of_the_definitions(run_once, tmp_path, attacks):
    """The attacker sends readings of any time, contradictions, heartbeats of many boots, and the others' readings with
    opposite values in its own name, to streams that are not its own."""
    tags = [row | {"gateway": f"r{row['gateway'][1:]}"} for row in random_readings(seed=8, count=160)]
    states = states_of(simulate(random.Random(26), 3, 90))
    honest: dict[str, list[Reading]] = {}
    for row in sorted({(r["gateway"], r["seq"]): r for r in (*tags, *states)}.values(), key=lambda r: r["seq"]):
        honest.setdefault(row["gateway"], []).append(as_reading(row))
    made = [attack() for attack in attacks] + ([forged([*tags, *states])] if attacks else [])
    log = land(tmp_path / "stack", honest, chain.from_iterable(zip(*made, strict=True)))
    (tmp_path / "rule.wa").write_text(RULES, encoding="utf-8")
    (tmp_path / "landing").symlink_to(tmp_path / "stack" / "landing")
    process = run_once(tmp_path, "run")
    assert process.code == 0, "\n".join(process.err)
    counts = check(tmp_path, tags, states)
    assert min(counts[name] for name in ("near", "sure", "unpaid", "together")) > 1
    assert Counter(line.split()[0] for line in process.out) == counts
    assert ("from the future" in log, " stream" in log) == (bool(attacks), bool(attacks))
