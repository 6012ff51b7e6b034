"""A rule on a real gateway: planned from births, sent over a real broker, run by the agent process, removed again."""

import json

from click.testing import CliRunner

from e2e.test_agent_delivery import check_watermarks
from support.edge.agent import Bench, Witness, witness
from whenabouts_cloud.commands.publish import publish
from whenabouts_cloud.rules import CorrelateRule, parse_rules
from whenabouts_cloud.rules.placement import announced, compile_rules, place
from whenabouts_protocol import Reading, decode_birth, topic
from whenabouts_protocol.messages.compiled_rule import encode_rules
from whenabouts_sim.readers.m6e import M6eNano
from whenabouts_sim.readers.pty_link import PtyLink
from whenabouts_sim.readers.rdm6300 import Rdm6300
from whenabouts_sim.stack.stack import reader_table
from whenabouts_sim.world.world import DOCK, GATE, Sighting

RULE = f"""
STREAM dock FROM "{DOCK.stream}" DELAY 5 s
STREAM gate FROM "{GATE.stream}" DELAY 5 s
RULE near CORRELATE dock AS a, gate AS b WHERE @b - @a IN [-1 s, 1.5 s] OVER 60 %
"""
DERIVED = "$rule/near"


def births(seen: Witness) -> list:
    return [decode_birth(payload) for leaf, payload, _ in list(seen.seen) if leaf == "birth"]


def names(seen: Witness) -> list[str]:
    """The streams of the newest birth."""
    return [stream[0] for stream in births(seen)[-1].streams]


def published(bench: Bench, text: str, *more: str) -> dict:
    """Output of `whenabouts-cloud publish` for a rule file."""
    file = bench.folder / "rules.wa"
    file.write_text(text)
    result = CliRunner().invoke(publish, [str(file), "--broker", f"127.0.0.1:{bench.broker.port}", *more])
    assert result.exit_code == 0, result.output
    return json.loads(result.output)


def distinct(seen: Witness) -> dict[tuple[int, int], Reading]:
    return {(r.boot, r.seq): r for r in seen.readings()}


