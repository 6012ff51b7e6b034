"""Rules inside the agent: what is derived, what it names, and what happens when rules change or room runs out."""

import asyncio

import pytest

from support.edge.pending import pending
from whenabouts_edge.readers.thread import MAX_WAITING
from whenabouts_edge.rules.evaluate import MAX_DERIVED, EdgeRules, Source, merged
from whenabouts_edge.rules.rule_host import RuleHost, RulesFileError
from whenabouts_edge.store.intake import Intake
from whenabouts_edge.store.spool import Spool, SpoolFull
from whenabouts_protocol import Reading, decode_batch
from whenabouts_protocol.messages.compiled_rule import CompiledRule, RuleSide, encode_rules

DOCK, SHELF = RuleSide(["dock"], 0, 100), RuleSide(["shelf/1", "shelf/2"], 0, 100)


def rule(name="near", lo=-50, hi=50, p=1, q=2, keyed=False, a=DOCK, b=SHELF):
    return CompiledRule("$rule/" + name, lo, hi, p, q, keyed, 1000, a, b)


def message(*rules):
    return encode_rules("hall", "g", list(rules))


def pair_side(stream, t_min, t_max, key=None, clock_state="bounded", vclock=(0,)):
    one = pending(key, t_min, t_max, stream, clock_state, origin=("hall", "g"))
    one.vclock = vclock
    return one


def host(*rules):
    started = RuleHost("hall", "g", None)
    started.received(message(*rules))
    return started


def numbered(readings, boot=1 << 40, first=0):
    """Readings as the spool numbers them, in their order."""
    return [one.numbered(boot, first + n) for n, one in enumerate(readings)]


def through(rules, readings):
    """The readings, and behind them those that rules derive."""
    return [*readings, *rules.through(readings)]


def test_a_gap_is_no_event():
    """It stands in the stream of the readings that it counts."""
    gap = pair_side("dock", 0, 100)
    gap.kind, gap.value, gap.unit = "gap", 7, "{readings}"
    both = [gap, pair_side("shelf/2", 40, 140, "E2")]
    assert host(rule(lo=-1000, hi=1000)).through(both) == []


def test_a_pair_becomes_a_reading_of_the_derived_stream():
    """Stamp of the later event, probability in millionths rounded down, both identities, the worse clock, what both knew.

    dock     [0 ..... 100]
    shelf         [40..............140]
    derived       [40..............140]
    """
    both = [pair_side("dock", 0, 100, "E1", vclock=(3, 1)), pair_side("shelf/2", 40, 140, "E2", "free-running", (2, 5))]
    assert host(rule(lo=0, hi=30)).through(both) == []  # 22.5 % only
    *_, derived = numbered(through(host(rule(lo=0, hi=100, p=3, q=10)), both))
    assert derived == Reading(
        site="hall", gateway="g", boot=1 << 40, seq=2, stream="$rule/near", kind="measure", key=None, value=740_000,
        unit="[ppm]", attrs={"a_boot": 1 << 40, "a_seq": 0, "b_boot": 1 << 40, "b_seq": 1}, t_min=40, t_max=140,
        clock_state="free-running", vclock=(3, 5),
    )  # fmt: skip


def test_clocks_of_different_views_of_the_group_are_not_merged():
    """A derived reading of two views carries the clock of the later view, whichever side it is of."""
    for first, second in (("dock", "shelf/1"), ("shelf/1", "dock")):
        rules = host(rule())
        before = through(rules, [pair_side(first, 0, 10, vclock=(9, 9))])
        later = pair_side(second, 0, 10, vclock=(0, 1))
        later.view = 1
        after = through(rules, [later])
        assert [r.vclock for r in numbered([*before, *after])] == [(9, 9), (0, 1), (0, 1)]


def test_the_key_is_reported_when_both_have_it():
    """With and without equality in the rule."""
    readings = [pair_side("dock", 0, 10, "E1"), pair_side("shelf/1", 0, 10, "E1"), pair_side("shelf/1", 0, 10, "E2")]
    for keyed, keys in ((True, ["E1"]), (False, ["E1", None])):
        assert [r.key for r in numbered(through(host(rule(keyed=keyed)), readings))[3:]] == keys


