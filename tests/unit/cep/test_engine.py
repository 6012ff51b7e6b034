"""The engine by small examples, its errors, its limits, and that idle keys leave nothing behind."""

import numpy as np
import pytest

from whenabouts_cloud.cep import LimitError, Pattern, detect, engine
from whenabouts_cloud.cep.kernel.finality import pop, push, raise_source
from whenabouts_cloud.cep.kernel.hts import find, find_or_add, forget, packed_places, recent_from, rehash
from whenabouts_cloud.cep.kernel.layout import META
from whenabouts_cloud.cep.runtime import infa_hts
from whenabouts_cloud.cep.runtime.store import more_nodes, more_pool, more_sources, new_state
from whenabouts_cloud.jit import compiled_noref
from whenabouts_cloud.research.experiments.cep_workload import K_UNITS, UNIT, table_1
from whenabouts_cloud.research.experiments.cep_workload import TABLE_1 as TABLE_1_TEXT
from whenabouts_cloud.research.experiments.cep_workload import TYPES as NAMES

A, B, C, D = range(4)
ABNCD = Pattern.parse("SEQ(A, B, !C, D) WITHIN 40")
TABLE_1 = Pattern.parse(TABLE_1_TEXT, unit_us=UNIT)
SLACK = K_UNITS * UNIT


def workload(count, keys, late):
    """Columns of the paper's stream: type codes, keys, times."""
    stream = table_1(count, keys, late, seed=1)
    return stream.type_code, stream.key, stream.t


def feed(one, *events, **columns):
    """Events as (type, key, t)."""
    return one.feed(*np.array(events, np.int64).reshape(-1, 3).T, **columns)


def as_far_as_it_goes(one, columns):
    """(out, events taken in, what the limit said)."""
    try:
        return one.feed(*columns), len(columns[0]), None
    except LimitError as error:
        return error.out, error.taken, str(error)


def test_a_match_is_emitted_when_its_gap_is_final():
    """
    t      1    2      5          9
           A    B  !C  D          another key
    f                    (9 - 4) = 5: nothing before D can come
    """
    one = engine(ABNCD, "ABCD", k=4)
    out = feed(one, (A, 1, 1), (D, 1, 5), (B, 1, 2), (A, 2, 8), (A, 2, 9))
    assert out.matches.tolist() == [[0, 2, 1]]
    assert out.emitted_at.tolist() == [4]


def test_a_late_negated_event_is_in_time_until_the_gap_is_final():
    """
    t      1    2  3   5
           A    B  C   D      C arrives last
    """
    events = (A, 1, 1), (D, 1, 5), (B, 1, 2), (C, 1, 3)
    out = feed(engine(ABNCD, "ABCD", k=4, emit="sure"), *events)
    assert len(out.matches) == 0
    out = feed(engine(ABNCD, "ABCD", k=4, emit="arrival"), *events)
    assert (out.matches.tolist(), out.emitted_at.tolist()) == ([[0, 2, 1]], [2])
    assert (out.retractions.tolist(), out.retracted_by.tolist()) == ([[0, 2, 1]], [3])


def test_time_without_events_ends_a_trailing_negation():
    """
    t      0   1                 10   11
           A   B  no C till here  ]   f
    """
    one = engine(Pattern.parse("SEQ(A, B, !C) WITHIN 10"), "ABC", k=100)
    assert len(feed(one, (A, 1, 0), (B, 1, 1)).matches) == 0
    assert len(one.advance(10).matches) == 0
    out = one.advance(11)
    assert (out.matches.tolist(), out.emitted_at.tolist()) == ([[0, 1]], [-1])


def test_each_source_has_its_own_frontier():
    """A heartbeat of the slowest source makes gaps final; a source that is named and silent holds all back."""
    one = engine(ABNCD, "ABCD", order="source", sources=[7, 9])
    events = (A, 1, 1), (B, 1, 2), (D, 1, 5), (A, 2, 50)
    assert len(feed(one, *events, source=[7, 7, 7, 7]).matches) == 0
    assert one.frontier is None
    assert len(one.advance({9: 4}).matches) == 0
    assert one.advance({9: 5}).matches.tolist() == [[0, 1, 2]]
    assert one.frontier == 5


def test_each_match_of_several_patterns_names_its_pattern():
    """Rows are as wide as the widest."""
    one = engine([Pattern.parse("SEQ(A, B) WITHIN 9"), Pattern.parse("SEQ(A, B, D) WITHIN 9")], "ABCD", k=0)
    out = feed(one, (A, 1, 1), (B, 1, 2), (D, 1, 3))
    assert out.matches.tolist() == [[0, 1, -1], [0, 1, 2]]
    assert out.pattern.tolist() == [0, 1]


