"""Rules and the group's clock on a real board's agent, here and on the MicroPython VM, with a real broker and bridge."""

import json
from contextlib import ExitStack

import pytest

from e2e.test_agent_delivery import check_watermarks
from e2e.test_edge_group import LEAVE_MS, NAMES, SITES, Office, check_dense, nothing_ahead
from e2e.test_edge_rules import DERIVED, RULE, births, derived, distinct, expected, names
from support.board.site import TimeServer, board_config, start_board
from support.edge.agent import Bench, witness
from whenabouts_cloud.rules import parse_rules
from whenabouts_cloud.rules.placement import announced, compile_rules, place
from whenabouts_protocol import decode_batch, topic
from whenabouts_protocol.group_state import state_of
from whenabouts_protocol.messages.compiled_rule import encode_rules
from whenabouts_sim.readers.pty_link import PtyLink
from whenabouts_sim.readers.rdm6300 import Rdm6300
from whenabouts_sim.world.world import DOCK, GATE, Sighting

# The same program on this Python, where it can be looked at, shows nothing that the VM does not.
WHERE = ["board", pytest.param("here", marks=pytest.mark.deep)]


@pytest.mark.parametrize("where", WHERE)
def test_a_rule_runs_from_the_cloud_and_from_a_file_and_is_removed(where, tmp_path):
    """Derived readings are exactly the pairs of the definition among the published readings; watermarks cover them.

    rules    sent     noise     removed    |  from a file, after a new start
    badges     =====     =====     =====   |   =====
    """
    [rule] = parse_rules(RULE.replace(DOCK.stream, GATE.stream)).rules  # badges with badges, each pair in both orders
    with Bench(tmp_path) as bench, ExitStack() as stack:
        port = bench.folder / "ports" / "gate"
        gate = stack.enter_context(PtyLink(Rdm6300(GATE.name, 1), bench.sim_clock, port))
        ntp = stack.enter_context(TimeServer(bench.sim_clock))
        bench.broker.start()
        seen = stack.enter_context(witness(bench.broker.port))
        readers = [{"port": str(port), "kind": "rdm6300", "stream": GATE.stream}]
        board = start_board(bench, board_config(bench, ntp.port, readers, rules={}), where)
        seen.wait("a watermark", lambda: any(b.frontier_us for b in seen.heartbeats()))
        rules = compile_rules(place([rule], announced(births(seen))), "bench", "gw")
        sent = 0

        def say(payload):
            seen.client.publish(topic("bench", "gw", "rules"), payload, qos=1, retain=True).wait_for_publish(10)

        def pass_gate(count=6):
            nonlocal sent
            start_us = bench.true_us() + 300_000
            passing = [Sighting(start_us + i * 170_000, GATE.name, n := sent + i, f"{n:010X}") for i in range(count)]
            sent += count
            gate.go(passing)
            bench.wait("reported", lambda: len(gate.emitted) + gate.unseen >= sent, 60)
            reported = {e.key for e in gate.emitted if not e.damaged}
            seen.wait("published", lambda: seen.keys() >= reported)

        def wanted(boot):
            pairs = expected(rule, distinct(seen), boot, 0)
            return {pair: value for pair, value in pairs.items() if pair[0] != pair[1]}

        say(encode_rules("bench", "gw", rules))
        seen.wait("announced", lambda: DERIVED in names(seen))
        boot = births(seen)[-1].boot
        pass_gate()
        for noise in (b"\xff no rules", encode_rules("bench", "other", [])):
            say(noise)
        pass_gate()
        first = wanted(boot)
        assert len(first) > 10
        seen.wait("pairs", lambda: derived(distinct(seen), boot).keys() >= first.keys())
        assert derived(distinct(seen), boot) == first
        say(encode_rules("bench", "gw", []))
        seen.wait("removed", lambda: DERIVED not in names(seen))
        pass_gate()
        assert derived(distinct(seen), boot) == first
        board.stop() if where == "here" else board.kill()

        say(b"")
        path = bench.folder / "gw.rules"
        path.write_bytes(encode_rules("bench", "gw", rules))
        start_board(bench, board_config(bench, ntp.port, readers, rules={"file": str(path)}), where)
        seen.wait("announced again", lambda: births(seen)[-1].boot != boot and DERIVED in names(seen))
        boot = births(seen)[-1].boot
        seen.wait("a watermark", lambda: any(b.frontier_us and b.boot == boot for b in seen.heartbeats()))
        pass_gate()
        second = wanted(boot)
        assert len(second) > 5
        seen.wait("pairs", lambda: derived(distinct(seen), boot).keys() >= second.keys())
        assert derived(distinct(seen), boot) == second
        check_watermarks(seen.seen)


