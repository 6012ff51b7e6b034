"""Faults that are drawn beside the others, each kind from a stream of chance of its own: what a seed drew before stays."""

from collections.abc import Iterator, Sequence
from random import Random

from whenabouts_sim.chaos.schedule.fault import ALL_READERS, CLOUD, FORGOTTEN, JOBS, MERGED, WATERMARKS, WHOLE, Fault
from whenabouts_sim.world.world import SECOND_US

PART_ENDED, PART_FAILED, PART_REFUSED, PART_UNPLUGGED = 0.2, 0.2, 0.15, 0.15  # of schedules
PART_SENT_AGAIN = 0.5  # of refusals: with a loss of the connection
PART_OUTAGE = 0.3  # of schedules in which a badge lies long enough
PART_HIDDEN = 0.4  # of schedules with badges
PART_REPAIRED, PART_COMPACTED, PART_UNSYNCED, PART_SET_BACK = 0.15, 0.2, 0.15, 0.1  # of schedules
PART_NAMES_LOST = 0.25  # of schedules
PART_TWO_UNSYNCED = 0.1  # of schedules
PART_RETAINED = 0.15  # of schedules in which the job loses no commit
PART_COMMITS_LOST = 0.15  # of schedules
PART_TORN = 0.3  # of schedules with a liar
PART_FORGOTTEN = 0.06  # of schedules
PART_LEAVES = 0.7  # of groups of three or more
PART_LEFT_ALONE = 0.4  # of leaves
PART_MERGED_ROT = 0.4  # of runs that merge: with damage to a file, perhaps to what they wrote
PART_UNREAD = 0.4  # of those: with a job that was killed in a micro-batch before, and repeats it afterwards
HOUR_US = 3 * SECOND_US  # when an hour ends
AWAY_US = 4 * SECOND_US  # a job that is away for so long finds originals of merged files deleted


def more_faults(seed: int, hosts: Sequence[str], ingests: Sequence[str], active_us: int) -> Iterator[Fault]:
    """Those of a seed. hosts: its gateways as site/name."""
    yield from _ends(Random(f"more/{seed}"), hosts, active_us)
    yield from _refusals(Random(f"refuses/{seed}"), (*hosts, *ingests), active_us)
    yield from _unplugs(Random(f"ports/{seed}"), hosts, active_us)
    yield from _repairs(Random(f"repair/{seed}"), ingests, active_us)
    yield from _compactions(Random(f"compact/{seed}"), ingests)
    yield from _set_back(_server_clock(seed), ingests, active_us)
    yield from _unsynced(Random(f"syncs/{seed}"), active_us)
    yield from _names_lost(Random(f"names lost/{seed}"), active_us)
    yield from _two_unsynced(Random(f"two unsynced/{seed}"), active_us)
    yield from _commits_lost(Random(f"commits/{seed}"), active_us)
    yield from _forgotten(Random(f"forgotten/{seed}"), hosts, active_us)


def _ends(chance: Random, hosts: Sequence[str], active_us: int) -> Iterator[Fault]:
    """Parts that end in order, and are started again; a disk that refuses single writes of the ingest."""
    if chance.random() < PART_ENDED:
        for _ in range(chance.choice((1, 2))):
            at_us, length_us = chance.randint(0, active_us), chance.randint(1, 1500) * 1000
            yield Fault("end", at_us, length_us, chance.choice((*hosts, CLOUD)))
    if chance.random() < PART_FAILED:
        for _ in range(4):
            yield Fault("fails_at_write", chance.randint(0, active_us), 100_000, CLOUD, chance.choice((0, 1, 2, 3)))


def _refusals(chance: Random, clients: Sequence[str], active_us: int) -> Iterator[Fault]:
    """A broker that refuses messages of a client for a while, perhaps those that it sends again after it has lost its
    connection, while earlier copies of them land.
    """
    if chance.random() < PART_REFUSED:
        for _ in range(chance.choice((1, 2))):
            at_us, length_us = chance.randint(0, active_us), int(chance.random() * 3 * SECOND_US)
            client = chance.choice(clients)
            yield Fault("refuses", at_us, length_us, client, part=chance.choice((0.2, 0.6, 1.0)))
            if chance.random() < PART_SENT_AGAIN:
                yield Fault("cut", at_us + chance.choice((1_000, 50_000)), 0, client)


