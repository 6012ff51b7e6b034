"""Prepares fast starts: `python -m whenabouts_cloud.warm`, which takes two minutes once.

The engines are compiled before their first use; the machine code is cached beside the sources or in the user's cache
folder. Without it the first job compiles what it needs. Meanwhile Java writes its class archive (`shared_classes`).
`warm engines` and `warm classes` do one of the two; `warm imports` has Python compile the modules that jobs import, if
pip did not.
"""

import importlib
import pkgutil
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pyarrow as pa

from whenabouts_cloud.cep import Pattern, engine
from whenabouts_cloud.cep.count.counter import counter
from whenabouts_cloud.cep.kernel.program import MANY
from whenabouts_cloud.cep.shard.counted import CountShard
from whenabouts_cloud.cep.shard.events import EVENT, Ints, schema_of
from whenabouts_cloud.cep.shard.results import match_rows
from whenabouts_cloud.cep.shard.shard import CepShard
from whenabouts_cloud.correlation import Condition, correlate, count_pairs
from whenabouts_cloud.frontier.gateways import Watermark
from whenabouts_cloud.jobs.session.shared_classes import TRAINED, make_archive
from whenabouts_cloud.latwin import All, ConjunctionDetector, LatWin, Local
from whenabouts_cloud.progress import progress
from whenabouts_cloud.result_ids import result_ids
from whenabouts_cloud.rules.model import CepRule, RuleFile
from whenabouts_cloud.rules.parse import parse_rules

NAMES = ("A", "B", "C")
PATTERNS = (
    "SEQ(A, !B, C) WITHIN 9",
    "AND(A a, C c) WITHIN 9 WHERE a.value < c.value",
    "SEQ(A, !B, C) WITHIN 9 OVER 50 %",
    "SEQ(A, !B, C) WITHIN 9 POSSIBLE",
    "SEQ(A, C) WITHIN 9 PER key SKIP PAST LAST",
)
RULE = 'STREAM a FROM "a" DELAY 1 s STREAM c FROM "c" DELAY 1 s RULE r SEQ(a, c) WITHIN 9 us'
ONLY_SURE = ("OVER", "POSSIBLE", "SKIP")
MANY_KEYS = 5000  # more than an engine's initial capacity


def warm() -> None:
    """Run every engine on a handful of events."""
    kinds, keys, t = np.array([0, 1, 2]), np.zeros(3, np.int64), np.array([1, 5, 8])
    condition = Condition("within", d=3, confidence="0.8")
    steps: list[Callable[[], object]] = [
        lambda text=text, emit=emit: _pattern(text, emit, kinds, keys, t)  # type: ignore[misc]
        for text in PATTERNS
        for emit in ("sure", "arrival")
        if emit == "sure" or not any(word in text for word in ONLY_SURE)
    ]
    steps += [
        _crowd,
        _many,
        lambda: _count(kinds, keys, t),
        lambda: warm_rules(parse_rules(RULE)),
        _windows,
        lambda: correlate(t, t + 3, t, t + 3, condition, engine="numba"),
        lambda: correlate(t, t + 3, t, t + 3, condition, engine="numba", probability=True),
        lambda: count_pairs(t, t + 3, t, t + 3, condition, engine="numba"),
    ]
    with progress("compiling the engines", len(steps), "steps") as advance:
        for step in steps:
            step()
            advance(1)


def _pattern(text: str, emit: Any, kinds: Ints, keys: Ints, t: Ints) -> None:
    running = engine(Pattern.parse(text, unit_us=1), NAMES, emit=emit, k=5, longest=3)
    running.feed(kinds, keys, t, t_max=t + 3, attributes={"value": np.zeros(3)})
    running.finish()


def _crowd() -> None:
    crowded = engine(Pattern.parse("SEQ(A, C) WITHIN 9 PER key", unit_us=1), NAMES, k=5)
    crowded.feed(np.zeros(MANY_KEYS, np.int64), np.arange(MANY_KEYS), np.arange(MANY_KEYS))
    crowded.finish()


def _many() -> None:
    """Run more patterns of the same classes than are asked one by one."""
    plan = Pattern.parse("SEQ(A, !B, C) WITHIN 9", unit_us=1).plan(NAMES)
    many = engine([plan] * 2 * MANY, NAMES, k=5)
    many.feed(np.array([0, 1, 2]), np.zeros(3, np.int64), np.arange(3))
    many.finish()


