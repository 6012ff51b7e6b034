"""The batch job emits the verdicts of the definition, for every group separately."""

import random

import pyarrow.parquet as pq

from reference.latwin import simulate
from support.cloud.landing import land, watermark
from support.latwin.states import FOREVER_US, choices, definitely, emitted, rule, state, states_of
from whenabouts_cloud.jobs.batch import publish_whole
from whenabouts_cloud.jobs.engines.latwin import LATWIN
from whenabouts_cloud.jobs.metrics import total


def groups_of(count, processes=3, steps=30):
    """Random computations of several groups, each with gateways of its site: {group: rows}."""
    made = {}
    for n in range(count):
        rows = states_of(simulate(random.Random(n), processes, steps), group=f"office-{n}")
        made[f"office-{n}"] = [{**row, "site": f"hall{n}"} for row in rows]
    return made


def run(spark, job, folder, shards=2):
    """The emitted rows, and the counters."""
    path, counts = publish_whole(LATWIN, [job], spark, folder / "landing", folder / "out", shards)
    return pq.read_table(path.local), counts


def test_every_group_that_the_rule_names_is_its_definition(spark, tmp_path):
    """Groups of office-+ over two shards and files in any order; another group and other kinds of readings are passed by."""
    groups = groups_of(5)
    other = [{**row, "attrs": row["attrs"].replace("office-0", "canteen")} for row in groups["office-0"]]
    noise = {**other[0], "kind": "tag", "seq": 999}
    rows = [row for some in groups.values() for row in some] + other + [noise]
    random.Random(1).shuffle(rows)
    for n in range(3):
        land(tmp_path / "landing", rows[n::3], n, hour=f"2026-11-20T1{n}")
    for n in range(5):
        watermark(tmp_path / "landing", dict.fromkeys(["g0", "g1", "g2"], FOREVER_US), n, site=f"hall{n}")
    verdicts, counts = run(spark, definitely(3, '"office-+"'), tmp_path)
    wanted = {name: choices(some, 3) for name, some in groups.items()}
    assert sum(map(len, wanted.values())) > 5
    by_group = {name: emitted([r for r in verdicts.to_pylist() if r["group"] == name]) for name in wanted}
    assert by_group == wanted
    summed = total(counts)
    assert summed["verdicts"] == verdicts.num_rows
    assert summed["readings"] + summed["repeats"] == sum(map(len, groups.values()))


def test_a_verdict_names_the_readings_that_began_the_runs(spark, tmp_path):
    """Two phones on at [0, 2] and [5, 6] ms, off at 20 ms: from 5..6 ms on both were on."""
    from support.cloud.landing import EPOCH_US

    rows = [
        state(0, 4, (0, 0), EPOCH_US, EPOCH_US + 2000, True),
        state(1, 9, (0, 0), EPOCH_US + 5000, EPOCH_US + 6000, True),
        state(0, 5, (1, 0), EPOCH_US + 20_000, EPOCH_US + 21_000, False),
        state(1, 10, (0, 1), EPOCH_US + 20_000, EPOCH_US + 21_000, False),
    ]
    land(tmp_path / "landing", rows, 0)
    verdicts, _ = run(spark, definitely(2), tmp_path)
    [row] = verdicts.to_pylist()
    assert (row["group"], row["view"], row["verdict"], row["status"]) == ("office", 7, "definitely", "emitted")
    assert (row["t_min"], row["t_max"]) == (EPOCH_US + 5000, EPOCH_US + 6000)
    assert [(s["name"], s["gateway"], s["seq"], s["state"]) for s in row["states"]] == [
        ("s0", "g0", 4, 0),
        ("s1", "g1", 9, 0),
    ]


def test_rules_over_windows_run_in_spark_too(spark, tmp_path):
    """POSSIBLY of a choice, which the lattice decides: a row when a period begins."""
    rows = states_of(simulate(random.Random(3), 3, 40))
    land(tmp_path / "landing", rows, 0)
    verdicts, _ = run(spark, rule("POSSIBLY 2 OF (s0, s1, s2) WINDOW 4"), tmp_path)
    assert verdicts.num_rows > 0
    assert set(verdicts["verdict"].to_pylist()) == {"possibly"}
    assert all(len(states) == 3 for states in verdicts["states"].to_pylist())


def test_an_invalid_state_reading_is_counted(spark, tmp_path):
    """Attributes without a group, and an empty landing gives a readable result."""
    bad = {**state(0, 0, (0, 0), 0, 0, True), "attrs": "{}"}
    land(tmp_path / "landing", [bad, {**bad, "seq": 1, "attrs": "no json"}], 0)
    verdicts, counts = run(spark, definitely(2), tmp_path)
    assert verdicts.num_rows == 0
    assert total(counts)["wrong"] == 2
