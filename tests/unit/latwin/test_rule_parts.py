"""The parts of a rule about a group: choices of runs, rows of results, reports as they travel."""

import json

import pyarrow as pa

from support.cloud.landing import EPOCH_US, table
from support.latwin.states import definitely, reports, rule, state
from whenabouts_cloud.blobs import to_bytes
from whenabouts_cloud.jobs.engines.latwin import LATWIN
from whenabouts_cloud.jobs.output.lines import verdict_text
from whenabouts_cloud.jobs.reading.packing import tables_of
from whenabouts_cloud.latwin.shard.occurrence import Occurrence, Witness
from whenabouts_cloud.latwin.shard.report import COLUMNS, Report, reports_of
from whenabouts_cloud.latwin.shard.results import RESULT, result_id, table_of, verdict_row
from whenabouts_cloud.latwin.shard.run_choices import MAX_OPEN, RunChoices
from whenabouts_cloud.latwin.shard.watch import WatchPlan, WindowEvaluation


def report(slot, number, us, *, clock=None, is_heartbeat=False, length=0):
    """A report of one of two processes whose clocks are concurrent unless given."""
    clock = clock or tuple(number if n == slot else 0 for n in range(2))
    return Report(
        slot, number, clock, us, us + length, is_heartbeat, 1, 10 * number + is_heartbeat, us, us + length, (1.0,)
    )


def numbers(verdicts):
    return [[one.number for one in verdict.states] for verdict in verdicts]


def test_runs_that_began_before_each_others_ends_are_a_verdict():
    """a  |0 on (0)        |1 off (20)
    b        |0 on (5)            |1 off (30)      b began later: the end of a decides; the next run of b is too late"""
    runs = RunChoices((0, 1), (0, 0), causal=False)
    assert runs.take(report(0, 0, 0), True) == []
    assert runs.take(report(1, 0, 5), True) == []
    assert numbers(runs.take(report(0, 1, 20), False)) == [[0, 0]]
    assert runs.take(report(1, 1, 30), False) == []
    assert runs.take(report(1, 2, 40), True) == []
    assert not runs.waits


def test_stamps_that_overlap_prove_nothing_and_clocks_may():
    """The end of a's run [4, 9] and the begin of b's [5, 8]; when a knows of b's state 1 at its end, that is enough."""
    for clock, emitted in (((1, 0), []), ((1, 1), [[0, 1]])):
        runs = RunChoices((0, 1), (0, 0), causal=False)
        runs.take(report(0, 0, 0), True)
        runs.take(report(1, 1, 5, length=3), True)
        verdicts = runs.take(report(0, 1, 4, length=5, clock=clock), False)
        verdicts += runs.take(report(1, 2, 20), False)
        assert numbers(verdicts) == emitted


def test_time_decides_at_its_place_only_if_what_is_open_has_lasted():
    """The latest begin is at 5, stamps are up to 3 long: at 9, and only if every gateway has nothing before 9 to report."""
    runs = RunChoices((0, 1), (3, 0), causal=False)
    runs.take(report(0, 0, 0), True)
    runs.take(report(1, 0, 5), True)
    assert runs.due_us(0) == 9
    assert runs.pass_time(8, lambda slot, us, start_us: True) == []
    assert runs.pass_time(9, lambda slot, us, start_us: slot == 1) == []
    state = json.loads(json.dumps(runs.snapshot()))
    again = RunChoices((0, 1), (3, 0), causal=False)
    again.restore(state)
    assert numbers(again.pass_time(9, lambda slot, us, start_us: us == 9)) == [[0, 0]]


def test_a_run_that_is_cut_is_in_no_choice_any_more():
    """Unless its end was known before."""
    runs = RunChoices((0, 1), (0, 0), causal=False)
    runs.take(report(0, 0, 0), True)
    runs.take(report(1, 0, 5), True)
    runs.cut(0)
    assert not runs.waits
    runs.take(report(0, 2, 20), True)
    runs.take(report(0, 2, 25, is_heartbeat=True), True)
    assert runs.take(report(0, 3, 30), False) == []
    assert numbers(runs.take(report(1, 1, 40), False)) == [[2, 0]]


