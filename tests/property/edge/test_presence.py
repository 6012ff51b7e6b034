"""Visits of tags: the same as by their definition in every arrival order, and the truth lies in every interval."""

from collections import defaultdict
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from support.search import examples, seeds
from whenabouts_edge.readers.visits import ABSENT, ENTER, LEAVE, MAX_WAITING, Visits

S = 1_000_000
LEAVE_US = 100
READS = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(0, 2000), st.integers(0, 120), st.integers(0, 300)), max_size=40
)


def reported(changes):
    return [(c.event, c.key, c.earliest_us, c.latest_us, c.reads, c.stay_us) for c in changes]


def by_definition(reads, leave_us, clears):
    """
    Changes reported for a reader that always scans. reads: (key, earliest, latest), clears: moments of `advance`. A visit
    is a longest row of reads of one key, by their earliest moments; none begins later than leave_us after all before it.
    """
    rows = defaultdict(list)
    for key, earliest, latest in sorted(reads, key=lambda read: read[1:]):
        if earliest >= clears[-1]:
            continue
        visits = rows[key]
        if not visits or earliest > max(end for _, end in visits[-1]) + leave_us:
            visits.append([])
        visits[-1].append((earliest, latest))
    changes = []
    for key, visits in rows.items():
        for number, visit in enumerate(visits):
            changes.append((ENTER, key, *visit[0], 1, None))
            last, over = max(begin for begin, _ in visit), max(end for _, end in visit) + leave_us
            if over < clears[-1] or number + 1 < len(visits):
                before = [clear for clear in clears if clear <= over]
                until = max([over, *before[-1:]])
                stay = max(0, last - visit[0][1]), until - visit[0][0]
                changes.append((LEAVE, key, last, until, len(visit), stay))
    return sorted(changes, key=repr)


@given(READS, st.data())
def test_visits_are_those_of_the_definition_at_every_prefix(reads, data):
    """Reads in any order after the clear time, any steps of the clear time: the changes of the definition, each once."""
    visits, changes, clears, seen = Visits(LEAVE_US), [], [0], []
    assert visits.advance(0, -1, 0) == []
    waiting = [(key, begin, begin + length) for key, begin, length, _ in reads]
    while waiting or clears[-1] < 2500:
        clear = clears[-1] + data.draw(st.integers(100, 500))
        due = [read for read in waiting if read[1] < clear]
        for key, earliest, latest in data.draw(st.permutations(due)):
            visits.read(key, earliest, latest)
        seen += due
        waiting = [read for read in waiting if read not in due]
        changes += reported(visits.advance(clear, -1, clear))
        clears.append(clear)
        assert sorted(changes, key=repr) == by_definition(seen, LEAVE_US, clears)
    assert (visits.late, visits.hurried, visits.untracked) == (0, 0, 0)