def test_readings_of_other_streams_derive_nothing():
    """No rule learns their numbers; without rules it learns none."""
    door, dock = some = [pair_side("door", 0, 10), pair_side("dock", 0, 10)]
    assert host().through(some) == host(rule()).through(some) == []
    assert door.source is None
    assert dock.source is not None


def test_a_stream_with_itself_pairs_two_readings_in_both_orders_and_none_with_itself():
    """As everywhere else: both sides of the rule are filled by both."""
    same = host(rule(a=DOCK, b=DOCK))
    readings = through(same, [pair_side("dock", 0, 10), pair_side("dock", 5, 15)])
    pairs = [(r.attrs["a_seq"], r.attrs["b_seq"]) for r in numbered(readings)[2:]]
    assert sorted(pairs) == [(0, 1), (1, 0)]


def test_one_reading_can_serve_several_rules():
    """Each derives under its own name."""
    both = [pair_side("dock", 0, 1), pair_side("shelf/1", 0, 1)]
    readings = through(host(rule("x"), rule("y", a=SHELF, b=DOCK)), both)
    assert [r.stream for r in numbered(readings)[2:]] == ["$rule/x", "$rule/y"]


def test_rules_that_stay_keep_what_they_have():
    """Unchanged rules change nothing; a new one starts empty; a changed one starts again."""
    rules = host(rule())
    rules.through([pair_side("dock", 0, 10)])
    assert rules.received(message(rule())) is False
    assert rules.received(message(rule("new"), rule())) is True
    readings = through(rules, [pair_side("shelf/1", 0, 10)])
    assert [r.stream for r in numbered(readings)[1:]] == ["$rule/near"]
    assert rules.received(message(rule(hi=51))) is True
    assert rules.through([pair_side("shelf/1", 0, 10)]) == []


def test_what_is_no_message_of_rules_is_counted_and_changes_nothing():
    """Noise and another gateway's rules; an empty message removes the rules, an empty list too."""
    rules = host(rule())
    for noise in (b"\x00", b"\xa0", encode_rules("hall", "other", [])):
        assert rules.received(noise) is False
    assert (rules.refused, rules.streams) == (3, ["$rule/near"])
    assert rules.received(message()) is True
    assert rules.streams == []
    rules.received(message(rule()))
    assert rules.received(b"") is True
    assert rules.streams == []


def test_rules_of_a_file_run_until_others_come_and_again_when_those_go(tmp_path):
    """A file that cannot be used gives an error with a remedy."""
    path = tmp_path / "g.rules"
    path.write_bytes(message(rule("filed")))
    rules = RuleHost("hall", "g", str(path))
    assert rules.streams == ["$rule/filed"]
    rules.received(message(rule("sent")))
    assert rules.streams == ["$rule/sent"]
    rules.received(b"")
    assert rules.streams == ["$rule/filed"]
    for wrong in (tmp_path / "none", tmp_path):
        with pytest.raises(RulesFileError, match=r"cannot use it .* --compiled DIR"):
            RuleHost("hall", "g", str(wrong))
    path.write_bytes(b"\xff")
    with pytest.raises(RulesFileError, match="rules_file"):
        RuleHost("hall", "g", str(path))


def test_counters_and_the_limit_of_a_board():
    """A lower limit than the rule's own is held; every counter has a name."""
    rules = EdgeRules([rule(keyed=True)], limit=10)
    for n in range(50):
        rules.push("dock", Source(n, n, "E", "bounded", ()))
    rules.push("dock", Source(0, 1000, "E", "bounded", ()))
    rules.push("dock", Source(0, 0, None, "bounded", ()))
    counters = rules.counters()["$rule/near"]
    assert counters["kept"] <= 10
    assert (counters["overflow"], counters["too_long"], counters["keyless"]) == (50 - counters["kept"], 1, 1)
    rules.advance(1000)
    assert rules.counters()["$rule/near"]["kept"] == 0


