"""The streaming operators measured beside their goals. Prints tables, asserts nothing but that all find the same pairs.

    python tests/bench/bench_operators.py [--scale 1] [--rounds 3]

CPU seconds of this process, medians of the rounds. Workloads: pi 300 ms, rho 20 ms, d 1 s, ct 0.8, arrivals up to 50 ms
after the maximum, microseconds; r12 has 22 matches a tuple, r200 370, r1600 2 900, seq (rate 500, in order) 950.
"""

import argparse
import gc
import random
import statistics
import sys
import time
from itertools import repeat
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / name) for name in ("protocol", "cloud")]

import numpy as np  # noqa: E402

from whenabouts_cloud.pattern.condition import Condition  # noqa: E402
from whenabouts_cloud.research.operators import operator  # noqa: E402
from whenabouts_protocol.streaming_join import StreamingJoin  # noqa: E402

MS = 1000
PI, RHO, JITTER = 300 * MS, 20 * MS, 50 * MS
WITHIN = Condition("within", d=1000 * MS, confidence="0.8")


def stream(rate, tuples, seed=1, jitter=JITTER):
    """Arrival, side, index, t_min, t_max in the order of arrival."""
    rng = random.Random(seed)
    span = tuples * 500_000 // rate
    events = []
    for n in range(tuples):
        t_max, length = rng.randrange(span), rng.randrange(RHO, PI + 1)
        events.append(
            (t_max + (rng.randrange(jitter) if jitter else 0), "b" if n % 2 else "a", n // 2, t_max - length, t_max)
        )
    events.sort()
    return [(now + 0, side, n + 0, low + 0, high + 0) for now, side, n, low, high in events]  # fresh, in memory order


def in_batches(events, size):
    """(side, index, t_min, t_max, now): `size` tuples of a side at a time, as they arrive."""
    waiting, batches = {"a": [], "b": []}, []
    for event in events:
        rows = waiting[event[1]]
        rows.append(event)
        if len(rows) == size:
            now, _, *columns = zip(*rows, strict=True)
            batches.append((event[1], *(np.array(c, np.int64) for c in columns), np.array(now, np.int64)))
            rows.clear()
    # A batch is handed over when it is full, so its tuples come later than they arrived; the clock is set accordingly.
    return sorted(batches, key=lambda batch: batch[4][-1])


def make(name, condition=WITHIN, delay=JITTER, **more):
    return operator(
        name, condition, delay_a=delay, delay_b=delay, pi_a=PI, pi_b=PI, rho_a=RHO, rho_b=RHO, **more
    )  # fmt: skip


def timed(run, rounds):
    """Median CPU seconds and the last result."""
    seconds = []
    for _ in range(rounds):
        gc.collect()
        gc.freeze()
        began = time.process_time()
        result = run()
        seconds.append(time.process_time() - began)
        gc.unfreeze()
    return statistics.median(seconds), result


def one_by_one(name, events, method="push", **more):
    def run():
        op = make(name, **more)
        take = getattr(op, method)
        for now, side, index, t_min, t_max in events:
            take(side, index, t_min, t_max, now)
        op.flush()
        return op.counters

    return run


def by_batches(name, batches, delay, method="push_arrays", **more):
    def run():
        op = make(name, delay=delay, **more)
        take = getattr(op, method)
        for batch in batches:
            take(*batch)
        op.flush_arrays()
        return op.counters

    return run


def gateway_core(events):
    """The protocol package's streaming join on the same arrivals: order by middles, indices of the partners."""

    def run():
        core = StreamingJoin(-WITHIN.width // 2, WITHIN.width // 2, 4, 5, (RHO, PI), (RHO, PI))
        left = 64
        for now, side, index, t_min, t_max in events:
            core.push(0 if side == "a" else 1, index, t_min, t_max)
            left -= 1
            if not left:
                core.advance(now - JITTER, now - JITTER)
                left = 64
        return core

    return run


def pairs_alone(events, rounds):
    """Microseconds a tuple to turn partners into a list of pairs, the partners already computed."""
    op = make("eager")
    matched = [(index, op.partners(side, index, t_min, t_max, now)) for now, side, index, t_min, t_max in events]
    matched = [(index, partners) for index, partners in matched[-2000:] if partners]

    def run():
        for index, partners in matched:
            list(zip(repeat(index), partners))

    return timed(run, rounds)[0] / len(matched) * 1e6


def eager_tuple_by_tuple(rounds, scale):
    print("\neager, plain Python, tuple by tuple (goals: 500 k/s at 22, 150 k/s at 370 matches a tuple)")
    for name, rate, tuples, goal in (("r12", 12, 60_000, 500), ("r200", 200, 24_000, 150), ("r1600", 1600, 12_000, None),
                                     ("seq", 500, 12_000, None)):  # fmt: skip
        events = stream(rate, max(2000, int(tuples * scale)), jitter=0 if name == "seq" else JITTER)
        for method, what in (("partners", "partners' indices"), ("push", "list of pairs")):
            seconds, counts = timed(one_by_one("eager", events, method), rounds)
            rate_k = counts.tuples / seconds / 1000
            beside = f"{rate_k / goal:5.2f} of goal" if goal else ""
            matches = 2 * counts.pairs / counts.tuples
            print(f"  {name:6} {matches:7.1f} matches  {what:18} {rate_k:7.0f} k tuples/s  {beside}")
        blank = f"  {name:6} {'':15}  "
        print(f"{blank}the bare lists      {pairs_alone(events, rounds):7.2f} us a tuple, whatever finds the partners")
        seconds, core = timed(gateway_core(events), rounds)
        assert core.pairs == counts.pairs
        print(
            f"{blank}gateways' core     {len(events) / seconds / 1000:7.0f} k tuples/s (by middles, partners' indices)"
        )


def blocks(rounds, scale):
    print("\nblocks (goal: banded 1 000 k/s at batches of 100 and 22 matches a tuple)")
    for label, rate, tuples in (("r12", 12, 200_000), ("r200", 200, 40_000)):
        events = stream(rate, max(4000, int(tuples * scale)))
        for size in (100, 1000):
            batches = in_batches(events, size)
            delay = JITTER + 4 * size * 1_000_000 // rate  # waiting for a full batch makes tuples late
            for name in ("banded", "lazy", "lookup"):
                more = {} if name == "banded" else {"block": size}
                by_batches(name, batches[:4], delay, **more)()  # compiled
                for method, what in (("push_arrays", "arrays"), ("push", "list of pairs")):
                    seconds, counts = timed(by_batches(name, batches, delay, method, **more), rounds)
                    rate_k = counts.tuples / seconds / 1000
                    goal = f"{rate_k / 1000:5.2f} of goal" if (label, size, name) == ("r12", 100, "banded") else ""
                    print(f"  {label:5} batches of {size:4}  {name:7} {what:14} {rate_k:7.0f} k tuples/s  {goal}")


def evaluations(scale):
    print(
        "\nprobability evaluations a tuple, exact (goal: middle order at most 0.36 of max order at ct 0.8, 0.01 at 0.5)"
    )
    events = stream(500, max(4000, int(20_000 * scale)))
    for ct, goal in (("1", None), ("0.8", 0.36), ("0.5", 0.01), ("0.3", None)):
        counts = {}
        for name in ("eager", "lazy", "lookup", "banded"):
            condition = Condition("within", d=500 * MS, confidence=ct)
            counts[name] = one_by_one(name, events, condition=condition)()
        assert len({c.pairs for c in counts.values()}) == 1
        text = "  ".join(f"{name} {c.evaluations / c.tuples:7.3f}" for name, c in counts.items())
        share = counts["banded"].evaluations / counts["eager"].evaluations
        print(f"  ct {ct:4} {text}  banded/eager {share:.4f}" + (f" (goal {goal})" if goal else "")
              + f"  hit ratio {counts['lookup'].hit_ratio:.2f}")  # fmt: skip


def ordering(rounds, scale):
    print("\nthe papers' ordering, r400: simple > simple_sort >> eager > lazy; and whether look-up pays")
    events = stream(400, max(2000, int(4000 * scale)))
    seconds = {}
    for name in ("simple", "simple_sort", "eager", "lazy", "lookup"):
        lazy = name in ("lazy", "lookup")
        run = one_by_one(name, events, "push_arrays" if lazy else "push", **({"block": 500} if lazy else {}))
        run()
        seconds[name], _ = timed(run, rounds)
    print("  " + "  ".join(f"{name} {s * 1000:.0f} ms" for name, s in seconds.items()))
    print("  found: " + " > ".join(sorted(seconds, key=lambda name: -seconds[name])))
    batches = in_batches(stream(500, max(20_000, int(60_000 * scale))), 1000)
    for ct in ("0.8", "0.5"):
        condition = Condition("within", d=500 * MS, confidence=ct)
        cost = {}
        for name in ("lazy", "lookup"):
            run = by_batches(name, batches, 10_000 * MS, condition=condition, block=1000)
            run()
            cost[name], counts = timed(run, rounds)
        print(f"  r500 d 500 ct {ct}: look-up takes {cost['lookup'] / cost['lazy']:.2f} of probing"
              f", hit ratio {counts.hit_ratio:.2f}")  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1.0, help="share of the tuples (default 1)")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    began = time.perf_counter()
    for _ in range(2):
        x = 0
        began_loop = time.process_time()
        for n in range(2_000_000):
            x += n * 3
        loop = (time.process_time() - began_loop) / 2e6 * 1e9
    print(f"this machine now: {loop:.0f} ns for `x += n * 3` in a loop (plain Python figures scale with it)")
    eager_tuple_by_tuple(args.rounds, args.scale)
    blocks(args.rounds, args.scale)
    evaluations(args.scale)
    ordering(args.rounds, args.scale)
    print(f"\n{time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