def expected(rule: CorrelateRule, readings: dict, boot: int, first_seq: int) -> dict:
    """Pairs that the rule derives from a boot's readings from a number on: (a, b) -> (ppm, stamp), by its definition."""
    sides = [
        [r for (b, s), r in readings.items() if (b, r.stream) == (boot, stream.pattern) and s >= first_seq]
        for stream in (rule.a, rule.b)
    ]
    pairs = {}
    for x in sides[0]:
        for y in sides[1]:
            ends = x.t_min, x.t_max, y.t_min, y.t_max
            if rule.condition.holds(*ends):
                num, den = rule.condition.ratio(*ends)
                stamp = max(x.t_min, y.t_min), max(x.t_max, y.t_max)
                pairs[(boot, x.seq), (boot, y.seq)] = (num * 1_000_000 // den, *stamp)
    return pairs


def derived(readings: dict, boot: int) -> dict:
    """Pairs that the agent derived in a boot, in the same form; no pair twice."""
    pairs = {}
    for r in readings.values():
        if r.stream == DERIVED and r.boot == boot:
            pair = (r.attrs["a_boot"], r.attrs["a_seq"]), (r.attrs["b_boot"], r.attrs["b_seq"])
            assert pair not in pairs
            assert (r.kind, r.unit, r.key, r.clock_state) == ("measure", "[ppm]", None, "bounded")
            pairs[pair] = (r.value, r.t_min, r.t_max)
    return pairs


def test_a_rule_is_sent_runs_survives_a_restart_and_is_removed(bench):
    """Derived readings are exactly the pairs of the definition, in each boot; noise on the topic changes nothing.

    agent    |--------------------------| |----------------------------|
    rules        sent   noise             (retained)      removed
    birth    -  near                       - near         -
    pairs          ====      ====                ====          none
    """
    ports = bench.folder / "ports"
    dock = PtyLink(M6eNano(DOCK.name, 2), bench.sim_clock, ports / "dock")
    gate = PtyLink(Rdm6300(GATE.name, 2), bench.sim_clock, ports / "gate")
    bench.broker.start()
    bench.configure(reader_table(DOCK, ports / "dock"), reader_table(GATE, ports / "gate"))
    [rule] = parse_rules(RULE).rules
    number = iter(range(10_000))

    def traffic(count: int = 8) -> None:
        """Send tags and badges in turn, until the cloud has every one that was reported."""
        start_us = bench.true_us() + 1_300_000
        tags = [Sighting(start_us + i * 130_000, DOCK.name, n := next(number), f"30{n:022X}") for i in range(count)]
        badges = [Sighting(start_us + i * 170_000, GATE.name, n := next(number), f"{n:010X}") for i in range(count)]
        dock.go(tags)
        gate.go(badges)
        for link, sightings in ((dock, tags), (gate, badges)):
            keys = {s.key for s in sightings}
            bench.wait("reported", lambda: len(keys & {e.key for e in link.emitted}) + link.unseen >= len(keys), 60)  # noqa: B023
            reported = {e.key for e in link.emitted if not e.damaged} & keys
            assert reported
            seen.wait("landed", lambda: seen.keys() >= reported)  # noqa: B023

    def check_pairs(boot: int, first_seq: int = 0) -> int:
        """Check that the pairs of the definition have come and no others; return their number."""
        wanted = expected(rule, distinct(seen), boot, first_seq)
        seen.wait("pairs", lambda: derived(distinct(seen), boot).keys() >= wanted.keys())
        assert derived(distinct(seen), boot) == wanted
        return len(wanted)

    with dock, gate, witness(bench.broker.port) as seen:
        agent = bench.start_agent("gw")
        assert dock.started_by_host.wait(60)
        seen.wait("birth", lambda: births(seen))
        assert names(seen) == sorted([DOCK.stream, GATE.stream])
        assert published(bench, RULE, "--dry-run", "--json")["sent"] is False
        reported = published(bench, RULE, "--json")
        assert [(x["rule"], x["where"], x["gateway"]) for x in reported["rules"]] == [("near", "edge", "bench/gw")]
        assert (reported["gateways"], reported["sent"]) == (["bench/gw"], True)
        seen.wait("rule announced", lambda: DERIVED in names(seen))
        first_boot = births(seen)[-1].boot
        traffic()
        assert check_pairs(first_boot) > 4

        for noise in (b"\xff no rules", encode_rules("bench", "other", [])):
            seen.client.publish(topic("bench", "gw", "rules"), noise, qos=1).wait_for_publish(10)
        status = bench.wait_status("refused", lambda s: s["rules"]["refused"] == 2)
        assert status["rules"]["running"].keys() == {DERIVED}
        traffic()
        count = check_pairs(first_boot)
        running = bench.wait_status("counted", lambda s: s["rules"]["running"][DERIVED]["pairs"] == count)
        assert running["rules"]["running"][DERIVED]["overflow"] == 0

        assert agent.stop() == 0
        assert "Traceback" not in agent.tail()
        dock.started_by_host.clear()
        agent = bench.start_agent("gw")
        assert dock.started_by_host.wait(60)
        seen.wait("announced again", lambda: births(seen)[-1].boot != first_boot and DERIVED in names(seen))
        second_boot = births(seen)[-1].boot
        traffic()
        assert check_pairs(second_boot) > 4

        assert published(bench, RULE.split("RULE")[0], "--json")["rules"] == []
        seen.wait("removed", lambda: DERIVED not in names(seen))
        before = derived(distinct(seen), second_boot)
        traffic(4)
        assert agent.stop() == 0
        seen.wait("stopped", lambda: seen.conditions()[-1] == "stopped")
        assert derived(distinct(seen), second_boot) == before

    readings = distinct(seen)
    for boot in (first_boot, second_boot):
        numbers = sorted(s for b, s in readings if b == boot)
        assert numbers == list(range(len(numbers)))
    check_watermarks(seen.seen)


def test_rules_of_a_file_run_without_a_word_from_the_cloud(bench):
    """The rules_file of the configuration runs from the first reading; with another gateway's the agent does not start."""
    [rule] = parse_rules(RULE.replace(DOCK.stream, GATE.stream)).rules  # badges with badges, each pair in both orders
    port = bench.folder / "ports" / "gate"
    config = bench.configure(reader_table(GATE, port))
    bench.broker.start()
    with PtyLink(Rdm6300(GATE.name, 1), bench.sim_clock, port) as gate, witness(bench.broker.port) as seen:
        agent = bench.start_agent("gw")
        seen.wait("birth", lambda: births(seen))
        rules = compile_rules(place([rule], announced(births(seen))), "bench", "gw")
        assert agent.stop() == 0
        path = bench.folder / "gw.rules"
        config.write_text(f'rules_file = "{path}"\n' + config.read_text())
        path.write_bytes(encode_rules("bench", "other", rules))
        agent = bench.start_agent("gw")
        assert agent.process.wait(60) == 2  # as of all in a configuration that somebody must mend
        assert "found rules of bench/other, expected those of bench/gw" in agent.tail()
        path.write_bytes(encode_rules("bench", "gw", rules))
        bench.start_agent("gw")
        seen.wait("announced", lambda: DERIVED in names(seen))
        bench.wait("agent ready", lambda: bench.agent_ready("gw"), 60)
        start_us = bench.true_us() + 300_000
        gate.go([Sighting(start_us + i * 170_000, GATE.name, i, f"{i:010X}") for i in range(10)])
        seen.wait("badges", lambda: len({r.key for r in seen.readings() if r.stream == GATE.stream}) >= 8)
        boot = births(seen)[-1].boot
        bench.wait("reported", lambda: len(gate.emitted) + gate.unseen >= 10, 60)
        reported = {e.key for e in gate.emitted if not e.damaged}
        seen.wait("all badges", lambda: seen.keys() >= reported)
        wanted = {pair: v for pair, v in expected(rule, distinct(seen), boot, 0).items() if pair[0] != pair[1]}
        assert len(wanted) > 10
        seen.wait("pairs", lambda: derived(distinct(seen), boot).keys() >= wanted.keys())
        assert derived(distinct(seen), boot) == wanted