def test_a_reading_with_more_pairs_than_can_be_reported_reports_the_newest():
    """The others are counted: a rule that wide would fill the spool with pairs."""
    rules = EdgeRules([rule()])
    for n in range(MAX_DERIVED + 40):
        rules.push("dock", Source(n // 10, n // 10, None, "bounded", ()))
    derived = rules.push("shelf/1", Source(0, 0, None, "bounded", ()))
    assert [d.a.t_min for d in derived] == [n // 10 for n in range(40, MAX_DERIVED + 40)]
    counters = rules.counters()["$rule/near"]
    assert (counters["pairs"], counters["pairs_dropped"]) == (MAX_DERIVED + 40, 40)


def test_clocks_of_different_groups_are_not_mixed():
    """Equal lengths merge place by place; otherwise the longer one is kept."""
    assert merged((1, 5), (4, 2)) == (4, 5)
    assert merged((1,), (4, 2)) == merged((4, 2), (1,)) == (4, 2)


def test_a_source_that_the_full_spool_refused_is_not_named(tmp_path):
    """The pair is reported nevertheless, with the known identity."""
    rules = host(rule())
    lost = pair_side("dock", 0, 10)
    rules.through([lost])
    lost.numbered(1 << 40, 7)  # in a commit that then failed
    lost.refused()
    readings = through(rules, [pair_side("shelf/1", 0, 10)])
    assert numbered(readings)[1].attrs == {"b_boot": 1 << 40, "b_seq": 0}


async def keep(gaps):
    """Counts of what was refused are of no matter here."""


def test_derived_readings_are_stored_behind_their_sources(tmp_path):
    """Through the real intake and spool: numbers without gap, identities as stored."""

    async def run():
        spool = Spool(tmp_path / "spool.sqlite", 1 << 20)

        async def append(readings, gaps):
            return spool.append(readings, gaps)

        intake = Intake(append, lambda: None, 1, keep)
        task = asyncio.create_task(intake.run())
        rules = host(rule())
        for n in range(150):
            one = pair_side("dock" if n % 2 else "shelf/1", 10 * n, 10 * n)
            derived = rules.through([one])
            intake.reserve(1)
            intake.accept([one])
            intake.offer(derived)
        async with asyncio.timeout(10):
            while intake.settled < intake.accepted:
                await asyncio.sleep(0.001)
        task.cancel()
        readings = [r for m in spool.after(None, 1000) for r in decode_batch(m.payload)]
        spool.close()
        return readings

    readings = asyncio.run(run())
    assert [r.seq for r in readings] == list(range(len(readings)))
    by_number = {(r.boot, r.seq): r for r in readings}
    derived = [r for r in readings if r.stream == "$rule/near"]
    pairs = set()
    for r in derived:
        a, b = (by_number[r.attrs[f"{side}_boot"], r.attrs[f"{side}_seq"]] for side in "ab")
        assert (a.stream, b.stream, r.t_min) == ("dock", "shelf/1", max(a.t_min, b.t_min))
        assert max(a.seq, b.seq) < r.seq
        pairs.add((a.t_min, b.t_min))
    assert pairs == {(10 * m, 10 * n) for m in range(1, 150, 2) for n in range(0, 150, 2) if abs(m - n) <= 5}
    assert len(pairs) == len(derived) == len(by_number) - 150


def test_more_derived_readings_than_there_is_room_for_are_reported_by_a_gap(tmp_path):
    """Readings that fit are stored, the others counted and reported; readers are not held up."""

    async def run():
        stored = []
        full = asyncio.Event()

        async def append(readings, gaps):
            if not full.is_set():
                raise SpoolFull("full")
            stored.extend(numbered([*gaps, *readings], first=len(stored)))

        intake = Intake(append, lambda: None, 1, keep)
        intake.reserve(MAX_WAITING - 3)
        intake.accept([pair_side("dock", 0, 0)] * (MAX_WAITING - 3))
        intake.offer([pair_side("$rule/near", 5, 9)] * 10)
        assert (intake.refused, intake.gap_open) == (7, True)
        full.set()
        task = asyncio.create_task(intake.run())
        async with asyncio.timeout(10):
            while intake.gap_open or intake.settled < intake.accepted:
                await asyncio.sleep(0.001)
        task.cancel()
        return stored

    stored = asyncio.run(run())
    gaps = [r for r in stored if r.kind == "gap"]
    assert [(g.stream, g.value, g.t_min, g.t_max) for g in gaps] == [("$rule/near", 7, 5, 9)]
    assert len([r for r in stored if r.stream == "$rule/near"]) == 1 + 3
