"""Runs one schedule: the whole system in this process, on virtual time."""

import asyncio
import json
import logging
import shutil
import tempfile
from collections.abc import Callable
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from whenabouts_cloud.landing.layout import PART
from whenabouts_cloud.rules.model import CepRule, LatwinRule, Rule
from whenabouts_protocol.topics import topic
from whenabouts_sim.chaos.checks.gateways.births import broken_births
from whenabouts_sim.chaos.checks.gateways.gateways import broken_gateways, lives_of, reported_by
from whenabouts_sim.chaos.checks.landed import Landed, LandedFrontier, latest, newest_numbers, read_landing
from whenabouts_sim.chaos.checks.landing.damage import broken_damage, broken_results_damage
from whenabouts_sim.chaos.checks.landing.dead_letters import broken_dead_letters
from whenabouts_sim.chaos.checks.landing.places import broken_places, passed_over
from whenabouts_sim.chaos.checks.landing.repairs import broken_repairs
from whenabouts_sim.chaos.checks.lateness import (
    broken_job_frontiers,
    broken_lateness,
    effective_at,
    ends_of_batches,
    needs_states,
    steps_of,
)
from whenabouts_sim.chaos.checks.laws import Broken, broken_laws, future_frontiers, gateways_with_rot
from whenabouts_sim.chaos.checks.limits import left_at_the_end, left_in_agent, left_in_ingest, over_limits
from whenabouts_sim.chaos.checks.promises import broken_promises
from whenabouts_sim.chaos.checks.results import read_told
from whenabouts_sim.chaos.checks.rules.definition import broken_results
from whenabouts_sim.chaos.checks.rules.handed import broken_handed
from whenabouts_sim.chaos.checks.rules.kept import broken_kept, kept_of
from whenabouts_sim.chaos.checks.rules.possibly import broken_possibilities
from whenabouts_sim.chaos.checks.rules.result_rows import broken_rows
from whenabouts_sim.chaos.checks.rules.waits import broken_waits
from whenabouts_sim.chaos.checks.together import broken_verdicts, presences
from whenabouts_sim.chaos.disturbances import Disturbances
from whenabouts_sim.chaos.limits_in_place import limited
from whenabouts_sim.chaos.machine.clock import BEGIN_NS, VirtualTime, taken_over
from whenabouts_sim.chaos.machine.disk import Disks
from whenabouts_sim.chaos.machine.logs import logged
from whenabouts_sim.chaos.machine.loop import VirtualLoop
from whenabouts_sim.chaos.machine.process import Machine, current
from whenabouts_sim.chaos.machine.running import Killed
from whenabouts_sim.chaos.network import lying_gateway as liar
from whenabouts_sim.chaos.network.broker_model import Broker, Message
from whenabouts_sim.chaos.network.lying_member import LyingMember
from whenabouts_sim.chaos.network.next_version import upgraded
from whenabouts_sim.chaos.network.overheard import Overheard
from whenabouts_sim.chaos.parts.gateway_part import Gateway, GatewayPlan
from whenabouts_sim.chaos.parts.ingest_part import Ingest
from whenabouts_sim.chaos.parts.job_part import Job
from whenabouts_sim.chaos.parts.job_rules import GROUP, rule, rules_message
from whenabouts_sim.chaos.parts.landing_files import Ends, FileId
from whenabouts_sim.chaos.parts.part import Part
from whenabouts_sim.chaos.parts.rule_form import Sending
from whenabouts_sim.chaos.schedule.fault import CLOUD, FORGOTTEN, JOBS
from whenabouts_sim.chaos.schedule.schedule import Schedule
from whenabouts_sim.readers.core import ReaderCore
from whenabouts_sim.readers.line import LineSensor
from whenabouts_sim.readers.rdm6300 import Rdm6300
from whenabouts_sim.world.clocks import EPOCH_US

CALM_S = 60.0  # virtual time after the last fault in which everything must have landed
LOOK_S = 0.5
LIMITS_S = 0.1
CONFIRMED = 3  # looks until an ingest has confirmed what it got
SHARED = Path("/dev/shm")  # files in memory, where the system has them