def test_detect_agrees_with_the_definition_of_a_paper_query():
    """The engine in arrival order and the batch give the same 436 matches."""
    events = workload(1000, 1, 0.5)
    matches = detect(TABLE_1, NAMES, *events)
    one = engine(TABLE_1, NAMES, k=SLACK)
    emitted = np.concatenate([one.feed(*events).matches, one.finish().matches])
    assert np.array_equal(matches, emitted[np.lexsort(emitted.T[::-1])])
    assert len(matches) > 100


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"type_code": [9]}, "type_code: found 9 .. 9, expected 0 .. 3"),
        ({"key": [1, 2]}, "key: found int64 of shape"),
        ({"t": [0.5]}, "t: found float64 of shape"),
        ({"t": [1 << 61]}, "expected -2^60 .. 2^60"),
        ({"t_max": [-1]}, "t_max of event 0: found -1, expected 0 or later"),
    ],
)
def test_bad_columns_are_refused_and_nothing_is_taken_in(change, text):
    """The error has what was found and what was expected."""
    one = engine(ABNCD, "ABCD", k=0)
    columns = {"type_code": [0], "key": [1], "t": [0]} | change
    with pytest.raises(ValueError, match=text.replace("^", r"\^").replace(".", r"\.")):
        one.feed(**columns)
    assert one.fed == 0
    assert one.counters["stored_events"] == 0