@pytest.mark.parametrize("where", WHERE)
def test_a_board_is_a_member_of_a_group_of_linux_agents(where, tmp_path):
    """Chains of badges are chains in the clocks of all three, in the landing; a killed board is another process.

    phone   Linux   --[badge]------------------------------------
    rfid    board   -------------[badge]-----------------x [badge]
    wall    Linux   ------------------------[badge]--------------
    """
    with Office(tmp_path) as office, ExitStack() as stack:
        for link in office.links.values():
            stack.enter_context(link)
        ntp = stack.enter_context(TimeServer(office.clock))
        office.broker.start()
        seen = stack.enter_context(witness(office.broker.port))
        ingest = office.start_ingest()
        office.wait("ingest connected", lambda: "connected" in ingest.tail(), 60)
        linux = ["phone", "wall"]
        for name in linux:
            office.configure(name)
            office.start_agent(name)
        group = {
            "name": "meeting", "members": [f"{SITES[name]}/{name}" for name in NAMES],
            "states": [{"name": "present", "stream": "rfid/badges", "leave_ms": LEAVE_MS}],
        }  # fmt: skip
        reader = {"port": str(office.links["rfid"].path), "kind": "rdm6300", "stream": "rfid/badges"}
        config = board_config(office, ntp.port, [reader], site="office", gateway="rfid", group=group)
        assert json.loads(config.read_text())["group"] == group
        board = start_board(office, config, where, "224k")

        def shared_view(before=None):
            views = [office.group(name) for name in linux]
            same = all(v.get("members") == NAMES for v in views) and len({v["view"] for v in views}) == 1
            return same and views[0]["view"] != before

        def landed(condition):
            return any(condition(gateway, state) for gateway, _, state, _, _ in office.landed_states())

        office.wait("one view", shared_view, 40)
        view = office.group("wall")["view"]
        office.wait(
            "the board is in it", lambda: landed(lambda g, s: (g, s.view, s.number) == ("rfid", view, 0)), 30
        )  # fmt: skip
        moments = {}
        for at, name in enumerate(NAMES):
            before = {n: office.group(n)["clock"] for n in linux}
            moments[name] = office.badge(name, 5)
            for n in linux:  # until all have received that the badge came and went
                office.wait_group("heard", n, lambda g: g["clock"][at] >= before[n][at] + 2)  # noqa: B023
            office.wait("the board has heard", lambda: landed(
                lambda g, s: g == "rfid" and s.view == view and s.clock[at] >= 2  # noqa: B023
            ), 90)  # fmt: skip
        office.wait("all has landed", lambda: nothing_ahead(office.landed_states()), 90)
        states = [entry for entry in office.landed_states() if entry[2].view == view]
        check_dense(office.landed_states())
        begun = {
            (gateway, state.values["present"]): (state, t_min, t_max)
            for gateway, _, state, t_min, t_max in states
            if not state.is_heartbeat and state.number
        }
        reads = sorted(
            e.true_us
            for e in office.links["rfid"].emitted
            if not e.damaged and moments["rfid"][0] <= e.true_us <= moments["rfid"][-1]
        )
        for value, true_us in ((True, reads[0]), (False, reads[-1] + LEAVE_MS * 1000)):
            state, t_min, t_max = begun["rfid", value]
            assert t_min <= true_us <= t_max
            assert state.values["value"] is value
        assert begun["rfid", True][0].clock[0] >= begun["phone", False][0].number
        assert begun["wall", True][0].clock[1] >= begun["rfid", False][0].number
        reported = [
            decode_batch(p)[0] for leaf, p, _ in seen.seen if leaf == "state" and decode_batch(p)[0].gateway == "rfid"
        ]
        assert all(not state_of(r).is_heartbeat for r in reported)
        assert {state_of(r).number for r in reported if state_of(r).view == view} >= {2}

        board.kill()
        start_board(office, config, where, "224k")
        office.wait("another view", lambda: shared_view(view), 40)
        second = office.group("wall")["view"]
        office.badge("rfid", 3)
        office.wait_group("heard in the new view", "wall", lambda g: g["view"] == second and g["clock"][1] >= 2, 30)
        office.wait("all of which clocks speak has landed", lambda: nothing_ahead(office.landed_states()), 90)
        check_dense(office.landed_states())
        check_watermarks([m for m in seen.seen if of_board(*m)])


def of_board(leaf, payload, _retained):
    """True if this is a batch or heartbeat of the board."""
    from whenabouts_protocol import decode_heartbeat

    if leaf == "obs":
        return decode_batch(payload)[0].gateway == "rfid"
    return leaf == "heartbeat" and decode_heartbeat(payload).gateway == "rfid"
