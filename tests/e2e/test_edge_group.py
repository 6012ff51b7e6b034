"""Three real agents as one group over a real broker: dense clocks in the landing, views, reboots, lies, lost connections."""

import json
import time
from contextlib import ExitStack
from itertools import pairwise

import pytest
from click.testing import CliRunner

from e2e.test_agent_delivery import check_watermarks
from support.edge.agent import witness
from whenabouts_edge.cli import status
from whenabouts_protocol import Reading, decode_batch, decode_birth, decode_heartbeat, encode_batch, topic
from whenabouts_protocol.group_state import attrs_of, state_of, view_number
from whenabouts_sim.readers.pty_link import PtyLink
from whenabouts_sim.readers.rdm6300 import Rdm6300
from whenabouts_sim.stack.stack import Stack, reader_table
from whenabouts_sim.world.clocks import EPOCH_US, GatewayClock, SimClock
from whenabouts_sim.world.world import Sighting, SimReader

SITES = {"phone": "office", "rfid": "office", "wall": "lab"}
NAMES = sorted(SITES)
READERS = {name: SimReader(name, site, name, f"{name}/badges", "rdm6300") for name, site in SITES.items()}
CLOCKS = {
    name: GatewayClock(EPOCH_US, offset_us=offset, drift_ppm=20, base_bound_us=400_000)
    for name, offset in zip(NAMES, (-300_000, 0, 350_000), strict=True)
}
LEAVE_MS = 600
REPEAT_US = 100_000
GROUP = f"""
[group]
name = "meeting"
members = ["office/phone", "office/rfid", "lab/wall"]
[[state]]
name = "present"
stream = "{{name}}/badges"
leave_ms = {LEAVE_MS}
"""


class Office(Stack):
    """Broker, ingest, three agents with a badge reader each."""

    def __init__(self, folder):
        super().__init__(folder)
        self.clock = SimClock(EPOCH_US, time.monotonic_ns())
        self.links = {n: PtyLink(Rdm6300(n, 3), self.clock, folder / "ports" / n) for n in NAMES}
        self._numbers = dict.fromkeys(NAMES, 0)

    def configure(self, name):
        path = self.configure_agent(
            SITES[name], name, [reader_table(READERS[name], self.links[name].path)], CLOCKS[name], self.clock
        )
        path.write_text(path.read_text() + GROUP.format(name=name))

    def true_us(self):
        return self.clock.true_us(time.monotonic_ns())

    def badge(self, name, reads):
        """Put a badge in the field of a reader for so many reads; return the true moments of the reads."""
        start_us = self.true_us() + 150_000
        first = self._numbers[name]
        self._numbers[name] += reads
        seen = [Sighting(start_us + i * REPEAT_US, name, first + i, f"{first:010X}") for i in range(reads)]
        self.links[name].go(seen)
        return [s.true_us for s in seen]

    def group(self, name):
        return (self.status(name) or {}).get("group") or {}

    def boot(self, name):
        return self.status(name)["boot"]

    def wait_group(self, what, name, condition, timeout_s=20.0):
        self.wait(what, lambda: bool(condition(self.group(name))), timeout_s)
        return self.group(name)

    def wait_view(self, members):
        """Wait until these agents share one view of themselves; return its number."""

        def shared():
            groups = [self.group(name) for name in members]
            return all(g.get("members") == members for g in groups) and len({g["view"] for g in groups}) == 1

        self.wait(f"view of {members}", shared, 60)
        return self.group(members[0])["view"]

    def landed_states(self):
        """Every state in the landing, as (gateway, boot, LocalState, t_min, t_max), in the order of numbers, no repeats.

        The states of each boot end before its first missing number: the rest is still on its way.
        """
        rows = list(self._rows(self.landing, None))  # all columns
        states, following = [], {}
        for row in sorted(rows, key=lambda row: (row["gateway"], row["boot"], row["seq"])):
            place = row["gateway"], row["boot"]
            if row["seq"] != following.get(place, 0):
                continue
            following[place] = row["seq"] + 1
            if row["kind"] != "state":
                continue
            r = Reading(
                site=row["site"], gateway=row["gateway"], boot=row["boot"], seq=row["seq"], stream=row["stream"],
                kind="state", attrs=json.loads(row["attrs"] or "{}"), t_min=row["t_min"], t_max=row["t_max"],
                value=None if row["value"] is None else json.loads(row["value"]),
                clock_state=row["clock_state"], vclock=row["vclock"],
            )  # fmt: skip
            states.append((*place, state_of(r), r.t_min, r.t_max))
        return states


