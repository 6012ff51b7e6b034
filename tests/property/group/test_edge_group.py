"""Gateways of a group over a bad network: dense clocks give exactly the causal order, stamps contain the true changes."""

from itertools import pairwise
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from support.group.network import LEAVE_US, Network
from support.search import examples, seeds
from whenabouts_edge.group.conditions import Presence, Threshold
from whenabouts_edge.group.detection import Detection


def true_changes(gateway):
    """The moments, in host time, of all true changes: [(moment, name, value)], by definition over all reads.

    A pause is sure when no stamp leaves it open; a tag comes with the k-th read after a sure pause, and leaves LEAVE_US
    after the last one before a sure pause.
    """
    changes = []
    for key, needed in gateway.reads_needed.items():
        reads = sorted((r for r in gateway.reads if r.key == key), key=lambda r: r.true_us)
        runs, run = [], []
        start = gateway.started_us - gateway.offset_us
        for i, read in enumerate(reads):
            run.append(read)
            later = reads[i + 1 :]
            latest = max([start, *(r.latest_us for r in reads[: i + 1])])
            if not later or latest + LEAVE_US < min(r.earliest_us for r in later):
                runs.append(run)
                run = []
        known = False
        if not reads or start + LEAVE_US < min(r.earliest_us for r in reads):
            changes.append((start + LEAVE_US, f"has_{key}", False))
            known = True
        for run in runs:
            if len(run) >= needed:
                changes.append((run[needed - 1].true_us, f"has_{key}", True))
            if len(run) >= needed or not known:
                changes.append((run[-1].true_us + LEAVE_US, f"has_{key}", False))
            known = True
    return sorted((when + gateway.offset_us, name, value) for when, name, value in changes)


def moments(gateway, changes):
    """By number of the state the first and last true moment of the changes that begin it, in true time."""
    spans = {}
    for state in gateway.states:
        number = state.clock[state.process]
        inside = [when for when, _, _ in changes if state.earliest_us <= when <= state.latest_us]
        if number:
            assert inside, "a state began where nothing changed"
            spans[number] = min(inside) - gateway.offset_us, max(inside) - gateway.offset_us
    return spans


@settings(max_examples=examples(25), deadline=None)
@given(st.integers(0, 1 << 30), st.integers(2, 5))
def test_states_hold_what_is_true_and_stamps_contain_the_changes(seed, size):
    """Between the stamps of two states all known values are the true ones; every true change lies in a stamp."""
    network = Network(Random(seed), size)
    network.run()
    for gateway in network.gateways:
        changes = [c for c in true_changes(gateway) if c[0] > gateway.states[0].latest_us]
        before = {name: value for when, name, value in true_changes(gateway) if when <= gateway.states[0].latest_us}
        assert gateway.states[0].values == before
        moments(gateway, changes)
        last = gateway.states[-1]
        for state, after in zip(gateway.states, [*gateway.states[1:], None], strict=True):
            assert state.view == last.view
            assert after is None or after.clock[after.process] == state.clock[state.process] + 1
            ends_us = after.earliest_us if after else 1 << 60
            assert not [c for c in changes if state.latest_us < c[0] < ends_us]
            if state.latest_us < ends_us:
                true = {**before, **{name: value for when, name, value in changes if when <= state.latest_us}}
                assert state.values == true, "a state that lasts has all its values"


def ends_before(network):
    """All pairs ((i, k), (j, l)) for which the end of state k of i happens before, or is, the begin of state l of j.

    From raw events: states of a process follow each other, and what was received by the earliest moment of a begin, or of
    one before it, leads to that begin.
    """
    after = {}
    for gateway in network.gateways:
        reached = -(1 << 60)
        for state in gateway.states[1:]:
            node = gateway.name, state.clock[state.process]
            reached = max(reached, state.earliest_us)
            after.setdefault((node[0], node[1] - 1), set()).add(node)
            for when, sender, number in gateway.heard:
                if when <= reached:
                    after.setdefault((sender, number), set()).add(node)
    pairs = set()
    for gateway in network.gateways:
        for state in gateway.states[:-1]:
            k = state.clock[state.process]
            todo, seen = [(gateway.name, k + 1)], set()
            while todo:
                node = todo.pop()
                if node not in seen:
                    seen.add(node)
                    todo.extend(after.get(node, ()))
            pairs |= {((gateway.name, k), node) for node in seen if node[1]}
    return pairs


@settings(max_examples=examples(25), deadline=None)
@given(st.integers(0, 1 << 30), st.integers(2, 5))
def test_clocks_give_exactly_the_causal_order(seed, size):
    """s_i^k -> s_j^l iff V_j^l[i] >= k + 1, against the transitive closure of the raw events."""
    network = Network(Random(seed), size)
    network.run()
    expected = ends_before(network)
    names = [g.name for g in network.gateways]
    orders = set()
    for gateway in network.gateways:
        for state in gateway.states[1:]:
            for i, count in enumerate(state.clock):
                orders |= {((names[i], k), (gateway.name, state.clock[state.process])) for k in range(count)}
    assert orders == expected


