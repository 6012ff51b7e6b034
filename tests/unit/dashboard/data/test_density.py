"""The histogram counts exactly, at any width that is a multiple of its buckets, however full it was."""

import numpy as np
import pytest

from support import search
from whenabouts_cloud.dashboard.data import density as density_module
from whenabouts_cloud.dashboard.data.density import Density


def by_hand(lanes, middles, wanted, from_us, column_us, columns):
    """Counts, reading by reading."""
    found = [[0] * columns for _ in wanted]
    for lane, middle in zip(lanes, middles, strict=True):
        at = (middle - from_us) // column_us
        if lane in wanted and 0 <= at < columns:
            found[wanted.index(lane)][at] += 1
    return found


@pytest.mark.parametrize("part", [3, 65_536])
@pytest.mark.parametrize("most", [10, 100, 100_000])
@pytest.mark.parametrize("seed", search.seeds(8))
def test_counts_are_those_of_the_definition(most, seed, part, monkeypatch):
    """In any order of arrival, at each prefix, with as many entries as fit, merged in many parts or in one."""
    monkeypatch.setattr(density_module, "PART", part)
    rng = np.random.default_rng([seed, most])
    density, lanes, middles = Density(most), [], []
    for _ in range(6):
        count = int(rng.integers(1, 60))
        spread_us = int(rng.choice([10**5, 10**7]))  # few buckets a reading, and many
        new = rng.integers(0, 4, count).astype(np.int32), rng.integers(0, spread_us, count)
        density = density.added(*new)
        lanes += new[0].tolist()
        middles += new[1].tolist()
        assert len(density) <= most
        column = 2 ** int(rng.integers(density.shift, density.shift + 4))
        begin = int(rng.integers(0, 5)) * column
        wanted = [2, 0]
        assert density.aligned(begin, column)
        found = density.counts(wanted, begin, column, 40)
        assert found.tolist() == by_hand(lanes, middles, wanted, begin, column, 40)


def test_columns_within_a_bucket_are_not_aligned():
    """Who asks learns that the counts are not exact."""
    density = Density()
    assert not density.aligned(0, 1000)
    assert not density.aligned(512, 1024)
    assert density.aligned(-2048, 4096)


def test_times_that_it_cannot_hold_are_counted_apart():
    """Before 1970, after 2255, and readings without a lane."""
    density = Density().added(np.array([0, 0, -1, 0], np.int32), np.array([-1, 2**53, 5, 5]))
    assert density.outside == 3
    assert density.counts([0], 0, 1024, 1).tolist() == [[1]]