def test_arguments_are_checked():
    """Each error names what there is to choose from."""
    for wrong, text in (
        ({}, "k: found none"), ({"k": -1}, "k: found -1"), ({"k": 0, "emit": "soon"}, "emit: found 'soon'"),
        ({"k": 0, "order": "none"}, "order: found 'none'"), ({"k": 0, "method": "guess"}, "method: found 'guess'"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=text):
            engine(ABNCD, "ABCD", **wrong)
    with pytest.raises(ValueError, match="source: found none"):
        feed(engine(ABNCD, "ABCD", order="source"), (A, 1, 1))
    with pytest.raises(ValueError, match="pattern: found none"):
        engine([], "ABCD", k=0)


@pytest.mark.parametrize("blob", [b"", b"{}\n", b"[1]\nxx", b"\x00\x01"])
def test_what_is_no_snapshot_is_refused(blob):
    """With what was found."""
    with pytest.raises(ValueError, match="snapshot"):
        engine.restore(blob)


def test_a_snapshot_is_as_small_as_what_is_stored_and_goes_on_the_same():
    """A restart anywhere in a stream does not change the matches after it."""
    events = workload(20_000, 64, 0.5)
    whole = engine(TABLE_1, NAMES, k=SLACK)
    expected = whole.feed(*events)
    one = engine(TABLE_1, NAMES, k=SLACK)
    emitted = []
    for part in range(10):
        out = one.feed(*(column[part * 2000 : part * 2000 + 2000] for column in events))
        emitted.append(np.column_stack([out.emitted_at, out.matches]))
        blob = one.snapshot()
        assert len(blob) < 20_000 + 24 * one.counters["stored_events"]
        one = engine.restore(blob)
    assert np.array_equal(np.concatenate(emitted), np.column_stack([expected.emitted_at, expected.matches]))
    assert engine.restore(blob).snapshot() == blob


def test_matches_that_became_final_leave_no_places_in_a_snapshot():
    """Those that still wait, between free places, come out as they would have without the restart."""
    types, keys, t = workload(100_000, 64, 0)
    one = engine(TABLE_1, NAMES, k=1 << 60)
    one.feed(types, keys, t)
    waited = one.counters["waiting_matches"]
    one.advance(int(t[95_000]))
    waiting = one.counters["waiting_matches"]
    assert 0 < waiting < waited / 10
    blob = one.snapshot()
    assert len(blob) < 20_000 + 24 * one.counters["stored_events"] + 250 * waiting
    again = engine.restore(blob)
    assert again.counters["waiting_matches"] == waiting
    assert np.array_equal(again.finish().matches, one.finish().matches)


def test_a_million_idle_keys_leave_nothing_behind():
    """Once time has passed them, neither nodes nor events of short-lived keys are held."""
    count = 1_000_000
    one = engine(TABLE_1, NAMES, k=SLACK)
    t = np.arange(count)
    types = t % 7
    for start in range(0, count, 100_000):
        part = slice(start, start + 100_000)
        one.feed(types[part], t[part] // 2, t[part])
        assert one.counters["keys"] < 80_000  # 50 000 ticks are held, a key to every second
    peak = one.counters["state_bytes"]
    assert peak < 80_000 * 700
    one.advance(count + 100_000)
    assert one.counters["keys"] == 0
    assert one.counters["stored_events"] == 0
    assert one.counters["waiting_matches"] == 0
    assert len(one.snapshot()) < 5000


def test_state_stays_within_forty_bytes_a_stored_event():
    """Table 1, 1024 keys, half of the events late: hash table, nodes, chains and waiting matches together."""
    one = engine(TABLE_1, NAMES, k=SLACK)
    one.feed(*workload(300_000, 1024, 0.5))
    held = one.counters
    assert held["stored_events"] > 30_000
    assert held["state_bytes"] <= 40 * held["stored_events"]


@pytest.mark.parametrize(
    ("name", "limit"),
    [
        ("STORED_EVENTS", "stored events"),
        ("WAITING_MATCHES", "waiting matches"),
        ("BLOCK_MATCHES", "matches of one block"),
    ],
)
def test_at_a_limit_feed_stops_between_events_and_loses_nothing(name, limit, monkeypatch):
    """The error holds the matches of the earlier events; the rest can be fed again; the result is that without the limit."""
    events = workload(30_000, 8, 0.5)
    query = "SEQ(A, B, D) WITHIN 40" if name == "BLOCK_MATCHES" else "SEQ(A, B, !C) WITHIN 40"
    plan = Pattern.parse(query, unit_us=UNIT)
    expected = engine(plan, NAMES, k=SLACK).feed(*events)
    monkeypatch.setattr(infa_hts, name, 30)
    one = engine(plan, NAMES, k=SLACK)
    emitted, done, stops = [], 0, 0
    while done < len(events[0]):
        rest = [column[done:] for column in events]
        out, taken, said = as_far_as_it_goes(one, rest)
        assert taken > 0
        assert said is None or limit in said
        done, stops = done + taken, stops + (said is not None)
        emitted.append(np.column_stack([out.emitted_at, out.matches]))
    assert stops > 0
    assert np.array_equal(np.concatenate(emitted), np.column_stack([expected.emitted_at, expected.matches]))


def test_a_pattern_that_explodes_grows_its_buffer():
    """One event that completes 100 000 matches emits them all, in order."""
    n = 100
    one = engine(Pattern.parse("SEQ(A, B, C) WITHIN 2000"), "ABC", k=2000)
    types = [A] * n + [B] * n * 10 + [C]
    out = one.feed(types, [1] * len(types), range(len(types)))
    assert len(out.matches) == n * n * 10
    assert np.array_equal(out.matches, out.matches[np.lexsort(out.matches.T[::-1])])


def test_keys_of_one_bucket_are_distinguished_and_leave_no_holes():
    """Against a dict, with keys that collide, through additions, removals and growth."""
    random = np.random.default_rng(3)
    state = new_state(1, 1, 0, 1)
    known = {}
    for key in (random.integers(0, 400, 4000) * (1 << 33)).tolist():
        if key in known and random.random() < 0.5:
            forget(state.slots, state.nodes, state.meta, known.pop(key))
        else:
            node = int(find_or_add(state.slots, state.nodes, state.meta, key))
            if node == 0:
                state = more_nodes(state)
                node = int(find_or_add(state.slots, state.nodes, state.meta, key))
            assert known.setdefault(key, node) == node
        assert state.meta[META.nodes] == len(known)
    for key in range(400):
        assert find(state.slots, state.nodes, key << 33) == known.get(key << 33, 0)
    slots = np.zeros_like(state.slots)
    rehash(slots, state.nodes, int(state.meta[META.node_top]))
    assert {int(k): int(n) for k, n in slots if n} == known


def test_chains_take_as_much_room_when_packed_as_was_counted():
    """Of the state of a stream with a thousand keys, whose chains have been through many blocks."""
    one = engine(TABLE_1, list(NAMES), k=SLACK)
    one.feed(*workload(100_000, 1024, 0.2))
    needed, following = packed_places(one.state.nodes, one.state.meta)
    before, packed = len(one.state.pool), more_pool(one.state)
    again = packed_places(packed.nodes, packed.meta)
    assert int(packed.meta[META.pool_top]) - int(new_state(7, 6, 0, 1).meta[META.pool_top]) == needed
    assert again == (needed, following)
    assert needed + following < len(packed.pool) <= max(before, 1.1 * needed + following + 64)


def test_the_first_recent_entry_is_that_of_a_walk():
    """Also with ties, before the first and after the last."""
    pool = np.zeros((40, 2), np.int64)
    pool[:, 0] = np.sort(np.random.default_rng(5).integers(0, 30, 40))
    for t in range(-1, 32):
        for begin, end in ((0, 40), (7, 8), (3, 3), (10, 29)):
            expected = begin + int(np.searchsorted(pool[begin:end, 0], t))
            assert recent_from(pool, begin, end, t) == expected


def test_waiting_matches_come_out_by_time():
    """The heap against a sort."""
    times = np.random.default_rng(7).integers(0, 50, 200)
    heap, meta = np.zeros((200, 2), np.int64), np.zeros(64, np.int64)
    for place, when in enumerate(times.tolist()):
        push(heap, meta, when, place)
    assert [int(times[pop(heap, meta)]) for _ in times] == sorted(times.tolist())


def test_the_least_source_is_kept_through_growth():
    """The tournament against a dict; sources come in one by one."""
    random = np.random.default_rng(9)
    state = new_state(1, 1, 0, 1)
    known = {}
    for source, t in zip(random.integers(0, 20, 500).tolist(), random.integers(0, 1000, 500).tolist(), strict=True):
        if source not in known and source != len(known):
            continue
        state = more_sources(state, len(known) + 1)
        known[source] = max(known.get(source, -1), t)
        assert raise_source(state.tree, source, t) == min(known.values())


def test_functions_that_make_no_arrays_are_compiled_without_counting_references():
    """They give what Python gives."""

    @compiled_noref
    def total(numbers):
        result = 0
        for number in numbers:
            result += number
        return result

    assert total(np.arange(10)) == 45
