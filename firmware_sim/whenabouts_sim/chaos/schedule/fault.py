"""What can go wrong: kinds of faults, and their drawing."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from whenabouts_sim.world.world import SECOND_US

# Names of the ingests, and of the machine of the job. Both ingests are on the machine CLOUD.
CLOUD, SECOND, JOBS = "cloud", "second", "jobs"
WHOLE = -1  # a process of an operator is not killed
MERGED, WATERMARKS = 1, 2  # a file that changes is a merged one, or one of the newest watermarks, if there is one
FORGOTTEN = "forgotten_stream"  # a kind: the file of gateways lacks a stream until somebody corrects it
ALL_READERS = -1  # all are unplugged at once, as with the hub that they share


@dataclass(frozen=True)
class Fault:
    """One fault. target: a gateway as site/name, an ingest, JOBS, or "" for the broker.

    count: of writes, of syncs of folders, or of readers before its own, or ms of a clock; part: a probability, where the
    kind has one.
    """

    kind: str
    at_us: int
    length_us: int = 0
    target: str = ""
    count: int = 0
    part: float = 0.0

    @property
    def end_us(self) -> int:
        """When it is over."""
        return self.at_us + self.length_us

    def __str__(self) -> str:
        more = [f"of {self.target}"] if self.target else []
        more += [f"before write {self.count + 1}"] if self.kind.endswith("write") else []
        more += [f"of folder {self.count + 1}"] if "sync" in self.kind else []
        more += [f"by {self.count / 1000:.3f} s"] if self.kind == "clock_back" else []
        which = "all readers" if self.count == ALL_READERS else f"reader {self.count}"
        more += [which] if self.kind == "unplugged" else []
        more += [f"killed before write {self.count + 1}"] if self.kind in UPKEEP_KINDS and self.count != WHOLE else []
        more += [f"for {self.length_us / 1e6:.3f} s"] if self.length_us else []
        more += [f"part {self.part:.2f}"] if self.part else []
        return " ".join([self.kind.replace("_", " "), *more])


Draw = Callable[[Random, Sequence[str], int], Fault]
"""Draws a fault for one of some gateways and ingests."""


def _machine(kind: str, counted: bool = False) -> Draw:
    """A fault of a machine, which lasts until it is started again."""

    def draw(chance: Random, hosts: Sequence[str], at_us: int) -> Fault:
        target = chance.choice((*hosts, JOBS))
        return Fault(
            kind, at_us, chance.randint(1, 1500) * 1000, target, chance.choice((0, 1, 3, 10, 30)) if counted else 0
        )

    return draw


def _slow(kind: str, most_s: float) -> Draw:
    """A machine whose disk or threads let others wait, up to a part of SLOWEST_S."""

    def draw(chance: Random, hosts: Sequence[str], at_us: int) -> Fault:
        length_us = int(chance.random() * most_s * SECOND_US)
        return Fault(kind, at_us, length_us, chance.choice(hosts), part=chance.choice((0.02, 0.1, 0.5, 1.0)))

    return draw


def _connection(kind: str, most_s: float) -> Draw:
    def draw(chance: Random, hosts: Sequence[str], at_us: int) -> Fault:
        length_us = int(chance.random() * most_s * SECOND_US)
        return Fault(kind, at_us, length_us, chance.choice(hosts))

    return draw


def _broker(kind: str, most_s: float = 0.0) -> Draw:
    """A fault of the broker; one that lasts has a part."""

    def draw(chance: Random, _hosts: Sequence[str], at_us: int) -> Fault:
        length_us, part = int(chance.random() * most_s * SECOND_US), chance.random()
        return Fault(kind, at_us, length_us, part=part if most_s else 0.0)

    return draw


def _bit_rot(chance: Random, hosts: Sequence[str], at_us: int) -> Fault:
    """An agent is killed, and a bit of its spool, or of the spool's journal, has changed when it starts again."""
    gateways = [one for one in hosts if "/" in one]
    return Fault("bit_rot", at_us, chance.randint(1, 1500) * 1000, chance.choice(gateways))


def _landing_rot(chance: Random, _hosts: Sequence[str], at_us: int) -> Fault:
    """A bit of some file of the landing changes, and one of some published result."""
    return Fault("landing_rot", at_us)


def _upgrade(chance: Random, hosts: Sequence[str], at_us: int) -> Fault:
    """An agent or ingest is ended, and started again with the next version of the wire."""
    return Fault("upgrade", at_us, chance.randint(1, 1500) * 1000, chance.choice(hosts))


def _sites_move(chance: Random, _hosts: Sequence[str], at_us: int) -> Fault:
    """Both ingests are killed, and started again with the sites of each other."""
    return Fault("sites_move", at_us, chance.randint(1, 1500) * 1000)


KINDS: dict[str, Draw] = {
    "kill": _machine("kill"),
    "kill_at_write": _machine("kill_at_write", True),
    "power_cut": _machine("power_cut"),
    "power_cut_at_write": _machine("power_cut_at_write", True),
    "disk_full": _machine("disk_full"),
    "slow_disk": _slow("slow_disk", 3.0),
    "slow_threads": _slow("slow_threads", 3.0),
    "bit_rot": _bit_rot,
    "landing_rot": _landing_rot,
    "sites_move": _sites_move,
    "upgrade": _upgrade,
    "cut": _connection("cut", 0.0),
    "stall": _connection("stall", 2.0),
    "unreachable": _connection("unreachable", 3.0),
    "broker_restarts": _broker("broker_restarts"),
    "broker_forgets_sessions": _broker("broker_forgets_sessions"),
    "broker_forgets_all": _broker("broker_forgets_all"),
    "broker_sends_twice": _broker("broker_sends_twice", 3.0),
    "slow": _broker("slow", 3.0),
}


UPKEEP_KINDS = ("compact", "retain")
CONNECTION_KINDS = ("cut", "stall", "unreachable", "refuses")
MACHINE_KINDS = (
    "kill",
    "kill_at_write",
    "power_cut",
    "power_cut_at_write",
    "disk_full",
    "slow_disk",
    "slow_threads",
    "bit_rot",
    "upgrade",
    "end",
    "fails_at_write",
    "sync_fails",
    "kill_at_sync",
    "kill_at_commit",
    "power_cut_at_commit",
    "clock_back",
    "repair",
)


def draw_faults(chance: Random, gateways: Sequence[str], ingests: Sequence[str], active_us: int) -> tuple[Fault, ...]:
    """Some faults of some kinds, in the order of time. A schedule uses few kinds, so that their combinations differ."""
    possible = KINDS if len(ingests) > 1 else KINDS.keys() - {"sites_move"}
    kinds = chance.sample(sorted(possible), chance.randint(1, 4))
    count = chance.choice((1, 2, 4, 8))
    times = sorted(chance.randint(0, active_us) for _ in range(count))
    hosts = (*gateways, *ingests)
    return tuple(KINDS[chance.choice(kinds)](chance, hosts, at_us) for at_us in times)
