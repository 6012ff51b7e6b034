"""Figures 4-6 of the 2009 paper and 3-9 of the 2010 paper, measured again, each with a remark on the differences.

Scaled down: a few thousand tuples a file instead of the papers' (unknown) numbers, so that a run takes under two minutes;
the rates are the papers', so the buffers are as full. 2009 has pi 300 ms, 2010 pi 200 ms; rho 20 ms, d 1 s and ct 0.8
where the papers give no other values. Remarks hold measured numbers only; claims about order are checked before they are
made.
"""

from collections.abc import Callable
from dataclasses import dataclass

from whenabouts_cloud.pattern.condition import Condition
from whenabouts_cloud.research.experiments.figures import Figure, Series
from whenabouts_cloud.research.experiments.simulate import Run, simulate, warm_up
from whenabouts_cloud.research.experiments.workload import MS, RHO_US, arrivals
from whenabouts_cloud.research.operators.target_bounds import Lengths, limits

PI_2009_US, PI_2010_US = 300 * MS, 200 * MS
NAMES_2009 = ("simple", "simple_sort", "eager")
NAMES_2010 = ("simple", "simple_sort", "eager", "lazy", "lookup")
BLOCK = 1000  # "enough" tuples, 2010, Section 5.1

Say = Callable[[str], None]


@dataclass(frozen=True)
class Size:
    """Extent of the experiments."""

    rates: tuple[int, ...] = (12, 25, 50, 100, 200, 400, 800, 1600)
    tuples: int = 4000  # a file of the rate experiments
    block_tuples: int = 12_000
    blocks: tuple[int, ...] = (200, 400, 600, 800, 1000, 1200, 1400, 1600)
    seq_tuples: int = 4000
    block: int = BLOCK
    repeats: int = 3  # of the short runs, the fastest counts


FULL = Size()
QUICK = Size((25, 200), 600, 1200, (100, 200), 600, 100, 1)


def within(d_ms: int, ct: str) -> Condition:
    return Condition("within", d=d_ms * MS, confidence=ct)


def figures(size: Size, seed: int, say: Say) -> list[Figure]:
    """Return all figures."""
    say("compiling the block kernels")
    warm_up(within(1000, "0.8"), arrivals(100, 200, pi_us=PI_2009_US, seed=seed))
    all_figures = [*_rates_2009(size, seed, say), _thresholds_2009(size, seed, say)]
    all_figures += [*_rates_2010(size, seed, say), *_blocks_2010(size, seed, say), _thresholds_2010(size, seed, say)]
    return [*all_figures, _regions_2010()]


def _rate_runs(names: tuple[str, ...], pi_us: int, size: Size, seed: int, say: Say) -> dict[str, list[Run]]:
    runs: dict[str, list[Run]] = {name: [] for name in names}
    for rate in size.rates:
        workload = arrivals(rate, size.tuples, pi_us=pi_us, seed=seed)
        for name in names:
            say(f"r{rate} pi {pi_us // MS} ms, {name}")
            block = size.block if name in ("lazy", "lookup") else None
            runs[name].append(simulate(name, within(1000, "0.8"), workload, block=block))
    return runs


def _series(runs: dict[str, list[Run]], value: Callable[[Run], float]) -> Series:
    return {name: [value(run) for run in of_name] for name, of_name in runs.items()}


def _execution_ms(run: Run) -> float:
    return run.execution_us / 1000


def _order(runs: dict[str, list[Run]], names: tuple[str, ...]) -> str:
    """The measured order of the execution times at the highest rate, compared with the paper's."""
    last = {name: runs[name][-1].execution_us for name in names}
    ordered = sorted(names, key=lambda name: -last[name])
    said = "as in the paper" if ordered == list(names) else f"unlike the paper's {' > '.join(names)}"
    return f"{' > '.join(ordered)} ({said})"


