"""The ledger against plain sets of numbers."""

import itertools
from bisect import bisect_right

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from support.search import examples
from whenabouts_cloud.ingest import ledger as ledger_module
from whenabouts_cloud.ingest.ledger import MAX_RANGES, Ledger, LedgerFull
from whenabouts_cloud.landing.ranges import Ranges, as_ranges

small = st.integers(0, 40)
spans = st.tuples(small, st.integers(0, 8)).map(lambda s: (s[0], s[0] + s[1]))
boots = st.tuples(st.sampled_from("ab"), st.integers(0, 2))


def numbers_of(ranges: Ranges) -> set[int]:
    return {n for first, last in ranges for n in range(first, last + 1)}


def reach_of(numbers: set[int], start: int = 0) -> int:
    while start in numbers:
        start += 1
    return start - 1


@given(st.lists(spans, max_size=30), st.lists(spans, min_size=1, max_size=5), small)
def test_ranges_are_a_set(added, asked, start):
    """Contains, overlaps, covers and reach answer as a set of the same numbers; ranges stay sorted and apart."""
    ranges, plain = Ranges(), set()
    for first, last in added:
        ranges.add(first, last)
        plain |= set(range(first, last + 1))
        assert numbers_of(ranges) == plain
        listed = list(ranges)
        assert all(a_last + 1 < b_first for (_, a_last), (b_first, _) in itertools.pairwise(listed))
        assert len(ranges) == len(listed)
    assert all((n in ranges) == (n in plain) for n in range(50))
    for first, last in asked:
        assert ranges.overlaps(first, last) == any(n in plain for n in range(first, last + 1))
        assert ranges.covers(first, last) == all(n in plain for n in range(first, last + 1))
    assert ranges.reach(start) == reach_of(plain, start)


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 1), small)))
def test_as_ranges_holds_the_same_identities_in_the_fewest_ranges(identities):
    """Expanding the ranges gives the set back, and no two of them could be one."""
    ranges = as_ranges(identities)
    expanded = [(g, b, n) for g, b, first, last in ranges for n in range(first, last + 1)]
    assert sorted(expanded) == sorted(set(identities))
    assert not {(g, b, last + 1) for g, b, _, last in ranges} & {(g, b, first) for g, b, first, _ in ranges}


class LedgerMachine(RuleBasedStateMachine):
    """A ledger and two dictionaries of sets get the same calls."""

    def __init__(self) -> None:
        super().__init__()
        self.ledger = Ledger()
        self.seen: dict = {}
        self.landed: dict = {}

    @rule(boot=boots, numbers=st.lists(small, min_size=1, max_size=12))
    def admit_any(self, boot, numbers):
        self.admit(boot, numbers)

    @rule(boot=boots, span=spans)
    def admit_run(self, boot, span):
        self.admit(boot, list(range(span[0], span[1] + 1)))

    def admit(self, boot, numbers):
        expected, seen = [], self.seen.setdefault(boot, set())
        for number in numbers:
            expected.append(number not in seen)
            seen.add(number)
        assert self.ledger.admit(*boot, numbers) == expected

    @rule(boot=boots, span=spans)
    def land(self, boot, span):
        self.ledger.land([(*boot, *span)])
        self._landed(boot, range(span[0], span[1] + 1))

    @rule()
    def restart(self):
        ranges = list(self.ledger.landed_ranges())
        self.ledger = Ledger()
        self.ledger.land(ranges)
        self.seen = {boot: set(numbers) for boot, numbers in self.landed.items()}

    def _landed(self, boot, numbers):
        for table in (self.seen, self.landed):
            table.setdefault(boot, set()).update(numbers)

    @invariant()
    def reaches_agree(self):
        for boot in [(g, b) for g in "ab" for b in range(3)]:
            for start in (0, 7):
                assert self.ledger.reach(*boot, start) == reach_of(self.landed.get(boot, set()), start)
        snapshot = {(g, b, n) for g, b, first, last in self.ledger.landed_ranges() for n in range(first, last + 1)}
        assert snapshot == {(*boot, n) for boot, numbers in self.landed.items() for n in numbers}


