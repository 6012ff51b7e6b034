"""Input that the engines of every method refuse alike: wrong columns, numbers and names, and damaged snapshots."""

import random

import numpy as np
import pytest

from whenabouts_cloud.cep import Pattern, detect, engine
from whenabouts_cloud.cep.count.counter import counter
from whenabouts_cloud.cep.kernel.layout import FOREVER, NEVER
from whenabouts_cloud.cep.runtime.checksum import opened, with_checksum
from whenabouts_cloud.cep.runtime.validate import moment

NAMES = ["A", "B", "C", "D"]
PATTERN = Pattern.parse("SEQ(A, B, !C, D) WITHIN 40")
METHODS = ("infa_hts", "kslack", "conservative", "aggressive")
WRONG = {
    "a fraction": {"t": [1.5]},
    "not a number": {"t": [float("nan")]},
    "a fraction as a source": {"source": [0.5]},
    "one number": {"t": 1},
    "rows of rows": {"key": [[1]]},
    "text": {"key": ["x"]},
    "truth": {"type_code": [True]},
    "dates": {"t": np.array(["2020-01-01"], "datetime64[us]")},
    "objects": {"t": np.array([1], object)},
    "nothing": {"t": None},
    "more than 64 bits": {"t": [1 << 70]},
    "what would turn negative": {"t": np.array([(1 << 64) - 1], np.uint64)},
    "beyond time": {"t": [-(1 << 63)]},
    "another length": {"key": [1, 2]},
    "no such type": {"type_code": [4]},
    "a type below the first": {"type_code": [-1]},
}


def made(method, **options):
    """An engine of the method."""
    return engine(PATTERN, NAMES, method=method, **{"k": 5, **options})


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("wrong", WRONG)
def test_columns_that_are_none_are_refused_by_every_method(method, wrong):
    """With the name of the column, what was found and what was expected; and nothing is taken in."""
    one = made(method, order="source", sources=[0, 1])
    before = one.snapshot()
    columns = {"type_code": [0], "key": [1], "t": [1], "source": [0]} | WRONG[wrong]
    [name] = WRONG[wrong]
    with pytest.raises(ValueError, match=f"^{name}: found .*, expected .+"):
        one.feed(**columns)
    assert one.snapshot() == before
    if name != "source":
        with pytest.raises(ValueError, match=f"^{name}: found .*, expected .+"):
            counter(PATTERN, NAMES, order="source").feed(**columns)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("frontier", [1.5, float("nan"), None, "5", {0: 1.5}, {0: None}, {"a": 1}])
def test_frontiers_that_are_no_ticks_are_refused_by_every_method(method, frontier):
    """They are neither truncated to whole ones nor taken for another; the frontier does not move."""
    one = made(method, order="source", sources=[0, 1])
    before = one.snapshot()
    with pytest.raises(ValueError, match=r"^(frontier|source): found .+, expected a whole number"):
        one.advance(frontier)
    assert one.snapshot() == before


@pytest.mark.parametrize("method", METHODS)
def test_a_frontier_by_source_needs_the_order_of_sources(method):
    """Under a K-bound there are none: it would be silently without effect."""
    with pytest.raises(ValueError, match="frontier by source: found order kbound"):
        made(method).advance({0: 5})


@pytest.mark.parametrize("method", METHODS)
def test_a_frontier_beyond_all_times_is_the_end_or_nothing(method):
    """However many bits it takes."""
    for far in (1 << 80, {0: 1 << 80, 1: 1 << 80}):
        one = made(method, order="source", sources=[0, 1])
        one.feed([0, 1, 3], [0, 0, 0], [1, 2, 3], [0, 0, 1])
        one.advance(-(1 << 80))
        one.advance({0: -(1 << 80)})
        emitted = [*one.advance(far).matches.tolist(), *one.finish().matches.tolist()]
        assert emitted == ([] if method == "aggressive" else [[0, 1, 2]])
        assert one.feed([0], [0], [100], [0]).late.tolist() == [3]


@pytest.mark.parametrize("method", METHODS)
def test_after_the_end_every_event_is_late(method):
    """`finish` declared that no more events would come."""
    one = made(method)
    one.finish()
    assert one.feed([0], [0], [100]).late.tolist() == [0]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"k": 1.5}, "k: found 1[.]5, expected a whole number"),
        ({"k": "5"}, "k: found '5', expected a whole number"),
        ({"k": 1 << 61}, "k: found 2305843009213693952, expected ticks"),
        ({"k": -1}, "k: found -1, expected ticks"),
        ({"emit": "soon"}, "emit: found 'soon', expected sure or arrival"),
        ({"order": "source", "sources": "ab"}, "sources: found 'a', expected a whole number"),
    ],
)
def test_options_are_checked_alike_by_every_method(method, options, text):
    """Also those that a method makes no use of."""
    with pytest.raises(ValueError, match=text):
        made(method, **options)


def test_detect_looks_at_the_length_of_sources():
    """A column that does not belong to the others is a mistake of the caller."""
    with pytest.raises(ValueError, match="source: found int64 of shape"):
        detect(PATTERN, NAMES, [0], [1], [1], source=[1, 2])


@pytest.mark.parametrize("method", [*METHODS, "counted"])
def test_a_damaged_snapshot_is_refused(method):
    """With any bit flipped and cut at any place: in damaged arrays machine code could loop forever."""
    one = counter(PATTERN, NAMES, k=5) if method == "counted" else made(method)
    one.feed([0, 1, 3, 0], [0, 0, 0, 1], [1, 2, 3, 4])
    whole = one.snapshot()
    restore = counter.restore if method == "counted" else engine.restore
    chance = random.Random(4)
    damaged = [whole[: chance.randrange(len(whole))] for _ in range(50)] + [whole + b"xx", b"PK\x03\x04"]
    for _ in range(200):
        changed = bytearray(whole)
        changed[chance.randrange(len(whole))] ^= 1 << chance.randrange(8)
        damaged.append(bytes(changed))
    for blob in damaged:
        with pytest.raises(ValueError, match="snapshot: found "):
            restore(blob)
    assert restore(whole).snapshot() == whole


def test_parts_have_one_checksum():
    """A checksum behind them; nothing at all has one too."""
    assert bytes(opened(with_checksum([b"ab", b"", b"c"]))) == b"abc"
    assert with_checksum([b"ab", b"c"]) == with_checksum([b"abc"])
    assert bytes(opened(with_checksum([]))) == b""


def test_moments_stay_within_the_beginning_and_the_end():
    """So that sums of a few of them fit."""
    assert [moment("t", x) for x in (-(1 << 80), -5, np.int64(7), 1 << 80)] == [NEVER, -5, 7, FOREVER]


@pytest.mark.parametrize("unit_us", [0, -1, 1.5, "s"])
def test_a_unit_is_a_number_of_microseconds(unit_us):
    """A window of none or less would match nothing, silently."""
    with pytest.raises(ValueError, match="unit_us: found"):
        Pattern.parse("SEQ(A, B) WITHIN 4", unit_us=unit_us)


def test_a_pattern_outside_a_rule_takes_no_count():
    """A clause that only a rule may have is reported like any other misplaced word."""
    with pytest.raises(ValueError, match=r"pattern:1:21: found COUNT, expected the end of the declaration"):
        Pattern.parse("SEQ(A, B) WITHIN 10 COUNT")
