"""The value of a schedule, and its drawing from a seed.

Times are microseconds since the schedule's begin. A world is a few gateways with readers; goods pass the readers one after
the other. All faults end before `calm_us`; after that everything must land and be told within a bound.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from random import Random

from whenabouts_sim.chaos.network import lying_member
from whenabouts_sim.chaos.parts.gateway_part import LEAVE_MS, GatewayPlan, badge_key, badge_of
from whenabouts_sim.chaos.parts.job_rules import MATCHES, PAIRS, SIDES, TOGETHER
from whenabouts_sim.chaos.parts.rule_form import LENGTH_MS, Owner, RulePlan
from whenabouts_sim.chaos.parts.wrong_clock import ClockPlan
from whenabouts_sim.chaos.schedule.fault import CLOUD, FORGOTTEN, JOBS, SECOND, Fault, draw_faults
from whenabouts_sim.chaos.schedule.forms import with_forms, with_impatience, with_returning_goods
from whenabouts_sim.chaos.schedule.gateway_forms import (
    with_damage,
    with_extreme_errors,
    with_names,
    with_rules,
    with_second_readers,
    with_sensors,
    with_sent_rules,
    with_slow_clocks,
    with_small_spools,
    without_utc,
)
from whenabouts_sim.chaos.schedule.match_forms import with_causal_order, with_conditions, with_options, with_shapes
from whenabouts_sim.chaos.schedule.more_faults import (
    cut_at_write,
    hidden_arrivals,
    is_set_back,
    leaves,
    more_faults,
    outages,
    retained,
)
from whenabouts_sim.chaos.schedule.state_forms import with_further_states
from whenabouts_sim.chaos.schedule.stream_forms import with_owners
from whenabouts_sim.world.world import RDM_REPEAT_US, SECOND_US, Sighting

ROUTES = (("dock", "door"), ("shelf", "exit"), ("shelf", "till", "exit"))
READERS = ("dock", "dock-b", "door", "door-b", "shelf", "till", "exit", "exit-b")  # those with -b feed the same stream
SITES = ("hall", "shop")
SPACING_US = RDM_REPEAT_US + 1000
STAY_US = 900_000  # a port that was lost is open again by then
DRIFT_PPM = 50  # the most that the product assumes
PART_GROUPED, PART_LYING = 0.3, 0.25  # of schedules: with a group of gateways, with a liar
PART_LYING_MEMBER = 0.3  # of groups
UNDATED = (*8 * ((0, 0),), (200_000, 0), (1_000_000, 0), (0, 5))  # how long readings wait for UTC, and how many
PART_OFTEN = 0.3  # of schedules: jobs with many small micro-batches
PART_OFTEN_THEN = 0.7  # of those in which the clock of the ingests is set back
PART_HASTY, HASTY_MS = 0.2, 50  # of schedules: with rules that hardly wait, and a gateway that comes late
PATIENT_MS = 60_000  # a DELAY that nobody misses
PART_LONG = 0.1  # of schedules: three times as long
SUBSCRIBED_US = 300_000  # when ingests have subscribed, unless a fault of theirs or of the broker comes first
PART_FINE = 0.12  # of schedules: watermarks in small steps, from gateways to jobs
FINE_MS = 100  # between two of them
PART_LAGGING = 0.1  # of schedules: with a gateway that cannot be reached for long; most rules wait for it


@dataclass(frozen=True)
class IngestPlan:
    """An ingest on the machine CLOUD: its name, its part of the landing, the sites that it lands; none: all. begins_us: when
    it is started for the first time.
    """

    name: str = CLOUD
    part: str = ""
    sites: tuple[str, ...] = ()
    begins_us: int = 0


ALONE = (IngestPlan(),)
TWO = (IngestPlan(CLOUD, "a", SITES[:1]), IngestPlan(SECOND, "b", SITES[1:]))


@dataclass(frozen=True)
class Schedule:
    """sightings: times since the begin. numbers: which of the seed's faults are left, by their numbers. liar: the site of a
    gateway that lies, "" if there is none. most_unlanded: messages that an agent may have sent and that have not landed; 0
    for the usual number, which no schedule reaches. snapshot_every: files between snapshots of an ingest's ledger,
    most_in_batch: readings of a message, message_bytes: its length, most_waiting: readings between ports and spool,
    few_rows: results of a task that are merged with those of others; 0 in the same way. lying_member: the site of a member
    of the group that lies, "" if there is none. interrupts: part of the looks of a job at a folder between which ingests
    write at once. undated_us: how long readings wait for UTC, most_undated: how many do, frontier_us: how
    often ingests write watermarks, clock_s: how often agents ask for UTC; 0 in the same way.
    """

    seed: int
    gateways: tuple[GatewayPlan, ...]
    sightings: tuple[Sighting, ...]
    faults: tuple[Fault, ...]
    numbers: tuple[int, ...]
    active_us: int
    rules: tuple[RulePlan, ...] = ()
    trigger_s: float = 1.0
    shards: int = 1
    ingests: tuple[IngestPlan, ...] = ALONE
    liar: str = ""
    most_unlanded: int = 0
    snapshot_every: int = 0
    most_in_batch: int = 0
    message_bytes: int = 0
    most_waiting: int = 0
    few_rows: int = 0
    lying_member: str = ""
    interrupts: float = 0.0
    undated_us: int = 0
    most_undated: int = 0
    frontier_us: int = 0
    clock_s: float = 0.0

    @property
    def has_owners(self) -> bool:
        """True if the ingests have a file that says who may publish what."""
        is_forgotten = any(one.kind == FORGOTTEN for one in self.faults)
        return bool(self.liar) or is_forgotten or any(one.near for one in self.gateways)

    @property
    def calm_us(self) -> int:
        """When events and faults have ended."""
        return max([self.active_us, *(fault.end_us for fault in self.faults)])

    @property
    def last_us(self) -> int:
        """When every result is certain, unless UTC was not known."""
        widest_us = max(bound for one in self.gateways for _, _, bound in one.clock.known)
        return (
            max([self.active_us, *(one.true_us for one in self.sightings)])
            + 2 * widest_us
            + SECOND_US // 2
            + 1000 * LENGTH_MS
        )

    def only(self, numbers: Iterable[int], readings: int | None = None) -> "Schedule":
        """The schedule with these of its faults, and its first readings."""
        kept = dict(zip(self.numbers, self.faults, strict=True))
        chosen = tuple(number for number in numbers if number in kept)
        some = self.sightings if readings is None else self.sightings[:readings]
        return replace(self, faults=tuple(kept[n] for n in chosen), numbers=chosen, sightings=some)


def stream_of(reader: str) -> str:
    """The stream of a reader."""
    return f"{reader.partition('-')[0]}/tags"


def draw(seed: int) -> Schedule:
    """The schedule of a seed."""
    chance = Random(f"schedule/{seed}")
    active_us = chance.randint(25, 40) * SECOND_US // 10
    active_us *= 3 if Random(f"long/{seed}").random() < PART_LONG else 1
    lags = Random(f"lags/{seed}")
    is_lagging = lags.random() < PART_LAGGING
    # So that much lands after the hour has ended, or after the watermark of a gateway that lags.
    active_us *= 2 if is_set_back(seed) or is_lagging else 1
    gateways = _gateways(chance, active_us)
    sightings = _sightings(chance, active_us)
    grouped = _grouped(gateways, chance.random() < PART_GROUPED)
    if grouped is not gateways:
        gateways, sightings = grouped, _with_badges(chance, grouped, sightings, active_us)
    else:
        gateways = with_names(Random(f"names/{seed}"), gateways)
    gateways, sightings = with_sensors(Random(f"sensors/{seed}"), gateways, sightings)
    gateways = with_further_states(Random(f"states/{seed}"), gateways)
    gateways, clock_s = with_slow_clocks(Random(f"slow clocks/{seed}"), gateways, active_us)
    gateways = with_extreme_errors(Random(f"errors/{seed}"), gateways)
    gateways, restarts = without_utc(Random(f"without utc/{seed}"), gateways, active_us)
    ingests = _begun(Random(f"begin/{seed}"), chance.choice((ALONE, ALONE, TWO)))
    hosts = [f"{one.site}/{one.name}" for one in gateways]
    faults = draw_faults(chance, hosts, [one.name for one in ingests], active_us)
    faults += tuple(more_faults(seed, hosts, [one.name for one in ingests], active_us))
    faults += restarts
    faults += tuple(leaves(Random(f"leaves/{seed}"), hosts, active_us)) if gateways[0].group else ()
    faults += tuple(outages(Random(f"outage/{seed}"), _stays(gateways, sightings)))
    faults += tuple(hidden_arrivals(Random(f"hidden/{seed}"), _arrivals(gateways, sightings)))
    rules = _rules(chance, gateways)
    hasty = Random(f"hasty/{seed}")
    if len(gateways) > 1 and hasty.random() < PART_HASTY:
        rules = tuple(replace(one, delay_ms=HASTY_MS) for one in rules)
        late = hasty.choice(gateways)
        at_us, length_us = hasty.randint(0, active_us // 2), hasty.randint(1500, 3500) * 1000
        faults += (Fault("unreachable", at_us, length_us, f"{late.site}/{late.name}"),)
        gateways, sightings = with_second_readers(hasty, gateways, sightings, late)
    if len(gateways) > 1 and is_lagging:
        rules, fault, sightings = _lagging(lags, gateways, sightings, rules, active_us)
        faults += (fault,)
    rules = with_forms(Random(f"forms/{seed}"), rules)
    rules = with_impatience(Random(f"impatient/{seed}"), rules)
    rules = with_options(Random(f"options/{seed}"), rules, gateways[0].has_sensors)
    rules = with_causal_order(Random(f"causal/{seed}"), rules) if gateways[0].group else rules
    rules = with_shapes(Random(f"shapes/{seed}"), rules)
    rules = with_conditions(Random(f"where/{seed}"), rules)
    rules = with_owners(Random(f"owners/{seed}"), rules, _owners(gateways))
    badges = {badge_key(one.name) for one in gateways}
    sightings = with_returning_goods(Random(f"again/{seed}"), sightings, badges, rules)
    trigger_s, shards = chance.choice((1.0, 2.0, 2.0)), chance.choice((1, 1, 1, 2))
    often = Random(f"often/{seed}")
    # Only jobs that have read much can miss what is put into an hour that has ended.
    part_often = PART_OFTEN_THEN if is_set_back(seed) else PART_OFTEN
    trigger_s = often.choice((0.15, 0.3, 0.6)) if often.random() < part_often else trigger_s
    is_fine = Random(f"fine/{seed}").random() < PART_FINE
    if is_fine:
        trigger_s = 0.15
        gateways = tuple(replace(one, heartbeat_ms=FINE_MS) for one in gateways)
    liar = chance.choice(SITES) if chance.random() < PART_LYING else ""
    faults += tuple(cut_at_write(Random(f"torn/{seed}"), active_us)) if liar else ()
    small = Random(f"small/{seed}")
    gateways = with_rules(Random(f"near/{seed}"), Random(f"sides/{seed}"), with_small_spools(small, gateways))
    if not any(fault.target == JOBS and fault.kind.startswith("power") for fault in faults):
        faults += tuple(retained(Random(f"retain/{seed}"), [one.name for one in ingests]))
    kinds = {fault.kind for fault in faults}
    if "broker_forgets_all" not in kinds:  # then an operator would have to send them again
        # Who asks the broker later learns of the last rules only, and takes no pairs of others.
        is_late = any(one.at_us < SUBSCRIBED_US and (not one.target or one.target == CLOUD) for one in faults)
        is_growing = is_late or ingests[-1].begins_us > 0 or bool(kinds & {"sites_move", "broker_forgets_sessions"})
        gateways = with_sent_rules(Random(f"sent/{seed}"), gateways, active_us, is_growing)
    gateways = with_damage(Random(f"damage/{seed}"), gateways)
    member = Random(f"member/{seed}")
    lying = member.choice(SITES) if gateways[0].group and member.random() < PART_LYING_MEMBER else ""
    if lying:
        gateways = tuple(replace(one, group=(*one.group, f"{lying}/{lying_member.NAME}")) for one in gateways)
    limits = Random(f"limits/{seed}")
    most_unlanded = small.choice((0, 0, 0, 5))
    snapshot_every = small.choice((0, 2, 5))
    ends = any(
        fault.kind == "end" for fault in faults
    )  # a reader's thread is given a second then, whatever it waits for
    undated_us, most_undated = Random(f"undated/{seed}").choice(UNDATED)
    return Schedule(
        seed, gateways, sightings, faults, tuple(range(len(faults))), active_us, rules, trigger_s, shards, ingests, liar,
        most_unlanded, snapshot_every, Random(f"batch/{seed}").choice((0, 0, 0, 3)),
        limits.choice((0, 0, 0, 1500)), 0 if ends else limits.choice((0, 0, 0, 20)),
        Random(f"few/{seed}").choice((0, 0, 0, 2)), lying, Random(f"interrupts/{seed}").choice((0, 0, 0, 0.1, 0.5)),
        undated_us=undated_us, most_undated=most_undated, frontier_us=1000 * FINE_MS if is_fine else 0, clock_s=clock_s,
    )  # fmt: skip


def _lagging(
    chance: Random,
    gateways: Sequence[GatewayPlan],
    sightings: tuple[Sighting, ...],
    rules: Iterable[RulePlan],
    active_us: int,
) -> tuple[tuple[RulePlan, ...], Fault, tuple[Sighting, ...]]:
    """Rules of which most wait for a gateway that cannot be reached for long; and goods, some of which go the other way.

    Pairs reach far, so that what was forgotten meanwhile matters to them.
    """
    delay_ms = chance.choice((PATIENT_MS, PATIENT_MS, HASTY_MS))
    plans = (replace(one, distance_ms=2000) if one.name == PAIRS else one for one in rules)
    away = chance.choice([one for one in gateways if _has_one_side(one)] or gateways)
    at_us, length_us = chance.randint(SECOND_US, active_us // 2), chance.randint(6, 9) * SECOND_US
    fault = Fault("unreachable", at_us, length_us, f"{away.site}/{away.name}")
    if chance.random() < 0.5:
        sightings = _the_other_way(gateways, sightings)
    return tuple(replace(one, delay_ms=delay_ms) for one in plans), fault, sightings


def _has_one_side(gateway: GatewayPlan) -> bool:
    """True if of the streams of pairs it has one."""
    return len({f"{side}/tags" for side in SIDES} & {stream for _, stream in gateway.readers}) == 1


def _the_other_way(gateways: Iterable[GatewayPlan], sightings: Iterable[Sighting]) -> tuple[Sighting, ...]:
    """Goods that come in at the door and leave by the dock, where a reader stands for it."""
    a, b = SIDES
    readers = {reader for one in gateways for reader, _ in one.readers}
    pairs = [(one, one.replace(a, b)) for one in readers if one.startswith(a) and one.replace(a, b) in readers]
    to = dict([*pairs, *((second, first) for first, second in pairs)])
    return tuple(sorted(replace(one, reader=to.get(one.reader, one.reader)) for one in sightings))


def _rules(chance: Random, gateways: Sequence[GatewayPlan]) -> tuple[RulePlan, ...]:
    delay_ms = chance.choice((200, 1_000, PATIENT_MS))
    pairs = RulePlan(PAIRS, chance.choice((300, 1000, 2000)), chance.choice((10, 50, 80, 100)), delay_ms)
    matches = RulePlan(MATCHES, chance.choice((1000, 60_000)), 100, delay_ms)
    if gateways[0].group:
        together = RulePlan(TOGETHER, 0, 100, delay_ms, tuple(one.name for one in gateways))
        return chance.choice(((together,), (together,), (together, pairs)))
    return chance.choice(((pairs,), (pairs,), (matches,), (matches,), (pairs, matches)))


def _owners(gateways: Iterable[GatewayPlan]) -> dict[str, list[Owner]]:
    """The gateways that have each stream, by its name in rules."""
    found: dict[str, list[Owner]] = {}
    for one in gateways:
        for stream in {stream.partition("/")[0]: None for _, stream in one.readers}:
            found.setdefault(stream, []).append(Owner(one.site, one.name))
    return found


def _gateways(chance: Random, active_us: int) -> tuple[GatewayPlan, ...]:
    count = chance.choice((1, 2, 2, 3))
    owner = {reader: chance.randrange(count) for reader in READERS}
    plans = []
    for number in range(count):
        readers = tuple((reader, stream_of(reader)) for reader in READERS if owner[reader] == number)
        if readers:
            plans.append(
                GatewayPlan(
                    chance.choice(SITES), f"gw-{number + 1}", readers, _clock(chance, active_us), chance.choice((200, 400)),
                    chance.choice((50, 100, 200)), chance.choice((500, 1000)), chance.choice((1, 2, 4)),
                    chance.choice((0.0, 0.0, 0.02, 0.3)), chance.choice((0.0, 0.02, 0.1)),
                )
            )  # fmt: skip
    return tuple(plans)


def _begun(chance: Random, ingests: tuple[IngestPlan, ...]) -> tuple[IngestPlan, ...]:
    """The ingests; of two, the second may join later."""
    late_us = chance.choice((0, 0, 1_500_000))
    return (ingests[0], *(replace(one, begins_us=late_us) for one in ingests[1:]))


def _grouped(gateways: tuple[GatewayPlan, ...], wanted: bool) -> tuple[GatewayPlan, ...]:
    """The gateways as a group, each with one more reader, on which its badge lies."""
    if not wanted or len(gateways) < 2:
        return gateways
    members = tuple(f"{one.site}/{one.name}" for one in gateways)
    return tuple(
        replace(one, group=members, readers=(*one.readers, (badge_of(one.name), stream_of(badge_of(one.name)))))
        for one in gateways
    )


def _with_badges(
    chance: Random, gateways: Sequence[GatewayPlan], sightings: Sequence[Sighting], active_us: int
) -> tuple[Sighting, ...]:
    """Badges that lie on their readers now and then, and fewer goods."""
    found = [one for one in sightings if int(one.key[:2], 16) % 2]
    end_us = active_us + SECOND_US
    for gateway in gateways:
        at_us, number = chance.randint(SECOND_US // 2, 2 * SECOND_US), 0
        while at_us < end_us:
            until_us = min(end_us, at_us + chance.choice((1, 300_000, 1_000_000)))
            for true_us in range(at_us, until_us, SPACING_US):
                found.append(Sighting(true_us, badge_of(gateway.name), number, badge_key(gateway.name)))
                number += 1
            at_us = until_us + chance.choice((LEAVE_MS * 1000, 500_000, 1_500_000)) + chance.randint(1, 100_000)
    return tuple(sorted(found))


def _stays(gateways: Iterable[GatewayPlan], sightings: Sequence[Sighting]) -> list[tuple[str, int]]:
    """Moments from which on the badge of a gateway of a group lies on its reader for STAY_US, each with its gateway."""
    found = []
    for one in gateways:
        times = [x.true_us for x in sightings if x.key == badge_key(one.name)] if one.group else []
        seen = set(times)
        found += [
            (f"{one.site}/{one.name}", at_us)
            for at_us in times
            if all(at_us + later_us in seen for later_us in range(0, STAY_US, SPACING_US))
        ]
    return found


def _arrivals(gateways: Iterable[GatewayPlan], sightings: Sequence[Sighting]) -> list[tuple[str, int]]:
    """Moments at which the badge of a gateway of a group is read after a pause, each with its gateway."""
    found = []
    for one in gateways:
        times = [x.true_us for x in sightings if x.key == badge_key(one.name)] if one.group else []
        found += [
            (f"{one.site}/{one.name}", at_us)
            for before_us, at_us in pairwise(times)
            if at_us - before_us > LEAVE_MS * 1000
        ]
    return found


def _clock(chance: Random, active_us: int) -> ClockPlan:
    bound_us = chance.choice((1_000, 20_000, 100_000, 250_000))
    begin_us = chance.choice((0, 0, 0, chance.randint(0, active_us)))
    known = [(begin_us or -10 * SECOND_US, 1 << 60, bound_us)]
    if chance.random() < 0.3:  # UTC is lost for a while, and comes back with another bound
        lost_us = chance.randint(begin_us, active_us)
        again_us = chance.randint(lost_us, active_us)
        known = [(known[0][0], lost_us, bound_us), (again_us, 1 << 60, bound_us * chance.randint(1, 3))]
    errors = [(-(1 << 60), chance.randint(-1000, 1000))]
    for at_us in sorted(chance.randint(0, active_us) for _ in range(chance.choice((0, 1, 3)))):
        errors.append((at_us, chance.randint(-1000, 1000)))
    slews = []
    if chance.random() < 0.3:
        begin = chance.randint(0, active_us)
        slews.append((begin, begin + chance.randint(1, 3) * SECOND_US, chance.choice((-500, 500, -80_000, 80_000))))
    return ClockPlan(chance.randint(-DRIFT_PPM, DRIFT_PPM), tuple(known), tuple(errors), tuple(slews))


def _sightings(chance: Random, active_us: int) -> tuple[Sighting, ...]:
    times: dict[str, list[tuple[int, str]]] = {reader: [] for reader in READERS}
    for number in range(chance.randint(60, 100)):
        key = f"{number:02X}{chance.getrandbits(32):08X}"
        at_us = chance.randint(SECOND_US // 2, active_us)
        for place in chance.choice(ROUTES):
            reader = chance.choice([one for one in READERS if one.partition("-")[0] == place])
            times[reader].append((at_us, key))
            at_us += chance.choice((50_000, 500_000, 2_000_000)) * chance.randint(1, 4) // 4
    sightings = []
    for reader, some in times.items():
        free_us = 0
        for number, (at_us, key) in enumerate(sorted(some)):
            true_us = max(at_us, free_us)
            free_us = true_us + SPACING_US
            sightings.append(Sighting(true_us, reader, number, key))
    return tuple(sorted(one for one in sightings if one.true_us < active_us + SECOND_US))