LedgerMachine.TestCase.settings = settings(max_examples=examples(60), stateful_step_count=30, deadline=None)
test_ledger_is_two_tables_of_sets = LedgerMachine.TestCase


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.lists(st.integers(0, 60), min_size=1, max_size=9), max_size=30), st.integers(1, 6))
def test_a_full_ledger_admits_nothing_of_what_it_refuses(messages, limit):
    """With few ranges allowed, a refused message changes nothing, a taken one never passes the limit."""
    kept = ledger_module.MAX_RANGES
    ledger_module.MAX_RANGES = limit
    try:
        ledger, seen = Ledger(), set()
        for numbers in messages:
            try:
                new = ledger.admit("g", 0, numbers)
            except LedgerFull:
                assert all(ledger.admit("g", 0, [n]) == [False] for n in seen)
                continue
            assert {n for n, fresh in zip(numbers, new, strict=True) if fresh} == set(numbers) - seen
            seen |= set(numbers)
            assert len(as_ranges(("g", 0, n) for n in seen)) <= limit
    finally:
        ledger_module.MAX_RANGES = kept


def test_at_the_limit_a_gateway_can_still_close_its_gaps():
    """MAX_RANGES gaps: a further gap is refused, numbers that go on or fill gaps are taken until all is one range."""
    ledger = Ledger()
    for first in range(0, MAX_RANGES, 1024):
        assert all(ledger.admit("g", 0, [2 * n for n in range(first, first + 1024)]))
    with pytest.raises(LedgerFull, match="gaps in the numbers of g boot 0"):
        ledger.admit("g", 0, [4 * MAX_RANGES])
    for first in range(1, 2 * MAX_RANGES, 2000):
        ledger.admit("g", 0, list(range(first, min(first + 2000, 2 * MAX_RANGES))))
    assert ledger.admit("g", 0, [4 * MAX_RANGES]) == [True]


def test_a_gateway_that_starts_again_and_again_closes_its_earliest_boots(monkeypatch):
    """At its limit the newest boots stay; of a closed one nothing is taken, also after a restart; others are not hurt."""
    monkeypatch.setattr(ledger_module, "MAX_GATEWAY_RANGES", 5)
    ledger = Ledger()
    for boot in range(8):
        assert ledger.admit("greedy", boot, [0, 1]) == [True, True]
        ledger.land([("greedy", boot, 0, 1)])
    assert [boot for _, boot, _, _ in ledger.landed_ranges()] == [3, 4, 5, 6, 7]
    assert ledger.closed_boots() == {"greedy": [0, 1, 2]}
    again = Ledger()
    again.close_boots("greedy", ledger.closed_boots()["greedy"])
    again.land(ledger.landed_ranges())
    for one in (ledger, again):
        with pytest.raises(LedgerFull, match="boot 2 of greedy, which is closed"):
            one.admit("greedy", 2, [2])
        assert one.admit("greedy", 7, [1, 2]) == [False, True]
        assert one.admit("honest", 2, [0]) == [True]


def test_gaps_are_limited_over_all_boots_of_a_gateway(monkeypatch):
    """Boots with gaps close earlier ones; a boot with more gaps than the gateway may have in all is refused."""
    monkeypatch.setattr(ledger_module, "MAX_GATEWAY_RANGES", 10)
    ledger = Ledger()
    for boot in range(6):
        assert all(ledger.admit("g", boot, [0, 2, 4, 6]))
        ledger.land(as_ranges(("g", boot, n) for n in (0, 2, 4, 6)))
        assert len(list(ledger.landed_ranges())) <= 10
    with pytest.raises(LedgerFull, match="more than 10 gaps in the numbers of all boots of g"):
        ledger.admit("g", 6, list(range(0, 60, 2)))
    assert ledger.admit("g", 6, [0]) == [True]