@pytest.fixture
def office(tmp_path):
    with ExitStack() as stack:
        made = stack.enter_context(Office(tmp_path))
        for link in made.links.values():
            stack.enter_context(link)
        made.broker.start()
        made.seen = stack.enter_context(witness(made.broker.port))
        ingest = made.start_ingest()
        made.wait("ingest connected", lambda: "connected" in ingest.tail(), 60)
        for name in NAMES:
            made.configure(name)
            made.start_agent(name)
        made.wait("agents ready", lambda: all(made.agent_ready(name) for name in NAMES), 60)
        yield made


def origin(leaf, payload, _retained):
    """The gateway of a batch or heartbeat; None for other messages."""
    if leaf == "obs":
        return decode_batch(payload)[0].gateway
    return decode_heartbeat(payload).gateway if leaf == "heartbeat" else None


def check_dense(states):
    """Per process and view: numbers from 0 without gaps, clocks that only grow."""
    views, last = {}, {}
    for gateway, boot, state, _, _ in states:
        key = state.view, gateway, boot
        if not state.is_heartbeat:
            assert state.number == views.get(key, -1) + 1
            views[key] = state.number
        else:
            assert state.number == views[key]
        assert all(a >= b for a, b in zip(state.clock, last.get(key, [0] * len(state.clock)), strict=True))
        last[key] = state.clock


def nothing_ahead(states):
    """True if every state that a clock refers to is among them: so it is when all has landed, since it was stored first."""
    there = {(state.view, state.process, state.number) for _, _, state, _, _ in states}
    return all((state.view, i, count) in there for _, _, state, _, _ in states for i, count in enumerate(state.clock))


def test_landed_states_of_three_agents_carry_dense_clocks_and_survive_a_reboot(office):
    """Chains of badges are chains in the clocks; a killed agent comes back as another process of a new view.

    phone   --[badge]----------------------x  [badge]
    rfid    -------------[badge]----------------------
    wall    ------------------------[badge]-----------
    """
    view = office.wait_view(NAMES)
    assert view == view_number([(name, office.boot(name)) for name in NAMES])
    moments = {}
    for name in NAMES:
        before = {n: office.group(n)["clock"] for n in NAMES}
        moments[name] = office.badge(name, 5)
        at = NAMES.index(name)
        for n in NAMES:  # wait until all have received that the badge came and went
            office.wait_group("heard", n, lambda g: g["clock"][at] >= before[n][at] + 2)  # noqa: B023
    office.wait("landed", lambda: {
        s.process for _, _, s, _, _ in office.landed_states()
        if s.view == view and s.number > 1 and s.values.get("present") is False
    } == {0, 1, 2}, 20)  # fmt: skip
    states = [entry for entry in office.landed_states() if entry[2].view == view]
    check_dense(office.landed_states())

    begun = {}  # (gateway, value) -> (state, t_min, t_max) of the badge's coming and going
    for gateway, _, state, t_min, t_max in states:
        if not state.is_heartbeat and state.number:
            assert state.values["present"] is state.values["value"]
            begun[gateway, state.values["present"]] = state, t_min, t_max
    for gateway, times in moments.items():
        reads = sorted(e.true_us for e in office.links[gateway].emitted if times[0] <= e.true_us <= times[-1])
        for value, true_us in ((True, reads[0]), (False, reads[-1] + LEAVE_MS * 1000)):
            _, t_min, t_max = begun[gateway, value]
            assert t_min <= true_us <= t_max
    for earlier, later in pairwise(NAMES):
        gone, came = begun[earlier, False][0], begun[later, True][0]
        assert came.clock[NAMES.index(earlier)] >= gone.number
    last = begun["wall", False][0].number
    office.wait("phone's clock heartbeat in the last state of the wall", lambda: any(
        gateway == "phone" and s.is_heartbeat and s.view == view and s.clock[2] == last
        for gateway, _, s, _, _ in office.landed_states()
    ), 20)  # fmt: skip

    shown = CliRunner().invoke(status, ["--config", str(office.folder / "config" / "wall.toml")])
    assert (shown.exit_code, shown.output.splitlines()[-3:-1]) == (0, [
        f"  group   meeting, view {view:012x}: phone, rfid, wall", "  state   2 of vector clock (2, 2, 2): present False",
    ])  # fmt: skip

    office.parts["phone"].kill()
    office.start_agent("phone")
    office.wait(
        "phone again", lambda: office.agent_ready("phone") and office.group("phone").get("members") == NAMES, 30
    )
    office.wait("another view", lambda: len({office.group(n)["view"] for n in NAMES}) == 1, 60)
    second = office.wait_view(NAMES)
    assert second != view
    office.badge("phone", 3)
    office.wait_group("heard in the new view", "wall", lambda g: g["view"] == second and g["clock"][0] >= 2)
    office.wait(
        "landed in the new view",
        lambda: {g for g, _, s, _, _ in office.landed_states() if s.view == second and s.number == 0} == set(NAMES), 20,
    )  # fmt: skip
    check_dense(office.landed_states())
    office.wait("all of which clocks speak has landed", lambda: nothing_ahead(office.landed_states()), 90)

    assert office.parts.pop("rfid").stop() == 0
    third = office.wait_view(["phone", "wall"])
    assert third not in (view, second)
    for name in ("phone", "wall"):
        assert office.parts[name].stop() == 0
        assert "Traceback" not in office.parts[name].tail(20_000)
    check_dense(office.landed_states())
    for name in NAMES:
        check_watermarks([m for m in office.seen.seen if origin(*m) == name])