@settings(max_examples=examples(25), deadline=None)
@given(st.integers(0, 1 << 30), st.integers(2, 5))
def test_the_order_by_clocks_and_clock_heartbeats_holds_in_true_time(seed, size):
    """The end of a state that a begin knows was earlier; a state that was on with a clock ended after all that it knows."""
    network = Network(Random(seed), size)
    network.run()
    true = [moments(g, true_changes(g)) for g in network.gateways]
    for j, gateway in enumerate(network.gateways):
        for report in gateway.states[1:] + gateway.heartbeats:
            if len(report.clock) < size:
                continue
            own = report.clock[j]
            first_us = true[j].get(own + 1 if report.is_heartbeat else own, (1 << 60, 0))[0]
            for i, count in enumerate(report.clock):
                if i != j and count:
                    assert true[i][count][1] < first_us
            if report.is_heartbeat:
                assert report.clock != gateway.states[own].clock


def test_the_networks_of_these_tests_show_what_they_are_for():
    """Merges, losses that delay knowledge, unknown order of changes, clock heartbeats: all happen."""
    merged = unsure = heartbeats = 0
    tried = seeds(40)
    for seed in tried:
        network = Network(Random(seed), 2 + seed % 4)
        network.run()
        merged += sum(g.process.merged for g in network.gateways)
        unsure += sum(g.process._detection.unsure for g in network.gateways)
        heartbeats += sum(len(g.heartbeats) for g in network.gateways)
        assert all(
            not any(g.process.counters[r] for r in ("malformed", "foreign", "impossible")) for g in network.gateways
        )
    assert merged > 12 * len(tried)
    assert unsure > len(tried)
    assert heartbeats > 12 * len(tried)


@settings(max_examples=examples(200), deadline=None)
@given(st.integers(0, 1 << 30), st.sampled_from([0, 500, 3000]), st.booleans())
def test_a_threshold_changes_only_where_the_measure_truly_was_beyond_it_for_long_enough(seed, hold_us, high):
    """Every change has a first reading beyond the threshold, hold_us earlier, that no reading contradicts until then."""
    chance = Random(seed)
    on_at, off_at = (30, 20) if high else (20, 30)
    detection = Detection([Threshold("hot", "probe", None, None, on_at, off_at, hold_us)])
    reads, now = [], 0
    for _ in range(chance.randint(1, 60)):
        now += chance.choice([10, 300, 900, 4000])
        reads.append(
            (now, now - chance.randint(0, 300), now + chance.randint(0, 200), chance.choice([10, 20, 25, 30, 40.5]))
        )
    arriving = sorted((r[2] + chance.randint(0, 200), r) for r in reads)
    states = []
    for arrival, (_, earliest, latest, value) in arriving:
        states += detection.advance(arrival - 800)
        detection.observe("probe", "k", value, {}, earliest, latest)
    states += detection.advance(now + 10_000)

    def side(value):
        beyond_on, beyond_off = (value >= 30, value <= 20) if high else (value <= 20, value >= 30)
        return True if beyond_on else False if beyond_off else None

    for earliest, latest, values in states:
        if not values:
            continue
        change = values["hot"]
        wanted = (change,) if change else (False, None)
        firsts = [t for t, _, _, v in reads if earliest <= t + hold_us <= latest and side(v) in wanted]
        assert any(all(side(v) in wanted for t2, _, _, v in reads if t <= t2 <= t + hold_us) for t in firsts)
    sides = [side(v) for _, _, _, v in sorted(reads)]
    if len(set(sides)) == 1 and sides[0] is not None:
        assert [values for _, _, values in states] == [{"hot": sides[0]}]


@settings(max_examples=examples(2000), deadline=None)
@given(st.integers(0, 1 << 30), st.booleans())
def test_states_say_nothing_of_what_a_closed_port_hid(seed, keeps_alive):
    """All that they say is true of all reads, also the lost ones; and they say something where the port was open for long
    enough. Stamps are exact, so no pause is left open.
    """
    chance = Random(seed)
    reads, looks, now, is_open, opened_us, sure_us = [], [], 0, True, 0, 0
    while now < 20_000:
        now += chance.choice([10, 100, 400, LEAVE_US])
        if chance.random() < 0.2:
            opened_us = opened_us if is_open else now
            is_open = not is_open
        elif chance.random() < 0.4:
            reads.append((now, is_open))
        since_us = opened_us if is_open else now
        is_quiet = keeps_alive and (now, True) not in reads
        sure_us = max(sure_us, since_us, now - chance.choice([0, 700]) if is_quiet else now)
        looks.append((now, since_us, sure_us))
    detection = Detection([Presence("here", "tags", None, 1, LEAVE_US)])
    states = []
    for now, since_us, sure_us in looks:
        if (now, True) in reads:
            detection.observe("tags", "k", None, {}, now, now)
        detection.scanned("port", "tags", since_us, sure_us)
        states += detection.advance(now)
        assert keeps_alive or now - 1500 <= detection.sure_until(), "a closed port holds no watermark back"
    until_us = detection.sure_until()
    times = [when for when, _ in reads]
    shut = [(sure, since) for (_, before, sure), (_, since, _) in pairwise(looks) if since > before]
    for (begin, latest, values), (end, *_) in pairwise([(0, 0, {}), *states, (until_us, 0, {})]):
        for moment in {latest + 1, (latest + end) // 2, end - 1}:
            if not latest < moment < end:
                continue
            truth = any(when <= moment <= when + LEAVE_US for when in times)
            assert values.get("here", truth) is truth, (moment, begin, latest, end)
            was_open = not any(since < moment and moment - LEAVE_US - 1 < until for since, until in shut)
            assert "here" in values or not was_open or moment <= looks[0][0] + LEAVE_US, moment