def _rates_2009(size: Size, seed: int, say: Say) -> list[Figure]:
    runs = _rate_runs(NAMES_2009, PI_2009_US, size, seed, say)
    top = {name: runs[name][-1] for name in NAMES_2009}
    simple, eager = top["simple"], top["eager"]
    execution = Figure(
        "2009-fig4", "2009, Figure 4", "total execution time by arrival rate", "tuples/s a stream", "CPU ms",
        size.rates, _series(runs, _execution_ms),
        f"Order at {size.rates[-1]} tuples/s: {_order(runs, NAMES_2009)}. The eager operator needs "
        f"{simple.execution_us / eager.execution_us:.0f} times less than the simple one, and evaluates "
        f"{simple.counters.evaluations / max(eager.counters.evaluations, 1):.0f} times fewer probabilities, on any "
        "machine. Simple sort gains less than in the paper: with delays of at most 100 ms arrivals are nearly in "
        "order and obsolete tuples are adjacent anyway; it compares "
        f"{top['simple_sort'].counters.evaluations / max(simple.counters.evaluations, 1):.2f} of the pairs of simple. All "
        "figures are for a fixed number of tuples, so the time grows with the matches a tuple, not with the span.",
        log_y=True,
    )  # fmt: skip
    response = Figure(
        "2009-fig5", "2009, Figure 5", "mean response time by arrival rate", "tuples/s a stream", "ms",
        size.rates, _series(runs, lambda run: run.response_2009_us / 1000),
        "Completion minus the later arrival of the two. The sharp rise comes when the service time exceeds the time between "
        f"arrivals: at {size.rates[-1]} tuples/s a stream a tuple comes every {500 / size.rates[-1]:.2f} ms, and takes "
        f"{simple.execution_us / simple.tuples / 1000:.3f} ms (simple) or {eager.execution_us / eager.tuples / 1000:.3f} ms "
        "(eager). The rise is smaller here, as a queue grows with the length of a run and ours are short; the paper's "
        "Java of 2009 reached it at lower rates.",
        log_y=True,
    )  # fmt: skip
    return [execution, response]


def _best(
    name: str, condition: Condition, workload_args: tuple[int, int, int, int], size: Size, block: int | None
) -> Run:
    rate, tuples, pi_us, seed = workload_args
    workload = arrivals(rate, tuples, pi_us=pi_us, seed=seed, in_order=rate == SEQ_RATE)
    runs = [simulate(name, condition, workload, block=block) for _ in range(size.repeats)]
    return min(runs, key=lambda run: run.execution_us)


SEQ_RATE = 501  # tuples/s of seq.dat, which the papers do not give; 500 is r500, not in order


def _thresholds_2009(size: Size, seed: int, say: Say) -> Figure:
    thresholds = ("1.0", "0.8", "0.6", "0.4", "0.2")
    runs: dict[str, list[Run]] = {"eager": []}
    for ct in thresholds:
        say(f"seq, ct {ct}, eager")
        runs["eager"].append(
            _best("eager", within(1000, ct), (SEQ_RATE, size.seq_tuples, PI_2009_US, seed), size, None)
        )
    first, last = runs["eager"][0], runs["eager"][-1]
    grows = last.execution_us > first.execution_us
    return Figure(
        "2009-fig6", "2009, Figure 6", "execution time by confidence threshold, seq", "ct", "CPU ms (pairs: thousands)",
        thresholds,
        _series(runs, _execution_ms) | {"pairs": [run.counters.pairs / 1000 for run in runs["eager"]],
                                        "evaluations": [run.counters.evaluations / 1000 for run in runs["eager"]]},
        f"From ct 1.0 to 0.2 the pairs grow by {last.counters.pairs / max(first.counters.pairs, 1):.2f} (the candidate "
        f"range does), the evaluations change by {last.counters.evaluations / max(first.counters.evaluations, 1):.2f}, and "
        f"the time by {last.execution_us / first.execution_us:.2f}. The paper's time {'also ' if grows else ''}grows as ct "
        "falls; its reason, that the probe region grows too, is wrong: left and right region together are pi - rho wide for "
        "every ct, the left part shrinks as ct falls, and with arrivals in the order of the maxima the right part has not "
        "come yet, so fewer tuples are probed. What costs more at low ct is writing the additional pairs.",
    )  # fmt: skip


