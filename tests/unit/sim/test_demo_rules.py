"""The kernels compiled for the demonstration are those that it runs."""

import random
import sys

from numba.core.dispatcher import Dispatcher

from support.cep.landing import events_table
from support.cloud.landing import EPOCH_US, reading
from whenabouts_cloud.cep.shard.shard import CepShard
from whenabouts_cloud.frontier.gateways import Watermark
from whenabouts_cloud.rules import parse_rules
from whenabouts_cloud.warm import warm_rules
from whenabouts_sim.demo.rules import THEFT, more_rules

MS = 1000
RULES = parse_rules(more_rules())


def compiled():
    """Every function of ours, and how many forms of it there are as machine code."""
    ours = [module for name, module in list(sys.modules.items()) if name.startswith("whenabouts_cloud.")]
    functions = [one for module in ours for one in vars(module).values() if isinstance(one, Dispatcher)]
    return {f"{f.py_func.__module__}.{f.py_func.__name__}": len(f.signatures) for f in functions}


def readings(seed, count):
    """Goods at shelf, till and exit within a minute, in any order of arrival, points among the intervals, some twice."""
    rng = random.Random(seed)
    rows = []
    for n in range(count):
        reader = rng.choice([THEFT.shelf, THEFT.till, THEFT.exit])
        t = EPOCH_US + rng.randrange(60_000) * MS
        length = rng.choice([0, 20, 300, 6000]) * MS
        rows.append(reading(reader.gateway, n, reader.stream, f"k{rng.randrange(30)}", t, t + length, site=reader.site))
    return rows + rows[:9]


def test_a_run_of_the_rules_compiles_nothing_more():
    """Steps of any size with late, repeated and long readings, watermarks, a restart before each: as Spark does it."""
    warm_rules(RULES)
    before = compiled()
    assert before["whenabouts_cloud.cep.kernel.block.feed_block"] > 0
    [rule] = RULES.cep_rules
    reported, state = 0, None
    for step in range(12):
        shard = CepShard(rule)
        if state is not None:
            shard.restore(state)
        us = EPOCH_US + step * 8_000 * MS
        sources = {f"{r.site}/{r.gateway}" for r in (THEFT.shelf, THEFT.till, THEFT.exit)}
        output = shard.step(
            {"events": events_table(rule, readings(step, 60))},
            [[Watermark(s, us) for s in sources] for _ in rule.streams],
        )
        reported += output.results.num_rows
        state = shard.snapshot()
    assert reported > 0
    assert compiled() == before


def test_rules_about_runs_and_pairs_compile_nothing_more():
    """The two others of the demonstration: DEFINITELY decides by runs, numpy finds few pairs; their ids are as above."""
    assert [rule.engine for rule in RULES.latwin_rules] == ["runs"]