def test_choices_that_wait_are_limited():
    """b goes on and on, and a never ends: the oldest choice is forgotten and counted."""
    runs = RunChoices((0, 1), (0, 0), causal=True)
    runs.take(report(0, 0, 0), True)
    for n in range(MAX_OPEN + 3):
        runs.take(report(1, 2 * n, n, clock=(1, 2 * n)), True)
        runs.take(report(1, 2 * n + 1, n, clock=(1, 2 * n + 1)), False)
    assert runs.counts["choices_forgotten"] == 3


def test_a_row_has_the_verdict_its_time_and_its_readings():
    """The span of a verdict is when the last of its states began; its id depends on rule, group, view and states."""
    job = definitely(2)
    verdict = Occurrence((Witness(0, 3, 1, 7, EPOCH_US, EPOCH_US + 9), Witness(1, 4, 1, 8, EPOCH_US + 5, EPOCH_US + 6)))
    row = verdict_row(job, "office", 7, ["hall/g0", "hall/g1"], verdict, "emitted")
    assert table_of([row]).schema == RESULT
    assert (row["t_min"], row["t_max"], row["verdict"]) == (EPOCH_US + 5, EPOCH_US + 9, "definitely")
    assert row["result_id"] == result_id(job, "office", 7, verdict)
    others = [
        result_id(job, "office", 8, verdict),
        result_id(job, "office-2", 7, verdict),
        result_id(job, "office", 7, verdict._replace(since=(0, 3))),
        result_id(rule("DEFINITELY IN WINDOW s0 AND s1 WINDOW 4", processes=2), "office", 7, verdict),
    ]
    assert len({row["result_id"], *others}) == 5
    assert "  s1 4@hall/g1 " in verdict_text(row)
    assert Occurrence.restored(json.loads(json.dumps(verdict))) == verdict


def test_reports_travel_as_blocks_and_only_what_the_rule_reads():
    """Values by name become numbers and texts in the order of the rule; other streams, kinds and groups are left out."""
    job = rule('POSSIBLY s0.room = "meeting" AND s0.on AND s1 WINDOW 4', processes=2)
    rows = [
        state(0, 0, (0, 0), 0, 0, None, attrs={"room": "meeting", "on": True, "other": 5}),
        state(1, 0, (0, 0), 0, 0, 2.5),
        state(1, 1, (0, 0), 0, 0, None, is_heartbeat=True),
        state(1, 2, (0, 1), 0, 0, True, group="canteen"),
        {**state(1, 3, (0, 2), 0, 0, True), "stream": "elsewhere"},
    ]
    rows[0]["value"] = None
    columns = reports(job, rows)
    assert [json.loads(text) for text in columns["values"].to_pylist()] == [["meeting", 1.0], [2.5], [None]]
    assert columns["is_heartbeat"].to_pylist() == [False, False, True]
    tables, _ = tables_of(LATWIN, job, [("reports", to_bytes(columns)), ("reports", to_bytes(columns.slice(0, 1)))])
    assert tables["reports"].num_rows == 4
    bad = {**rows[1], "vclock": [0, -1]}
    assert reports_of(job, table([bad]).select(COLUMNS))[1] == 1
    assert {routed.table: routed.rows.num_rows for routed in LATWIN.routed(job, table([bad]), 2)} == {
        "reports": 0,
        "invalid": 1,
    }
    assert isinstance(columns, pa.Table)


def test_a_rule_over_windows_goes_on_from_its_snapshot():
    """The ring, and the verdicts on the states in it."""
    plan = WatchPlan(rule("POSSIBLY s0 AND s1 WINDOW 2", processes=2))
    before = plan.watch()
    assert isinstance(before, WindowEvaluation)
    before.take(report(0, 0, 0))
    after = plan.watch()
    after.restore(json.loads(json.dumps(before.snapshot())))
    assert numbers(after.take(report(1, 0, 5))) == [[0, 0]]
    assert after.take(report(1, 1, 6)) == [], "the same period goes on"
