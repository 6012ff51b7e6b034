"""Snapshots of an engine: its arguments and plans as a line of JSON, its arrays as raw bytes."""

from fractions import Fraction
from typing import Any, NamedTuple

from whenabouts_cloud.cep.kernel.layout import State
from whenabouts_cloud.cep.runtime import store
from whenabouts_cloud.cep.runtime.active_patterns import Running
from whenabouts_cloud.cep.runtime.held_clocks import HeldClocks
from whenabouts_cloud.cep.runtime.skip import Skipper
from whenabouts_cloud.cep.uncertain.causal import Clocks
from whenabouts_cloud.pattern.plan import Alternative, EventClass, Negation, Plan, Program, Step

CLOCKS = ("vectors", "process", "seq", "gateway", "boot", "view")


class Saved(NamedTuple):
    """State of an engine. `sources` are in the order of their leaves; `live` has the serials of retractable matches."""

    running: Running
    type_names: tuple[str, ...]
    emit: Any
    order: Any
    k: int
    longest: int
    sources: list[int]
    live: set[int]
    skippers: dict[int, Skipper]
    clocks: HeldClocks
    state: State


def dump(saved: Saved) -> bytes:
    """Serialise the state of an engine."""
    running, clocks, held = saved.running, saved.clocks, saved.clocks.known
    arrays = {} if held is None else dict(zip(CLOCKS, held.columns, strict=True)) | {"clocks_t_max": clocks.t_max}
    for n, skipper in saved.skippers.items():
        arrays |= {
            f"waiting {n}": skipper.waiting, f"past {n}": skipper.past, f"probability {n}": skipper.probability,
        }  # fmt: skip
    return store.dump(saved.state, arrays, {
        "plans": [[n, running.since[n], _plan_out(plan)] for n, plan in running.plans.items()],
        "held": list(running.held.items()), "following": running.following, "types": saved.type_names, "emit": saved.emit,
        "order": saved.order, "k": saved.k, "longest": saved.longest, "sources": saved.sources,
        "live": sorted(saved.live), "clocks_base": clocks.base,
    })  # fmt: skip


def load(blob: bytes) -> Saved:
    """Read the state that `dump` wrote.

    Raises:
        ValueError: the bytes are no snapshot, damaged, or one of another version.
    """
    header, state, more = store.load(blob)
    plans = {n: _plan_in(plan) for n, _, plan in header["plans"]}
    since = {n: first for n, first, _ in header["plans"]}
    running = Running(plans, since, dict(header["held"]), header["following"])
    skippers = {n: Skipper(plan, header["longest"]) for n, plan in plans.items() if plan.skip != "none"}
    for n, skipper in skippers.items():
        skipper.waiting, skipper.past = more[f"waiting {n}"], more[f"past {n}"]
        skipper.probability = more[f"probability {n}"]
    clocks = HeldClocks(running.causal)
    if "vectors" in more:
        clocks.base, clocks.t_max = header["clocks_base"], more["clocks_t_max"]
        clocks.known = Clocks(*(more[name] for name in CLOCKS))
    return Saved(
        running, tuple(header["types"]), header["emit"], header["order"], header["k"], header["longest"],
        header["sources"], set(header["live"]), skippers, clocks, state,
    )  # fmt: skip


def _plan_out(plan: Plan) -> dict[str, Any]:
    def steps(program: Program) -> list[list[Any]]:
        return [[s.op, s.element, s.column, s.value.hex()] for s in program]

    return {
        "classes": [[sorted(c.types), steps(c.condition)] for c in plan.classes],
        "alternatives": [
            [v.classes, v.columns, v.before, [[n.event_class, n.left, n.right, steps(n.condition)] for n in v.negations],
             [steps(c) for c in v.conditions]]
            for v in plan.alternatives
        ],
        "width": plan.width, "window": plan.window, "strict_window": plan.strict_window, "mode": plan.mode,
        "probability": str(plan.probability), "skip": plan.skip, "per_key": plan.per_key, "longest": plan.longest,
        "attributes": plan.attributes,
    }  # fmt: skip


def _plan_in(fields: dict[str, Any]) -> Plan:
    def steps(rows: list[list[Any]]) -> Program:
        return tuple(Step(op, element, column, float.fromhex(value)) for op, element, column, value in rows)

    classes = tuple(EventClass(frozenset(types), steps(condition)) for types, condition in fields["classes"])
    alternatives = tuple(
        Alternative(tuple(classes), tuple(columns), tuple(before),
                tuple(Negation(c, left, right, steps(condition)) for c, left, right, condition in negations),
                tuple(steps(c) for c in conditions))
        for classes, columns, before, negations, conditions in fields["alternatives"]
    )  # fmt: skip
    rest = {n: fields[n] for n in ("width", "window", "strict_window", "mode", "skip", "per_key", "longest")}
    return Plan(
        classes,
        alternatives,
        probability=Fraction(fields["probability"]),
        attributes=tuple(fields["attributes"]),
        **rest,
    )