def test_all_gateways_together_have_a_limit_at_which_the_largest_makes_room(monkeypatch):
    """Those with many boots or gaps close boots for one that has none yet; only when all have few is it refused."""
    monkeypatch.setattr(ledger_module, "MAX_ALL_RANGES", 12)
    monkeypatch.setattr(ledger_module, "LEAST_RANGES", 2)
    ledger = Ledger()
    for boot in range(9):
        ledger.admit("greedy", boot, [0])
        ledger.land([("greedy", boot, 0, 0)])
    ledger.admit("gaps", 0, [0, 2, 4, 6])
    ledger.land([("gaps", 0, n, n) for n in (0, 2, 4, 6)])
    assert ledger.closed_boots() == {"greedy": [0]}
    for n in range(4):
        assert ledger.admit(f"late{n}", 0, [0]) == [True]
        ledger.land([(f"late{n}", 0, 0, 0)])
    assert ledger.closed_boots() == {"greedy": [0, 1, 2, 3, 4]}
    assert ledger.admit("greedy", 8, [1]) == [True]
    for n in range(4, 12):
        try:
            assert ledger.admit(f"late{n}", 0, [0]) == [True]
        except LedgerFull:
            break
        ledger.land([(f"late{n}", 0, 0, 0)])
    assert {gateway for gateway, *_ in ledger.landed_ranges()} == {"greedy", *(f"late{n}" for n in range(10))}
    with pytest.raises(LedgerFull, match="of all gateways; start a new landing"):
        ledger.admit("late10", 0, [0])


def test_numbers_on_disk_beyond_the_limits_are_trimmed_after_a_start(monkeypatch):
    """An older ledger may hold more than is allowed now: the earliest boots are closed."""
    monkeypatch.setattr(ledger_module, "MAX_GATEWAY_RANGES", 4)
    ledger = Ledger()
    ledger.land([("g", boot, first, first) for boot in range(4) for first in (0, 5)])
    ledger.trim()
    assert [(boot, first) for _, boot, first, _ in ledger.landed_ranges()] == [(2, 0), (2, 5), (3, 0), (3, 5)]


def test_numbers_of_a_message_of_which_some_have_landed_are_not_new():
    """Readings of the future have a file of their own, which may fail after that of the others."""
    ledger = Ledger()
    assert ledger.admit("g", 0, [0, 1, 2, 3]) == [True] * 4
    ledger.land([("g", 0, 0, 1)])
    assert ledger.admit("g", 0, [0, 1, 2, 3, 4]) == [False] * 4 + [True]
    ledger.land([("g", 0, 2, 4)])
    assert ledger.reach("g", 0) == 4
    assert ledger.admit("g", 0, [4]) == [False]


class CountedList(list):
    """Counts comparisons' reads."""

    reads = 0

    def __getitem__(self, at):
        CountedList.reads += 1
        return super().__getitem__(at)


def test_a_contiguous_message_costs_a_few_bisections_not_a_step_a_number():
    """2000 numbers beside 4000 ranges read some dozens of entries, and leave one range."""
    ledger = Ledger()
    for first in range(0, 4000, 1000):
        ledger.admit("g", 0, [3 * n for n in range(first, first + 1000)])
    seen = ledger._pending["g", 0]
    seen.firsts, seen.lasts = CountedList(seen.firsts), CountedList(seen.lasts)
    CountedList.reads = 0
    assert bisect_right(seen.firsts, 7) == 3
    ledger.admit("g", 0, list(range(20_000, 22_000)))
    assert CountedList.reads < 100
    long = Ledger()
    for first in range(0, 2_000_000, 2000):
        long.admit("g", 0, list(range(first, first + 2000)))
    assert len(long._pending["g", 0]) == 1
