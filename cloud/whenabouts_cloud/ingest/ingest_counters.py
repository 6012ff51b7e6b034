"""Counts of the ingest since its start, in all and by gateway."""

from collections import Counter
from dataclasses import dataclass, field

MAX_NAMED = 1000  # gateways that are counted by name; others are counted together

Gateway = tuple[str, str]  # site, gateway
OTHERS: Gateway = ("", "")


class ByGateway:
    """A count by gateway, bounded in memory."""

    def __init__(self) -> None:
        self.counts: Counter[Gateway] = Counter()

    def add(self, origin: Gateway, count: int) -> None:
        """Add to the count of a gateway."""
        self.counts[origin if origin in self.counts or len(self.counts) < MAX_NAMED else OTHERS] += count


@dataclass(slots=True)
class Counters:
    """Counts since the start."""

    messages: int = 0
    landed: int = 0
    ahead: int = 0  # readings from the future, in the side output
    repeats: int = 0
    conflicts: int = 0
    dead: int = 0
    dead_dropped: int = 0
    over_budget: int = 0  # messages that were refused because their sender, or all, used more than they may
    other_sites: int = 0  # messages of sites that another ingest lands
    files: int = 0
    frontiers: int = 0
    forgotten: int = 0  # numbers that gateways no longer keep and that never landed here
    clocks_ahead: int = 0  # gateways whose watermark was ahead of this machine's clock
    refused: int = 0  # readings that gateways had no room for, from their heartbeats
    invalid: int = 0  # invalid data of readers, from heartbeats


@dataclass(slots=True)
class GatewayCounters:
    """Those counts that name the gateway."""

    ahead: ByGateway = field(default_factory=ByGateway)
    over_budget: ByGateway = field(default_factory=ByGateway)