def _count(kinds: Ints, keys: Ints, t: Ints) -> None:
    counting = counter(Pattern.parse(PATTERNS[0], unit_us=1), NAMES, k=5)
    counting.feed(kinds, keys, t)
    counting.finish()


def warm_rules(rules: RuleFile) -> None:
    """Compile only the code that streaming jobs of these rules run.

    Each rule about events processes sample readings; rules over windows of states are compiled all at once. Of a
    correlation only the ids of its pairs are compiled: numpy finds the few pairs between two triggers.
    """
    for rule in rules.cep_rules:
        _events(rule)
    if rules.correlate_rules:
        result_ids("", np.zeros((1, 2), np.uint64), np.zeros((1, 2), np.int64))
    if any(rule.engine != "runs" for rule in rules.latwin_rules):
        _windows()


def _events(rule: CepRule) -> None:
    """Run a shard of the rule: events, more keys than its initial capacity, a frontier after all of them, a restart."""
    shard, again = [CountShard(rule) if rule.count else CepShard(rule) for _ in range(2)]
    kinds = np.concatenate([np.arange(len(rule.streams)), np.zeros(MANY_KEYS, np.int64)])
    keys = np.concatenate([np.zeros(len(rule.streams), np.int64), np.arange(MANY_KEYS)])
    after = len(kinds) + rule.plan().window + rule.plan().longest
    events = _readings(rule, kinds, keys)
    shard.step({"events": events}, [[Watermark("site/gateway", after)] for _ in rule.streams])
    if not rule.count:  # these readings may make no match
        match_rows(rule, np.zeros((1, len(rule.pattern.names)), np.int64), events, "match")
    again.restore(shard.snapshot())
    again.step({"events": _readings(rule, kinds[:0], keys[:0])}, [[] for _ in rule.streams])


def _readings(rule: CepRule, kinds: Ints, keys: Ints) -> pa.Table:
    """Events of these types and keys, one every microsecond, each one microsecond long; all numbers are 0."""
    count = len(kinds)
    at = np.arange(count)
    known = {
        "type": pa.array(kinds, pa.int16()), "boot": pa.array(np.ones(count, np.int64)), "seq": pa.array(at),
        "key": pa.array(keys.astype(str), pa.string()), "t_min": pa.array(at), "t_max": pa.array(at + 1),
        **{name: pa.array([name] * count, pa.string()).dictionary_encode() for name in ("site", "gateway", "stream")},
    }  # fmt: skip
    schema = schema_of(rule.plan(), rule.count)
    blank = {
        field.name: pa.array([[0] if pa.types.is_list(field.type) else 0.0] * count, field.type)
        for field in schema
        if field.name not in EVENT.names
    }
    return pa.table({**known, **blank}).select(schema.names).cast(schema)


def _windows() -> None:
    """Run windows of two processes, and the conjunction detector."""
    both = All(Local(0, {0}), Local(1, {0}))
    for order in ("causal", "hybrid"):
        window, detector = LatWin(2, 2, order), ConjunctionDetector(2, 2, order)
        for process in (0, 1):
            window.push(process, 0, [0, 0], 0, 1)
            detector.push(process, 0, [0, 0], True, 0, 1)
            detector.evidence(process, [0, 0], 2)
        for asked in (both, ~both):  # a conjunction, and any other predicate
            window.possibly(asked)
            window.definitely_in_window(asked)
        len(window.states())
    walked = LatWin(2, 2, store=False)
    for process in (0, 1):
        walked.push(process, 0, [0, 0])
    walked.possibly(~both)
    walked.definitely_in_window(~both)
    len(walked.states())
    len(walked.edges())


def imports() -> None:
    """Import the modules that Spark jobs and Spark's workers import."""
    packages = [importlib.import_module(f"whenabouts_cloud.{name}") for name in ("spark", "jobs")]
    jobs = [module.name for one in packages for module in pkgutil.walk_packages(one.__path__, f"{one.__name__}.")]
    for name in (*jobs, "whenabouts_cloud.cli", "pandas", "pyspark.daemon", "pyspark.worker"):
        if name not in (TRAINED, __name__):  # TRAINED runs a job when it is imported
            importlib.import_module(name)


def _all() -> None:
    with ThreadPoolExecutor(1) as pool:
        archive = pool.submit(make_archive)
        warm()
        archive.result()


if __name__ == "__main__":
    parts = {"": _all, "engines": warm, "classes": make_archive, "imports": imports}
    wanted = " ".join(sys.argv[1:])
    if wanted not in parts:
        sys.exit(f"warm: found {wanted!r}, expected nothing, engines, classes or imports")
    parts[wanted]()
