"""Presence at a real agent: tags enter and leave a simulated reader that is unplugged meanwhile, up to the landing."""

import json

import pyarrow.dataset as ds

from e2e.test_agent_delivery import check_watermarks
from e2e.test_edge_rules import distinct, names, published
from support.edge.agent import CLOCK, Bench, witness
from whenabouts_hardware.reader import FIELD_SCAN_US
from whenabouts_sim.readers.pty_link import PtyLink
from whenabouts_sim.readers.rdm6300 import Rdm6300
from whenabouts_sim.stack.stack import reader_table
from whenabouts_sim.world.world import GATE, RDM_REPEAT_US, Sighting

LEAVE_MS = 1500
STREAM = "gate/presence"
NEVER = "00000000FF"
DERIVED = "$rule/read_within"
RULE = f"""
STREAM came FROM "{STREAM}" DELAY 5 s
STREAM read FROM "{GATE.stream}" DELAY 5 s
RULE read_within CORRELATE came AS a, read AS b WHERE |@a - @b| <= 10 s OVER 50 % AND a.key = b.key
"""


def landed(bench):
    """Rows of presence in the landing, in the order of their numbers."""
    if not any(bench.landing.glob("*=*/[!._]*.parquet")):
        return []
    rows = ds.dataset(bench.landing, format="parquet").to_table().to_pylist()
    return sorted((r for r in rows if r["stream"] == STREAM), key=lambda r: (r["boot"], r["seq"]))


def stay(bench, gate, key, number, reads=8):
    """A badge that is read again and again from now on; the true moments of what was reported."""
    start_us = bench.true_us() + 200_000
    gate.go([Sighting(start_us + i * 2 * RDM_REPEAT_US, GATE.name, number + i, key) for i in range(reads)])
    numbers = range(number, number + reads)
    bench.wait("reported", lambda: bench.true_us() > start_us + reads * 2 * RDM_REPEAT_US + FIELD_SCAN_US, 60)
    return [e.true_us for e in gate.emitted if e.key == key and e.number in numbers and not e.damaged]


def test_visits_land_with_the_truth_in_both_ends(tmp_path):
    """
    badge A   ====                ======                entered, left, entered ... left when the reader has looked again
    reader    looks               looks |unplugged| looks
    badge FF  never                                     absent
    a rule on the gateway over these readings sees that a badge entered, and derives no event from an absence
    """
    with Bench(tmp_path) as bench:
        bench.broker.start()
        port = bench.folder / "ports" / "gate"
        with PtyLink(Rdm6300(GATE.name, 1), bench.sim_clock, port) as gate, witness(bench.broker.port) as seen:
            table = {**reader_table(GATE, port), "leave_ms": LEAVE_MS, "presence_stream": STREAM, "expected": [NEVER]}
            bench.configure(table)
            bench.start_ingest()
            bench.start_agent("gw")
            bench.wait("agent", lambda: bench.agent_ready("gw"), 60)
            seen.wait("stream of presence", lambda: STREAM in names(seen))
            published(bench, RULE, "--json")
            seen.wait("rule", lambda: DERIVED in names(seen))
            first = stay(bench, gate, "0000000A0A", 0)
            bench.wait("left", lambda: len(landed(bench)) >= 3, 60)
            second = stay(bench, gate, "0000000A0A", 100)
            gate.unplug()
            unplugged_us = bench.true_us()
            bench.wait_status("lost", lambda s: s["readers"][GATE.name]["state"] == "lost")
            bench.wait("a while", lambda: bench.true_us() > unplugged_us + 3 * LEAVE_MS * 1000, 60)
            assert len(landed(bench)) <= 4  # no badge left while the reader did not read
            gate.plug()
            plugged_us = bench.true_us()
            bench.wait("all", lambda: len(landed(bench)) == 5, 60)
            rows = landed(bench)
            boot = rows[0]["boot"]
            seen.wait("all seen", lambda: {(r["boot"], r["seq"]) for r in rows} <= distinct(seen).keys())
            pairs = [r.attrs for r in distinct(seen).values() if r.stream == DERIVED]
            status = bench.wait_status("counted", lambda s: s["presence"][GATE.name]["left"] == 2)
    check_watermarks(seen.seen)  # a leave is published late, and no watermark had passed its latest moment
    absent = next(r for r in rows if r["key"] == NEVER)
    assert (absent["kind"], json.loads(absent["value"])) == ("absent", "absent")
    visits = [r for r in rows if r["key"] != NEVER]
    assert {(pair["a_boot"], pair["a_seq"]) for pair in pairs} == {(boot, visit["seq"]) for visit in visits[::2]}
    assert [(r["kind"], json.loads(r["value"])) for r in visits] == [("tag", "enter"), ("absent", "leave")] * 2
    for enter, leave, reads in ((*visits[:2], first), (*visits[2:], second)):
        assert enter["t_min"] <= reads[0] <= enter["t_max"]
        assert leave["t_min"] <= reads[-1] <= leave["t_max"]
        reported = json.loads(leave["attrs"])
        assert (reported["visit"], reported["reads"]) == (json.loads(enter["attrs"])["visit"], len(reads))
        assert reported["stay_min_us"] <= reads[-1] - reads[0] <= reported["stay_max_us"]
    assert visits[1]["t_max"] - first[-1] < 2 * CLOCK.base_bound_us + (LEAVE_MS + 1000) * 1000
    # Only a reader that looks finds that a tag has left.
    assert visits[3]["t_max"] > plugged_us
    assert status["presence"][GATE.name]["absent"] == 1