class Site:
    """A reader that is unplugged now and then, and tags that come and go; everything about it is known."""

    def __init__(self, seed):
        self.chance = chance = Random(seed)
        self.leave_us = chance.choice([300_000, S, 5 * S])
        self.reach_us = chance.choice([0, 20_000, 3 * S])
        self.end_us = chance.randint(20, 60) * S
        self.blind = self._blind()
        self.stays = {f"tag{n}": self._stays() for n in range(chance.randint(1, 6))}
        self.reads = sorted(read for key in self.stays for stay in self.stays[key] for read in self._reads(key, *stay))

    def _blind(self):
        at_us, spans = self.chance.randint(S, 10 * S), []
        while self.chance.random() < 0.6 and at_us < self.end_us:
            spans.append((at_us, at_us + self.chance.randint(1, 8 * S)))
            at_us = spans[-1][1] + self.chance.randint(1, 10 * S)
        return spans

    def _stays(self):
        at_us, stays = self.chance.randint(0, 5 * S), []
        while at_us < self.end_us:
            stays.append((at_us, at_us + self.chance.choice([0, 3000, self.leave_us, 7 * S])))
            at_us = stays[-1][1] + self.chance.choice([1, self.leave_us, self.leave_us + 1, 12 * S])
        return stays

    def looks(self, at_us):
        return not any(begin <= at_us < end for begin, end in self.blind)

    def _reads(self, key, begin_us, end_us):
        """True moments of reads: never further apart than leave_us while the reader looks, also from when it begins to."""
        at_us, reads = begin_us, []
        while at_us <= end_us:
            if self.looks(at_us):
                reads.append((at_us, key))
                at_us += self.chance.choice([0, 1, self.leave_us // 3, self.leave_us]) or 1
            else:
                at_us = next(end for begin, end in self.blind if begin <= at_us < end)
                at_us += self.chance.choice([0, self.leave_us // 2, self.leave_us])
        return reads

    def run(self, visits):
        """Every change, in the order in which it was reported; a mark is the index of a read in `reads`."""
        changes, waiting, now_us, previous_us = [], list(enumerate(self.reads)), 0, 0
        while now_us < self.end_us + 30 * S:
            now_us += self.chance.choice([1000, 100_000, 2 * S])
            blind = next(((begin, end) for begin, end in self.blind if begin <= now_us < end), None)
            over = max((end for _, end in self.blind if end <= now_us), default=0)
            due = [read for read in waiting if read[1][0] <= now_us]
            waiting = waiting[len(due) :]
            self.chance.shuffle(due)
            for number, (true_us, key) in due:
                # Stamps reach back at most reach_us from when a read came, which was after the look before this one.
                low = max(true_us - self.reach_us, previous_us - self.reach_us)
                visits.read(key, self.chance.randint(min(low, true_us), true_us),
                            self.chance.randint(true_us, true_us + self.reach_us), number)  # fmt: skip
            clear_us = now_us - self.reach_us if not waiting else min(now_us, waiting[0][1][0]) - self.reach_us
            changes += visits.advance(clear_us, now_us if blind else over, now_us)
            previous_us = max(previous_us, clear_us + self.reach_us)
        return changes


def check(site, changes, whole):
    """Every interval holds the truth; whole: every read counts."""
    rows, reads = defaultdict(list), defaultdict(list)
    for change in changes:
        rows[change.key].append(change)
    for at, key in site.reads:
        reads[key].append(at)
    for key, row in rows.items():
        assert [c.event for c in row] == [ENTER, LEAVE] * (len(row) // 2)
        for enter, leave in zip(row[::2], row[1::2], strict=True):
            assert enter.visit == leave.visit
            first_us, last_us = site.reads[enter.mark][0], site.reads[leave.mark][0]
            assert leave.earliest_us <= last_us
            # The visit ends with the stay of its last read, or with one behind it that nobody read.
            left = [end for begin, end in site.stays[key] if leave.earliest_us <= end <= leave.latest_us]
            stay = next(stay for stay in site.stays[key] if stay[0] <= last_us <= stay[1])
            assert left
            if whole:
                assert stay[1] in left or any(begin > stay[1] for begin, _ in site.stays[key])
                entered = min(at for at in reads[key] if at >= enter.earliest_us)
                assert entered <= enter.latest_us
                assert any(leave.stay_us[0] <= end - entered <= leave.stay_us[1] for end in left)
            assert enter.earliest_us <= first_us
        for leave, enter in zip(row[1::2], row[2::2], strict=False):
            assert leave.latest_us <= enter.earliest_us or not whole


@settings(max_examples=examples(100), deadline=None)
@given(st.integers(0, 2**32))
def test_the_true_first_read_and_the_true_leave_lie_in_their_intervals(seed):
    """
    tag      ======   ==================           there
    reader   looks---------|unplugged|----looks    silence of an unplugged reader is no absence
    """
    site = Site(seed)
    visits = Visits(site.leave_us)
    check(site, site.run(visits), True)
    assert visits.present == 0
    assert (visits.late, visits.hurried, visits.untracked) == (0, 0, 0)


def test_many_sites_hold_their_truth():
    """Many random sites without a search for the worst case: each interval of a leave contains the true leave."""
    leaves, tried = 0, seeds(1000)
    for seed in tried:
        site = Site(f"site {seed}")
        changes = site.run(Visits(site.leave_us))
        check(site, changes, True)
        leaves += sum(c.event == LEAVE for c in changes)
    assert leaves > 5 * len(tried)


@settings(max_examples=examples(100), deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 3))
def test_with_more_tags_than_it_remembers_reported_visits_are_still_true(seed, tags_max):
    """Some visits are not reported and their reads are counted; reported visits begin no later than they truly did."""
    site = Site(seed)
    visits = Visits(site.leave_us, tags_max=tags_max)
    changes = site.run(visits)
    check(site, changes, False)
    for change in changes:
        if change.event == ENTER:
            begun = [stay for stay in site.stays[change.key] if stay[1] >= change.earliest_us]
            assert begun[0][0] <= change.latest_us
    assert sum(c.reads for c in changes if c.event == LEAVE) + visits.untracked == len(site.reads)


def test_reads_beyond_the_waiting_room_are_taken_at_once_and_counted():
    """A clear moment that does not move holds no more than the room."""
    visits = Visits(S)
    visits.advance(0, 0, 0)
    for n in range(MAX_WAITING + 5):
        visits.read("a", n, n)
    [enter] = visits.advance(0, 0, 0)
    assert (visits.hurried, enter.earliest_us) == (5, 0)
    visits.read("a", -1, 0)
    assert visits.late == 1
    assert visits.finish() == []


def test_an_expected_tag_that_is_absent_is_reported_once_when_the_reader_has_scanned():
    """
    reader  |unplugged|----looks for leave_us----|
    a                  never                     absent in this look
    b                          read
    """
    visits = Visits(S, ("b", "a"))
    assert visits.advance(S, S, S) == []
    assert visits.advance(3 * S, 3 * S, 3 * S) == []
    visits.read("b", 3 * S + 5, 3 * S + 9)
    [enter] = visits.advance(4 * S, 3 * S, 4 * S)
    assert (enter.event, enter.key) == (ENTER, "b")
    assert visits.advance(4 * S + 1, 3 * S, 4 * S) == []  # it may be dead since 4 s
    [absent] = visits.advance(4 * S + 2, 3 * S, 4 * S + 2)
    assert (absent.event, absent.key, absent.earliest_us, absent.latest_us) == (ABSENT, "a", 3 * S, 4 * S + 1)
    assert [c.event for c in visits.advance(9 * S, 3 * S, 9 * S)] == [LEAVE]
    assert visits.advance(20 * S, 3 * S, 20 * S) == []