def _rates_2010(size: Size, seed: int, say: Say) -> list[Figure]:
    names = (*NAMES_2010, "banded")
    runs = _rate_runs(names, PI_2010_US, size, seed, say)
    top = {name: runs[name][-1] for name in names}
    lazy, lookup, eager = top["lazy"], top["lookup"], top["eager"]
    pays = lookup.execution_us < lazy.execution_us
    execution = Figure(
        "2010-fig3", "2010, Figure 3", "execution time by arrival rate", "tuples/s a stream", "CPU ms",
        size.rates, _series(runs, _execution_ms),
        f"Order of the first four at {size.rates[-1]} tuples/s: {_order(runs, NAMES_2010[:4])}. Lazy needs "
        f"{eager.execution_us / lazy.execution_us:.1f} times less than eager, here mostly because its blocks run in "
        "compiled code and give arrays, while eager is plain Python for gateways and gives lists. "
        f"Look-up needs {lookup.execution_us / lazy.execution_us:.2f} of the time of lazy at this rate"
        f"{'' if pays else ': it does not pay'}, with {lookup.counters.evaluations / max(lazy.counters.evaluations, 1):.2f} "
        "of its evaluations: an evaluation costs about what the table does. `banded` is not in the paper: the order "
        "by middles, tuple by tuple here, which costs it the fixed price of a compiled call at every one.",
        log_y=True,
    )  # fmt: skip
    response = Figure(
        "2010-fig4", "2010, Figure 4", "mean response time by arrival rate", "tuples/s a stream", "ms",
        size.rates, _series(runs, lambda run: run.response_2010_us / 1000),
        f"Completion minus the later maximum, so the way to the operator ({DELAY_MS} ms at most, 50 on average for one "
        "tuple, more for the later of two) is included, unlike in the 2009 paper. Lazy operators wait for "
        f"{size.block} tuples of a stream: {runs['lazy'][0].response_2010_us / 1e6:.1f} s at {size.rates[0]} tuples/s, "
        f"{lazy.response_2010_us / 1e6:.2f} s at {size.rates[-1]}. In the paper the simple ones become slower than the lazy "
        f"ones above 400 tuples/s; here simple has {top['simple'].response_2010_us / 1e6:.2f} s at {size.rates[-1]}: the "
        "crossing moves with the machine's speed and the length of the run.",
        log_y=True,
    )  # fmt: skip
    buffers = Figure(
        "2010-fig5", "2010, Figure 5", "mean length of the stream buffers", "tuples/s a stream", "tuples, both streams",
        size.rates, _series(runs, lambda run: run.buffer_mean),
        f"Lazy minus eager is {runs['lazy'][0].buffer_mean - runs['eager'][0].buffer_mean:.0f} tuples at {size.rates[0]} "
        "tuples/s (less at the highest rates, where a run ends before eager's buffers are full) for blocks of "
        f"{size.block} a stream (the paper: roughly a block): on average half a block waits in each stream, and tuples that "
        "waiting ones can still match are kept as well; the printed algorithm drops them and so loses pairs. "
        f"Simple holds {top['simple'].buffer_mean:.0f}, simple sort {top['simple_sort'].buffer_mean:.0f}, eager "
        f"{eager.buffer_mean:.0f}: arrivals are nearly in order, so sorting saves little. Short runs: at high rates the "
        "buffers have not reached their full length for the whole run.",
        log_y=True,
    )  # fmt: skip
    return [execution, response, buffers]


DELAY_MS = 100


def _blocks_2010(size: Size, seed: int, say: Say) -> list[Figure]:
    runs: dict[str, list[Run]] = {}
    for ct in ("0.8", "0.5"):
        for name in ("lazy", "lookup"):
            line = runs.setdefault(f"{name}, ct {ct}", [])
            for block in size.blocks:
                say(f"r500, ct {ct}, {name}, block {block}")
                args = (500, size.block_tuples, PI_2010_US, seed)
                line.append(_best(name, within(500, ct), args, size, block))
    ratio = {
        ct: sum(run.execution_us for run in runs[f"lookup, ct {ct}"])
        / sum(run.execution_us for run in runs[f"lazy, ct {ct}"])
        for ct in ("0.8", "0.5")
    }
    first, last = runs["lazy, ct 0.8"][0], runs["lazy, ct 0.8"][-1]
    execution = Figure(
        "2010-fig6", "2010, Figure 6", "execution time by block size, r500, d 500 ms", "tuples a block", "CPU ms",
        size.blocks, _series(runs, _execution_ms),
        f"From blocks of {size.blocks[0]} to {size.blocks[-1]} the time of lazy changes by "
        f"{last.execution_us / first.execution_us:.2f}; in the paper it falls, ever more slowly. Here the fixed cost of a "
        f"block is already spread over {size.blocks[0]} tuples, and what is left is writing pairs, which is no cheaper in "
        f"larger pieces. Look-up takes {ratio['0.8']:.2f} of lazy's time at ct 0.8, {ratio['0.5']:.2f} at ct 0.5 over all "
        "sizes: it saves evaluations, which are a handful of instructions now, and pays with its table. "
        "In the paper it gains, with the printed errors (pairs twice, pairs lost, false pairs) corrected here.",
    )  # fmt: skip
    lookups = {name: of_name for name, of_name in runs.items() if name.startswith("lookup")}
    low, high = (lookups["lookup, ct 0.8"][n].counters.hit_ratio for n in (0, -1))
    hits = Figure(
        "2010-fig7", "2010, Figure 7", "hit ratio of the look-up table by block size, r500", "tuples a block", "hit ratio",
        size.blocks, _series(lookups, lambda run: run.counters.hit_ratio),
        f"At ct 0.8 it goes from {low:.2f} at blocks of {size.blocks[0]} to {high:.2f} at {size.blocks[-1]}: "
        f"{'more bases see the same target, as in the paper' if high > low else 'no gain, unlike in the paper'}. "
        "A result found after a failed reuse is stored, "
        "as the paper's text says and its Algorithm 7, line 10, does not.",
    )  # fmt: skip
    return [execution, hits]