def test_lies_noise_and_lost_connections_do_no_harm(office):
    """Refused messages are counted; after the broker was away the newest state is sent again; births name the view."""
    office.wait_view(NAMES)
    seen = office.seen
    births = lambda: {(b := decode_birth(p)).gateway: b for leaf, p, _ in list(seen.seen) if leaf == "birth"}  # noqa: E731
    seen.wait("births with the view", lambda: [b.view for b in births().values()] == [NAMES] * 3)
    assert {b.group for b in births().values()} == {"meeting"}
    assert all((f"{b.gateway}/state", "state") in [s[:2] for s in b.streams] for b in births().values())
    view = office.group("wall")["view"]

    def lie(clock, process=0, gateway="phone", boot=None, number=view):
        return encode_batch([Reading(
            site=SITES[gateway], gateway=gateway, boot=boot or office.boot(gateway), seq=1, stream="x", kind="state",
            attrs=attrs_of("meeting", number, process, {}), t_min=0, t_max=1, vclock=clock,
        )])  # fmt: skip

    noise = [b"\xff", b"", lie((1 << 50, 0, 0)), lie((5, 0, 0), process=1), lie((5, 0, 0), boot=77),
             lie((5, 0, 0), number=view ^ 1)]  # fmt: skip
    office.wait("all have published their states", lambda: nothing_ahead(office.landed_states()), 90)
    before = office.group("wall")["refused"]
    for payload in noise:
        seen.client.publish(topic("office", "phone", "state"), payload, qos=1).wait_for_publish(10)
    counted = lambda g: {reason: count - before[reason] for reason, count in g["refused"].items()}  # noqa: E731
    group = office.wait_group("counted", "wall", lambda g: sum(counted(g).values()) >= len(noise))
    assert counted(group) == {
        "malformed": 2, "impossible": 1, "foreign": 2, "other_view": 1, "old_boots": 0, "cut_off": 0, "messages": 0,
    }  # fmt: skip
    assert group["clock"][0] <= 2  # all of it was refused

    office.broker.kill()
    office.wait("away", lambda: not any(office.status(n)["broker"]["connected"] for n in NAMES), 60)
    number = office.group("rfid")["state"]
    office.badge("rfid", 3)
    office.wait_group("state while away", "rfid", lambda g: g["state"] >= number + 2)
    office.broker.start()
    office.wait_group("sent again", "wall", lambda g: g["clock"][1] >= number + 2, 60)
    assert office.group("wall")["view"] == view  # a lost connection does not change the view
    office.wait("landed", lambda: any(
        g == "rfid" and s.view == view and s.number == number + 2 for g, _, s, _, _ in office.landed_states()
    ), 30)  # fmt: skip
    states = [decode_batch(payload) for leaf, payload, _ in seen.seen if leaf == "state" and payload not in noise]
    assert all(len(readings) == 1 and not state_of(readings[0]).is_heartbeat for readings in states)
    check_dense(office.landed_states())
    office.wait("all of which clocks speak has landed", lambda: nothing_ahead(office.landed_states()), 90)
