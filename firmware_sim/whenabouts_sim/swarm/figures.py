"""Results of a swarm's steps: whether the system bends, what limits it, what more gateways would need. Pure.

The system bends (is overloaded) at a step if its p99 is above P99_LIMIT_S, if more readings wait at its end than the cloud
lands in BACKLOG_S, or if the swarm itself could not make the readings in time. The limit is the process that used up its
core; without one, and with a backlog, it is the ingest's receive window: messages that wait for a file.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import ceil
from typing import Any

P99_LIMIT_S = 2.0  # four times as long as a reading may wait for a file
BACKLOG_S = 2.0
LATE_S = 0.5  # delay with which one reading in a hundred may be made
BUSY = 0.85  # of one core: a process that works in one thread has no more to give
FULL = 0.9  # of all cores
PLAN_SHARE = 0.6  # of a core that a plan should use permanently


@dataclass(frozen=True)
class LoadStep:
    """One rate held for a while. Rates per second, latencies from a reading's first byte to the cloud's confirmation."""

    offered: float
    seconds: float
    made: int
    messages: int
    landed: int
    p50_s: float
    p99_s: float
    backlog: int  # readings made and not confirmed when the step ended
    not_taken: int  # of those, messages that the broker had not taken
    late_s: float  # p99 of how late the swarm itself was
    broker_cores: float
    ingest_cores: float
    swarm_cores: float
    machine_cores: float  # everything on this machine, others' work included
    iowait_cores: float
    cores: int
    ingest_write_bytes_s: float
    broker_rss_bytes: int
    ingest_rss_bytes: int

    @property
    def rate(self) -> float:
        """Readings made a second."""
        return self.made / self.seconds

    @property
    def bends(self) -> str:
        """Reasons why this is more than the system can take, or ''."""
        reasons = []
        if self.backlog > BACKLOG_S * self.rate:
            reasons.append(f"{self.backlog} readings waited at the end")
        if self.p99_s > P99_LIMIT_S:
            reasons.append(f"p99 {self.p99_s:.1f} s")
        if self.late_s > LATE_S:
            reasons.append(f"the swarm itself was {self.late_s:.1f} s late")
        return ", ".join(reasons)

    @property
    def limit(self) -> str:
        """The resource that was used up, as far as processor times show it."""
        busiest = max((self.ingest_cores, "ingest"), (self.broker_cores, "broker"), (self.swarm_cores, "swarm"))
        if busiest[0] >= BUSY:
            return f"processor: {busiest[1]} ({busiest[0]:.2f} of one core)"
        if self.machine_cores >= FULL * self.cores:
            others = max(0.0, self.machine_cores - self.ingest_cores - self.broker_cores - self.swarm_cores)
            return (
                f"processor: all {self.cores} cores; ingest {self.ingest_cores:.2f}, broker {self.broker_cores:.2f}, "
                f"swarm {self.swarm_cores:.2f}, what else runs here and the kernel {others:.2f}"
            )
        if self.iowait_cores > 0.3:
            return f"disk ({self.iowait_cores:.2f} cores wait for it)"
        if self.not_taken * 2 > self.messages / self.seconds:
            return "the broker's queue: it takes messages slower than they come"
        return "nothing was used up; messages waited for the ingest's files"

    def as_dict(self) -> dict[str, Any]:
        """The figures as JSON types."""
        return {**asdict(self), "bends": self.bends, "limit": self.limit if self.bends else ""}


def percentile(ordered: Sequence[int], share: float) -> float:
    """The value below which that share of an ordered sequence lies; 0 of an empty one."""
    return float(ordered[min(len(ordered) - 1, int(share * len(ordered)))]) if ordered else 0.0


def needs(step: LoadStep, gateways: int, wanted: int) -> dict[str, Any]:
    """Resources that `wanted` gateways need if each sends as in this step: computed in proportion, not measured."""
    times = wanted / gateways
    ingest, broker = step.ingest_cores * times, step.broker_cores * times
    return {
        "gateways": wanted,
        "readings_s": round(step.rate * times),
        "messages_s": round(step.messages / step.seconds * times),
        "ingest_cores": round(ingest, 1),
        "ingests": _processes(ingest),
        "broker_cores": round(broker, 1),
        "brokers": _processes(broker),
        "broker_rss_mb": round(step.broker_rss_bytes * times / 1e6),
        "landing_mb_s": round(step.ingest_write_bytes_s * times / 1e6, 1),
    }


def _processes(cores: float) -> int:
    """Number of single-threaded processes that do the work of this many cores."""
    return max(1, ceil(round(cores / PLAN_SHARE, 6)))


def table(gateways: int, steps: Sequence[LoadStep], wanted: int) -> str:
    """The steps, the rate at which the system bends, and the needs of more gateways, for people."""
    lines = [
        f"{gateways} gateways, one broker, one ingest, {steps[0].cores} cores; the swarm and all else on the same machine",
        f"{'readings/s':>11}{'messages/s':>11}{'landed':>9}{'p50 ms':>8}{'p99 ms':>8}{'waiting':>9}"
        f"{'broker':>8}{'ingest':>8}{'swarm':>7}{'machine':>9}  (cores)",
    ]
    lines += [
        f"{s.rate:11.0f}{s.messages / s.seconds:11.0f}{s.landed:9}{s.p50_s * 1000:8.0f}{s.p99_s * 1000:8.0f}{s.backlog:9}"
        f"{s.broker_cores:8.2f}{s.ingest_cores:8.2f}{s.swarm_cores:7.2f}{s.machine_cores:9.2f}"
        for s in steps
    ]
    last, good = steps[-1], [step for step in steps if not step.bends]
    if last.bends:
        lines.append(f"bends at {last.offered:.0f} readings/s: {last.bends}; limit: {last.limit}")
    else:
        lines.append(f"did not bend up to {last.offered:.0f} readings/s")
    if good:
        n = needs(good[-1], gateways, wanted)
        lines.append(
            f"computed from the step at {good[-1].rate:.0f}/s, not measured: {wanted} gateways like these send "
            f"{n['readings_s']} readings/s in {n['messages_s']} messages/s and need {n['ingests']} ingests "
            f"({n['ingest_cores']} cores, a landing each), {n['brokers']} brokers of one thread ({n['broker_cores']} cores, "
            f"{n['broker_rss_mb']} MB) and {n['landing_mb_s']} MB/s of disk"
        )
    return "\n".join(lines)