def _thresholds_2010(size: Size, seed: int, say: Say) -> Figure:
    thresholds = ("1.0", "0.7", "0.4", "0.1")
    runs: dict[str, list[Run]] = {}
    for name in ("eager", "lazy", "lookup"):
        for ct in thresholds:
            say(f"seq, ct {ct}, {name}")
            args = (SEQ_RATE, size.seq_tuples, PI_2010_US, seed)
            block = None if name == "eager" else size.block
            runs.setdefault(name, []).append(_best(name, within(1000, ct), args, size, block))
    gains = ", ".join(
        f"{b.execution_us / a.execution_us:.2f} at ct {ct}"
        for ct, a, b in zip(thresholds, runs["lazy"], runs["lookup"], strict=True)
    )
    probes = ", ".join(str(run.counters.evaluations) for run in runs["eager"])
    return Figure(
        "2010-fig8", "2010, Figure 8", "execution time by confidence threshold, seq, d 1 s", "ct", "CPU ms",
        thresholds, _series(runs, _execution_ms),
        f"Look-up takes {gains} of the time of lazy. The paper finds it best everywhere, less so as ct falls. Less probing "
        f"at low ct is right (evaluations of eager: {probes}), but not for the paper's reason: the regions keep their width "
        "together; in the order of the maxima the right one has not arrived when its base is matched.",
        log_y=True,
    )  # fmt: skip


def _regions_2010() -> Figure:
    """Figure of mean widths over base lengths, computed from the limits."""
    thresholds = ("1.0", "0.9", "0.8", "0.7", "0.6", "0.5", "0.4", "0.3", "0.2", "0.1", "0.05")
    lengths = Lengths(RHO_US, PI_2010_US)
    series: Series = {"left, by maxima": [], "right, by maxima": [], "both, by middles": []}
    for ct in thresholds:
        by_max = limits(within(1000, ct), "max", base_in_a=True, base=lengths, target=lengths).rows
        by_middle = limits(within(1000, ct), "middle", base_in_a=True, base=lengths, target=lengths).rows
        series["left, by maxima"].append(sum(row[1] - row[0] for row in by_max) / len(by_max) / MS)
        series["right, by maxima"].append(sum(row[3] - row[2] for row in by_max) / len(by_max) / MS)
        # Doubled middles: two sides, half the unit.
        series["both, by middles"].append(sum(row[1] - row[0] for row in by_middle) / len(by_middle) / MS)
    left = series["left, by maxima"]
    both = [x + y for x, y in zip(left, series["right, by maxima"], strict=True)]
    return Figure(
        "2010-fig9", "2010, Figure 9", "mean width of the probe regions, pi 200 ms, rho 20 ms, d 1 s", "ct", "ms",
        thresholds, series,
        "The paper's figure is a drawing; these are the widths. It says the left region is at most d - rho = 980 ms; it "
        f"is {left[0]:.0f} ms at ct 1 and {left[2]:.0f} ms at 0.8, and left and right together are {min(both):.1f} to "
        f"{max(both):.1f} ms for every ct (pi - rho = 180, and the rounding of the table): ct moves it from one side "
        "to the other. Ordered by middles both sides together are "
        f"{series['both, by middles'][2]:.0f} ms at ct 0.8 and {series['both, by middles'][5]:.1f} ms at 0.5.",
    )  # fmt: skip
