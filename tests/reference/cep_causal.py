"""Causal order from first principles: each gateway knows a set of facts, and every message passes them on."""

import random
from typing import NamedTuple

Fact = tuple[int, int]  # (gateway, number of a local state that has begun)


class Event(NamedTuple):
    gateway: int
    state: int
    seq: int
    facts: frozenset[Fact]  # known at the event
    vector: tuple[int, ...]  # the dense vector clock, as an agent keeps it


def computation(rng: random.Random, gateways: int, steps: int) -> list[Event]:
    """Events in true order, of gateways that begin states, read, and send each other their facts."""
    facts: list[set[Fact]] = [{(g, 0) for g in range(gateways)} for _ in range(gateways)]
    clocks = [[0] * gateways for _ in range(gateways)]
    events: list[Event] = []
    for seq in range(steps):
        g, kind = rng.randrange(gateways), rng.choice(["begin", "read", "read", "message"])
        if kind == "begin":
            clocks[g][g] += 1
            facts[g].add((g, clocks[g][g]))
        elif kind == "read":
            events.append(Event(g, clocks[g][g], seq, frozenset(facts[g]), tuple(clocks[g])))
        else:
            to = rng.randrange(gateways)
            facts[to] |= facts[g]
            clocks[to] = [max(a, b) for a, b in zip(clocks[to], clocks[g], strict=True)]
    return events


def before(x: Event, y: Event) -> bool:
    """True if x -> y: y knew that the state of x had ended; on one gateway, x is the earlier one."""
    if x.gateway == y.gateway:
        return (x.state, x.seq) < (y.state, y.seq)
    return (x.gateway, x.state + 1) in y.facts