def _unplugs(chance: Random, gateways: Sequence[str], active_us: int) -> Iterator[Fault]:
    """Readers that are unplugged, and come back; the number counts the readers of their gateway."""
    if chance.random() < PART_UNPLUGGED:
        for _ in range(chance.choice((1, 2, 3))):
            at_us, length_us = chance.randint(0, active_us), chance.choice((1_000, 300_000, 1_000_000, 5_000_000))
            length_us = chance.randint(length_us // 2, length_us)
            which = (ALL_READERS, chance.randrange(8))
            yield Fault("unplugged", at_us, length_us, chance.choice(gateways), chance.choice(which))


def outages(chance: Random, stays: Sequence[tuple[str, int]]) -> Iterator[Fault]:
    """Readers that are unplugged for a moment while a badge lies there. stays: gateways, and when one begins to."""
    if stays and chance.random() < PART_OUTAGE:
        gateway, at_us = chance.choice(stays)
        yield Fault("unplugged", at_us, chance.choice((1_000, 100_000)), gateway, ALL_READERS)


def hidden_arrivals(chance: Random, arrivals: Sequence[tuple[str, int]]) -> Iterator[Fault]:
    """Readers that are unplugged when a badge comes: it is away by all that their gateway knows. arrivals: gateways, and
    when a badge is read after a pause.
    """
    if arrivals and chance.random() < PART_HIDDEN:
        for gateway, at_us in chance.sample(arrivals, min(len(arrivals), chance.choice((1, 2, 3)))):
            before_us = chance.choice((-12_000, -5_000, 0, 100_000, 300_000))
            yield Fault("unplugged", max(0, at_us - before_us), before_us + 50_000, gateway, ALL_READERS)


def leaves(chance: Random, members: Sequence[str], active_us: int) -> Iterator[Fault]:
    """A member of a group of three or more that joins when the others are a group, and leaves it in order. Another one may
    not learn of it for some time.
    """
    if len(members) > 2 and chance.random() < PART_LEAVES:
        late, joins_us = chance.choice(members), chance.randint(1500, 2000) * 1000
        yield Fault("kill", 1000, joins_us, late)
        for _ in range(chance.choice((1, 1, 2))):
            ends_us = joins_us + chance.randint(1000, max(1500, (active_us - joins_us) // 1000)) * 1000
            yield Fault("end", ends_us, chance.randint(1500, 3000) * 1000, late)
            if chance.random() < PART_LEFT_ALONE:
                other = chance.choice([one for one in members if one != late])
                yield Fault("unreachable", max(0, ends_us - 100_000), chance.randint(500, 2500) * 1000, other)


def _compactions(chance: Random, ingests: Sequence[str]) -> Iterator[Fault]:
    """The small files of the hour that has ended are merged, and later runs delete them; some are killed, or meet damage. Or
    all is well, and a job that was killed in a micro-batch before repeats it afterwards.
    """
    if chance.random() < PART_COMPACTED:
        at_us = HOUR_US + chance.randint(0, 2000) * 1000
        is_unread = chance.random() < PART_UNREAD
        if is_unread:
            killed_us = chance.randint(HOUR_US // 3, HOUR_US)
            until_us = at_us + chance.choice((500_000, AWAY_US))
            yield Fault("kill_at_write", killed_us, until_us - killed_us, JOBS, chance.choice((1, 3, 3, 10)))
        else:
            yield from (Fault("landing_rot", at_us - 1000) for _ in range(chance.choice((0, 0, 2))))
        for _ in range(chance.choice((1, 2, 3))):
            for one in ingests:
                yield Fault("compact", at_us, 0, one, WHOLE if is_unread else chance.choice((WHOLE, WHOLE, 0, 1, 2, 4)))
            least_ms = 500 if not is_unread else 2100  # the next run is allowed to delete originals
            if not is_unread and chance.random() < PART_MERGED_ROT:
                yield Fault("landing_rot", at_us + 1000, count=MERGED)
                least_ms = 2100
            at_us += chance.randint(least_ms, 3000) * 1000


def _unsynced(chance: Random, active_us: int) -> Iterator[Fault]:
    """Folders that cannot be synced once, often that of a new hour or of one that ends, and power cuts soon after."""
    if chance.random() < PART_UNSYNCED:
        for _ in range(chance.choice((1, 2))):
            before_us = chance.randint(0, 500) * 1000
            at_us = chance.choice((chance.randint(0, active_us), HOUR_US, HOUR_US - before_us, HOUR_US - before_us))
            target = chance.choice((CLOUD, CLOUD, JOBS))
            yield Fault("sync_fails", at_us, 100_000, target, chance.choice((0, 0, 1, 2)))
            if chance.random() < 0.7:
                yield Fault("power_cut", at_us + chance.randint(1, 3500) * 1000, 100_000, target)


def _names_lost(chance: Random, active_us: int) -> Iterator[Fault]:
    """An ingest is killed after a file got its name, before that name is durable, and the power is cut: before it is started
    again, when jobs have read the file; just afterwards, in the hour that has begun; or later, when the hour has ended, of
    which the folder is not synced any more.
    """
    if chance.random() < PART_NAMES_LOST:
        which = chance.random()
        if which < 0.25:
            at_us, length_us = HOUR_US + chance.randint(100, 900) * 1000, chance.randint(50, 300) * 1000
            cut_us, count = at_us + length_us + chance.randint(100, 700) * 1000, chance.choice((0, 0, 0, 1))
        elif which < 0.6:
            at_us, length_us = HOUR_US - chance.randint(0, 500) * 1000, chance.randint(100, 500) * 1000
            cut_us, count = at_us + length_us + chance.randint(300, 1800) * 1000, chance.choice((0, 0, 0, 1))
        else:
            at_us, length_us = chance.randint(0, active_us), chance.randint(1000, 2500) * 1000
            cut_us, count = at_us + chance.randint(length_us // 2, length_us), chance.choice((0, 0, 1, 2))
        yield Fault("kill_at_sync", at_us, length_us, CLOUD, count)
        yield Fault("power_cut", cut_us, 100_000, CLOUD)


def retained(chance: Random, ingests: Sequence[str]) -> Iterator[Fault]:
    """The hour that has ended is deleted, once or twice; an ingest is started again afterwards, and needs nothing of it."""
    if chance.random() < PART_RETAINED:
        at_us = HOUR_US + chance.randint(1500, 5000) * 1000
        for _ in range(chance.choice((1, 2))):
            for one in ingests:
                yield Fault("retain", at_us, 0, one, chance.choice((WHOLE, WHOLE, WHOLE, 0, 1, 2, 4, 8)))
            at_us += chance.randint(100, 1500) * 1000
        if chance.random() < 0.7:
            yield Fault(chance.choice(("kill", "end", "power_cut")), at_us, chance.randint(1, 300) * 1000, CLOUD)


def _two_unsynced(chance: Random, active_us: int) -> Iterator[Fault]:
    """A file whose folder cannot be synced; the ingest tries again after a second, and is killed before it syncs the folder.
    Jobs read what they see, then the power is cut.
    """
    if chance.random() < PART_TWO_UNSYNCED:
        at_us = chance.randint(SECOND_US // 2, active_us)
        killed_us, cut_us = at_us + chance.randint(300, 900) * 1000, at_us + chance.randint(1800, 3500) * 1000
        yield Fault("sync_fails", at_us, 100_000, CLOUD)
        yield Fault("kill_at_sync", killed_us, 4 * SECOND_US, CLOUD, chance.choice((0, 0, 0, 1)))
        yield Fault("power_cut", cut_us, 100_000, CLOUD)


def _commits_lost(chance: Random, active_us: int) -> Iterator[Fault]:
    """A job is killed when it has published results and has not committed them, so that it repeats that micro-batch; perhaps
    one of the newest files of watermarks is damaged meanwhile.
    """
    if chance.random() < PART_COMMITS_LOST:
        for _ in range(chance.choice((1, 2, 3))):
            kind = chance.choice(("kill_at_commit", "kill_at_commit", "power_cut_at_commit"))
            at_us, length_us = chance.randint(0, active_us), chance.randint(1, 1500) * 1000
            yield Fault(kind, at_us, length_us, JOBS, chance.choice((0, 0, WATERMARKS)))


def is_set_back(seed: int) -> bool:
    """True if the clock of the ingests is set back in the schedule of a seed."""
    return _server_clock(seed).random() < PART_SET_BACK


def _server_clock(seed: int) -> Random:
    return Random(f"server clock/{seed}")


def _forgotten(chance: Random, gateways: Sequence[str], active_us: int) -> Iterator[Fault]:
    """Who enrolled a gateway forgot one of its streams, and adds it later."""
    if chance.random() < PART_FORGOTTEN:
        yield Fault(FORGOTTEN, 0, chance.randint(SECOND_US, active_us), chance.choice(gateways), chance.randrange(8))


def cut_at_write(chance: Random, active_us: int) -> Iterator[Fault]:
    """The power of the ingests is cut several times before a write, while a liar sends what nobody can take, so that parts
    of dead letters are left.
    """
    if chance.random() < PART_TORN:
        for _ in range(chance.choice((2, 4))):
            at_us, count = chance.randint(0, active_us), chance.choice((0, 1, 2, 3, 5))
            yield Fault("power_cut_at_write", at_us, chance.randint(1, 300) * 1000, CLOUD, count)


def _set_back(chance: Random, ingests: Sequence[str], active_us: int) -> Iterator[Fault]:
    """The clock of the ingests is set back for a while, often behind the hour that has begun; some start again meanwhile, or
    a damaged file is repaired then.
    """
    if chance.random() < PART_SET_BACK:
        begun_us = HOUR_US + chance.randint(50, 900) * 1000
        at_us = chance.choice((chance.randint(0, active_us), begun_us, begun_us))
        yield Fault("clock_back", at_us, chance.randint(500, 4000) * 1000, CLOUD, chance.choice((50, 1000, 3500, 3500)))
        if chance.random() < 0.7:
            kind = chance.choice(("kill", "end"))
            yield Fault(kind, at_us + chance.randint(1, 300) * 1000, chance.randint(1, 200) * 1000, CLOUD)
        if chance.random() < 0.4:
            yield Fault("landing_rot", at_us)
            for one in ingests:
                yield Fault("repair", at_us + chance.randint(100, 800) * 1000, 200_000, one)


def _repairs(chance: Random, ingests: Sequence[str], active_us: int) -> Iterator[Fault]:
    """Files whose bits change, and the operator's repair of each part of the landing."""
    if chance.random() < PART_REPAIRED:
        at_us = chance.randint(active_us // 3, active_us)
        for _ in range(chance.choice((1, 2, 4))):
            yield Fault("landing_rot", at_us)
        for one in ingests:
            yield Fault("repair", at_us + chance.randint(1, 1500) * 1000, chance.randint(1, 1000) * 1000, one)