@dataclass
class Outcome:
    """broken: the laws that do not hold. events: what happened, as (us since the begin, who, what)."""

    schedule: Schedule
    broken: list[Broken] = field(default_factory=list)
    events: list[tuple[int, str, str]] = field(default_factory=list)
    landed: int = 0
    told: int = 0
    calm_us: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "seed": self.schedule.seed,
            "faults": [f"{fault.at_us / 1e6:.3f} s: {fault}" for fault in self.schedule.faults],
            "landed": self.landed,
            "told": self.told,
            "broken": [one._asdict() for one in self.broken],
            "events": self.events,
        }


def run(schedule: Schedule, folder: Path | None = None) -> Outcome:
    """Run a schedule. folder: where its disks are kept afterwards; None: nowhere."""
    place = Path(tempfile.mkdtemp(prefix="whenabouts-chaos-", dir=SHARED if SHARED.is_dir() else None))
    try:
        return copy_context().run(_Run(schedule, place).run)
    finally:
        if folder is not None:
            shutil.copytree(place, folder, dirs_exist_ok=True)
        shutil.rmtree(place, ignore_errors=True)


class _Run:
    def __init__(self, schedule: Schedule, folder: Path) -> None:
        self.schedule, self.outcome = schedule, Outcome(schedule)
        self._loop = VirtualLoop(BEGIN_NS)
        self._clock = VirtualTime(self._loop)
        self._disks = Disks(folder, lambda: self._now_us)
        self._broker = Broker(self._loop, Random(f"broker/{schedule.seed}"))
        self._overheard = overheard = Overheard(lambda: self._clock.true_us)
        self._broker.witness, self._broker.arrived = overheard.published, overheard.arrived
        self._broker.linked = overheard.linked
        self._gateways: dict[str, Gateway] = {}
        self._ingests: dict[str, Ingest] = {}
        self._unconfirmed: list[set[tuple[str, int]]] = []  # at each look at the end

    def run(self) -> Outcome:
        """Run it."""
        seed = f"chance/{self.schedule.seed}"
        with logged(self._log), taken_over(self._clock, seed), self._disks.in_use(), limited(self.schedule):
            self._loop.set_exception_handler(self._unhandled)
            asyncio.set_event_loop(self._loop)
            try:
                self._loop.run_until_complete(self._all())
            finally:
                self._clear()
                asyncio.set_event_loop(None)
        return self.outcome

    async def _all(self) -> None:
        self._cloud = Machine(CLOUD, self._disks.add(CLOUD), self._loop.now_ns)
        folder, schedule = self._cloud.disk.root / "landing", self.schedule
        if schedule.has_owners:
            self._write_gateways_file()
        for ingest in schedule.ingests:
            place = folder / f"{PART}{ingest.part}" if ingest.part else folder
            self._ingests[ingest.name] = Ingest(
                ingest.name, place, self._cloud, self._loop, self._broker, self._tell, ingest.sites,
                self._gateways_file if schedule.has_owners else None,
            )  # fmt: skip
        for ingest in schedule.ingests:
            self._at(ingest.begins_us, self._ingests[ingest.name].start)
        rules = [
            rule(one.name, one.distance_ms, one.percent, one.delay_ms, one.gateways, one.form) for one in schedule.rules
        ]
        jobs = Machine(JOBS, self._disks.add(JOBS), self._loop.now_ns)
        self._meanwhile = Random(f"meanwhile/{schedule.seed}")
        self._job = Job(
            rules, folder, jobs, self._loop, schedule.trigger_s, schedule.shards, self._tell, self._ingests_flush,
            partial(self._tell, law="damage"),
        )  # fmt: skip
        self._job.start()
        for plan in self.schedule.gateways:
            disk = self._disks.add(f"{plan.site}-{plan.name}")
            machine = Machine(
                plan.name, disk, self._loop.now_ns, usual_disk_s=plan.disk_s, usual_threads_s=plan.threads_s
            )
            cores = dict[str, ReaderCore]()
            for name, _ in plan.readers:
                core = (
                    LineSensor(name, schedule.seed)
                    if plan.is_sensor(name)
                    else Rdm6300(name, schedule.seed, plan.damage)
                )
                cores[name] = core
                core.power_on(self._clock.true_us)
                mine = (one for one in schedule.sightings if one.reader == name)
                core.load((replace(one, true_us=EPOCH_US + one.true_us) for one in mine), self._clock.true_us)
            gateway = Gateway(plan, machine, cores, self._clock, self._loop, self._broker, self._tell, self._ended)
            self._gateways[gateway.name] = gateway
            for sending in plan.sent:
                self._at(sending.at_us, partial(self._send_rules, plan, sending))
            gateway.start()
        chance = Random(f"run/{schedule.seed}")
        self._disturbances = disturbances = Disturbances(
            self._parts, self._broker, self._loop, chance, self._note, self._at, self._is_old
        )
        self._job.rotten = disturbances.rotten
        for fault in schedule.faults:
            self._at(fault.at_us, partial(disturbances.begin, fault))
        if schedule.liar:
            self._start_liar(schedule.liar)
        if schedule.lying_member:
            self._start_lying_member(schedule.lying_member)
        self._watch_limits()
        await asyncio.sleep(self.schedule.calm_us / 1e6)
        self._finish_roll_out()
        await self._calm()
        self.outcome.calm_us = self._now_us
        try:
            self._judge(folder)
        except (OSError, ValueError, LookupError) as error:
            self._tell(f"what was written cannot be read: {error!r}", "readable")

    def _judge(self, folder: Path) -> None:
        for line in (line for one in self._gateways.values() for line in one.lines.values()):
            line.end()
        rotten, vanished = self._disturbances.rotten, self._disturbances.vanished
        # A micro-batch that is repeated may find less than it did: a changed file, or one that a power cut took.
        repeats = any(fault.target == JOBS for fault in self.schedule.faults)
        gone = {path: data for path, data in vanished.items() if repeats and path.suffix == ".parquet"}
        changed = [path for path in (*rotten, *gone) if path.suffix == ".parquet"]
        parts = {one.name: one.folder for one in self._ingests.values()}
        upkeep = self._disturbances.upkeep
        there = {path: before for path, before in rotten.items() if path.exists() or path not in upkeep.deleted}
        self.outcome.broken += [Broken("damage", text) for text in broken_damage(parts, there)]
        upkeep.bring_back()
        self.outcome.broken += [Broken("repairs", text) for text in broken_repairs(parts.values(), rotten)]
        self.outcome.broken += [Broken("places", text) for text in broken_places(parts.values(), rotten)]
        if lost := upkeep.merged_away:
            self._tell(f"files were merged, and of {lost[:3]} nothing is left that can be read", "damage")
        if not any(
            fault.kind == "sites_move" for fault in self.schedule.faults
        ):  # then it may be left to another ingest
            letters = broken_dead_letters(parts.values(), self._broker.confirmed)
            self.outcome.broken += [Broken("dead letters", text) for text in letters]
        rotten_results = self._disturbances.rotten_results
        self.outcome.broken += [Broken("damage", text) for text in broken_results_damage(rotten_results)]
        for path, before in rotten_results.items():
            path.write_bytes(before)  # as from a copy: what was told is judged, too
        all_landed = read_landing(folder, self._disks.appeared_us, rotten, gone.values())
        self.outcome.broken += [Broken("frontiers", text) for text in future_frontiers(all_landed)]
        landed = self._of_honest(all_landed)
        self.outcome.landed = len(landed.readings)
        lives, reported = lives_of(self._gateways, self.schedule), reported_by(self._gateways, self.schedule.sightings)
        self.outcome.broken += broken_laws(self.schedule, landed, self._overheard.acked, lives, reported)
        # A new spool knows nothing of what the damaged one had sent.
        rotten_spools = gateways_with_rot(self.schedule)
        said = [x for x in self._overheard.heartbeats if (x.beat.site, x.beat.gateway) not in rotten_spools]
        self.outcome.broken += [Broken("promises", text) for text in broken_promises(landed, said)]
        self.outcome.broken += broken_gateways(
            self._gateways, self.schedule, landed, self._overheard, rotten_spools, EPOCH_US + self.outcome.calm_us
        )
        births = broken_births(self._gateways, self._broker.retained, self._overheard, self._clock.true_us)
        self.outcome.broken += [Broken("births", text) for text in births]
        for one in self._job.rules:
            told = read_told(self._job.out / one.name, one)
            unread = passed_over(folder, self._job.read[one.name], rotten)
            self.outcome.broken += [Broken("job", f"{one.name}: {text}") for text in unread]
            all_ends = ends_of_batches(self._job.out / one.name)
            self.outcome.told += len(told.results)
            ends = steps_of(one, landed, all_ends)
            complete_us = _complete_us(landed, effective_at(ends[:-1] if isinstance(one, CepRule) else ends))
            # Each shard knows the gateways of its own readings only.
            is_whole = self.schedule.shards == 1 and not rotten and not vanished
            if is_whole:
                self.outcome.broken += [Broken("lateness", x) for x in broken_lateness(one, told, landed, ends)]
            if not rotten and not vanished:
                self.outcome.broken += [
                    Broken("job", x) for x in broken_handed(one, self._job.counts[one.name], landed)
                ]
            kept = [kept_of(*said) for said in self._job.counts[one.name]]
            if is_whole:
                after = [(x.batch, x.frontiers_us) for x in kept]
                self.outcome.broken += [Broken("job", x) for x in broken_job_frontiers(one, after, landed, all_ends)]
                self.outcome.broken += [Broken("waits", x) for x in broken_waits(one, told, after, landed)]
            if not vanished and not (
                needs_states(one) and (rotten or landed.again)
            ):  # copies of readings wait for states
                self.outcome.broken += [Broken("kept", x) for x in broken_kept(one, kept, landed, all_ends)]
            whole = landed.without(landed.damaged)
            # What it had told is told again when its readings come again, or of the copies that a repair has made.
            told = told.among(whole.readings) if rotten or gone else told
            self.outcome.broken += [Broken("columns", x) for x in broken_rows(one, told, whole, bool(changed))]
            if not self._is_unknown(one, rotten or gone):
                self.outcome.broken += [Broken("results", x) for x in broken_results(one, told, whole, complete_us)]
            # Who is lied to may know too much of others: then verdicts are those of the clocks, not of the world.
            if isinstance(one, LatwinRule) and not rotten and not gone and not self.schedule.lying_member:
                gateways = [plan.name for plan in self.schedule.gateways]
                truth = presences(gateways, self.schedule.sightings, landed)
                if one.modality == "possibly":
                    contradicts = broken_possibilities(one, gateways, told, landed, complete_us)
                else:
                    contradicts = broken_verdicts(one, gateways, told, landed, truth, complete_us)
                self.outcome.broken += [Broken("together", x) for x in contradicts]

    def _is_unknown(self, rule: Rule, rotten: object) -> bool:
        """True if results depend on more than their own readings and what landed does not tell all of it: on states, on
        counted matches, or on events of other keys, that may be in a damaged file, or on clocks that a liar has set ahead.
        """
        needs_more = isinstance(rule, CepRule) and (rule.count is not None or not rule.pattern.per_key)
        return bool(rotten and needs_more) or (needs_states(rule) and bool(rotten or self.schedule.lying_member))

    def _ingests_flush(self) -> None:
        if self._meanwhile.random() < self.schedule.interrupts:
            for ingest in self._ingests.values():
                ingest.flush_meanwhile()

    def _watch_limits(self) -> None:
        """Look at the queues of all agents now and again; each limit that is passed is told once."""
        for name, gateway in self._gateways.items():
            if gateway.agent is not None:
                for text in over_limits(name, gateway.agent):
                    if not any(one.law == "limits" for one in self.outcome.broken):
                        self._tell(text, "limits")
        self._loop.call_later(LIMITS_S, self._watch_limits, context=self._broker.context)

    def _send_rules(self, plan: GatewayPlan, sending: Sending) -> None:
        """An operator sends a gateway its rules, in both versions of the wire while some are upgraded."""
        payload = b"" if sending.nears is None else rules_message(plan.site, plan.name, sending.nears)
        message = Message(topic(plan.site, plan.name, "rules"), payload, 1, True)
        self._note(f"{plan.site}/{plan.name} is sent the rules {[one.name for one in sending.nears or ()]}")
        for one in (message, upgraded(message)):
            self._broker.spread(one)

    # A liar among the gateways, and the next version of the wire.

    @property
    def _gateways_file(self) -> Path:
        return self._disks.root / "gateways.json"

    def _write_gateways_file(self) -> None:
        of: dict[str, dict[str, list[str] | None]] = {
            f"{one.site}/{one.name}": {"streams": one.streams} for one in self.schedule.gateways
        }
        for fault in self.schedule.faults:
            if fault.kind == FORGOTTEN and self._now_us < fault.end_us:
                [plan] = [one for one in self.schedule.gateways if f"{one.site}/{one.name}" == fault.target]
                missed = plan.own_streams[fault.count % len(plan.own_streams)]
                of[fault.target] = {"streams": [one for one in plan.own_streams if one != missed]}
                self._at(fault.end_us, self._correct_gateways_file)
        if self.schedule.liar:
            of[f"{self.schedule.liar}/{liar.NAME}"] = {"streams": [liar.STREAM]}
        self._gateways_file.write_text(json.dumps({"gateways": of}))

    def _correct_gateways_file(self) -> None:
        self._write_gateways_file()
        for ingest in self._ingests.values():
            ingest.look_at_owners()

    def _start_lying_member(self, site: str) -> None:
        peers = {one.name: one.site for one in self.schedule.gateways}
        chance = Random(f"lying member/{self.schedule.seed}")
        one = LyingMember(site, GROUP, peers, self._broker, chance, lambda: self._clock.true_us)
        self._loop.create_task(one.lie(EPOCH_US + self.schedule.calm_us), context=self._broker.context)

    def _start_liar(self, site: str) -> None:
        victims = [
            liar.Victim(one.site, one.name, [stream for _, stream in one.readers]) for one in self.schedule.gateways
        ]
        chance = Random(f"liar/{self.schedule.seed}")
        one = liar.Liar(site, victims, self._broker, chance, lambda: self._clock.true_us)
        self._loop.create_task(one.lie(EPOCH_US + self.schedule.calm_us), context=self._broker.context)

    def _of_honest(self, landed: Landed) -> Landed:
        """What is not of the liar, of whom nothing may have landed but what is in its own stream."""
        for one in landed.readings:
            if one.gateway == liar.NAME and one.stream != liar.STREAM:
                self._tell(f"{one.identity} of the liar landed in {one.stream}", "owners")
        return replace(
            landed,
            readings=[one for one in landed.readings if one.gateway != liar.NAME],
            frontiers=[one for one in landed.frontiers if one.gateway != liar.NAME],
        )

    def _finish_roll_out(self) -> None:
        """If somebody was upgraded, the ingests are at the latest now: before, nobody takes what the next version sends."""
        if any(one.is_next for one in self._parts.values()):
            for one in self._ingests.values():
                if not one.is_next:
                    one.is_next = True
                    one.end()

    async def _calm(self) -> None:
        end_us = EPOCH_US + self.schedule.last_us
        settled, read = list[FileId](), list[Ends]()
        for _ in range(int(CALM_S / LOOK_S)):
            self._start_all()
            sessions = {one.session for one in self._ingests.values()} & self._broker.sessions.keys()
            self._unconfirmed.append({(name, mid) for name in sessions for mid in self._broker.sessions[name].waiting})
            if not settled and self._settled(end_us):
                numbers = newest_numbers(self._cloud.disk.root / "landing")
                settled = [FileId(0, number, part) for part, number in numbers.items() if number]
            if settled and all(map(self._job.has_read, settled)):
                if len(self.schedule.ingests) == 1 or (read and self._job.ends != read):
                    return
                read = read or self._job.ends  # watermarks of several parts count one micro-batch later
            await asyncio.sleep(LOOK_S)
        if still := self._still_unconfirmed():
            self._tell(f"{CALM_S:g} s after the last fault ingests have not confirmed {sorted(still)[:3]}", "liveness")
        for name, gateway in self._gateways.items():
            left = ", ".join(left_in_agent(gateway.agent)) if gateway.agent else "no agent"
            known = self._frontiers()
            self._tell(
                f"{CALM_S:g} s after the last fault not all has landed: {name} has {left or 'nothing'}, its frontier is "
                f"{known.get((gateway.plan.site, gateway.plan.name))}, events end at {end_us}",
                "liveness",
            )

    def _settled(self, end_us: int) -> bool:
        if any(one.bridge is None or any(left_in_ingest(one.bridge)) for one in self._ingests.values()):
            return False
        if self._still_unconfirmed():
            return False
        known = self._frontiers()
        return all(
            one.agent is not None
            and not any(left_in_agent(one.agent))
            and known.get((one.plan.site, one.plan.name), 0) > end_us
            for one in self._gateways.values()
        )

    def _still_unconfirmed(self) -> set[tuple[str, int]]:
        """Messages to ingests that the broker keeps as unconfirmed, and kept already some looks ago: session and number."""
        return set.intersection(*self._unconfirmed[-1 - CONFIRMED :]) if self._unconfirmed else set()

    def _frontiers(self) -> dict[tuple[str, str], int]:
        """How far the readings of each gateway are complete, by the ingest of its site."""
        known = {}
        for one in self._ingests.values():
            for place, frontier_us in one.bridge.frontiers().items() if one.bridge else ():
                if not one.sites or place[0] in one.sites:
                    known[place] = frontier_us
        return known

    def _start_all(self) -> None:
        for part in self._parts.values():
            part.start()

    @property
    def _parts(self) -> dict[str, Part]:
        """What runs on each machine, by the names that faults use."""
        return {**self._ingests, JOBS: self._job, **self._gateways}

    # Notes.

    @property
    def _now_us(self) -> int:
        return self._clock.true_us - EPOCH_US

    def _is_old(self, path: Path) -> bool:
        return self._disks.appeared_us(path) < self._now_us

    def _at(self, at_us: int, happens: Callable[[], object]) -> None:
        self._loop.call_later(max(0, at_us - self._now_us) / 1e6, happens, context=self._broker.context)

    def _note(self, text: str, who: str = "") -> None:
        self.outcome.events.append((self._now_us, who, text.replace(f"{self._disks.root}/", "")))

    def _log(self, record: logging.LogRecord) -> None:
        process = current()
        fields = " ".join(f"{name}={value}" for name, value in getattr(record, "fields", {}).items())
        self._note(
            f"{getattr(record, 'event', record.name)} {record.getMessage()} {fields}", process.name if process else ""
        )

    def _ended(self, gateway: Gateway) -> None:
        """An agent has ended in order; with a disk that is full or slow it may have given up."""
        machine = gateway.machine
        if gateway.agent is not None and not machine.disk.full and machine.disk_s == machine.usual_disk_s:
            for text in left_at_the_end(gateway.agent):
                self._tell(f"{gateway.name} ended in order and left {text}")

    def _tell(self, text: str, law: str = "ends") -> None:
        self._note(text)
        self.outcome.broken.append(Broken(law, text))

    def _unhandled(self, _loop: object, context: dict[str, object]) -> None:
        error = context.get("exception")
        if isinstance(error, Killed):
            return
        self._tell(f"unhandled: {context.get('message')}: {error!r}", "errors")

    def _clear(self) -> None:
        for part in self._parts.values():
            part.end()
            if part.process is not None:
                part.process.bury()
        self._loop.end_tasks()
        self._loop.close()


def _complete_us(landed: Landed, effective: Ends) -> int:
    """The time before which everything has landed, as far as these watermarks say; 0 if they say nothing of a gateway."""
    said = {(one.site, one.gateway): one.frontier_us for one in latest(_within(landed, effective))}
    return min((said.get((one.site, one.gateway), 0) for one in landed.readings), default=0)


def _within(landed: Landed, effective: Ends) -> list[LandedFrontier]:
    return [one for one in landed.frontiers if one.file.within(effective)]
