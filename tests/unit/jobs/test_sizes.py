"""The sizes of shards, measured in parts, give cuts that divide the readings evenly."""

import numpy as np
import pyarrow as pa
import pytest

from support.cep.landing import rule as order
from support.cloud.landing import reading, table
from whenabouts_cloud.jobs.engines.cep import CEP
from whenabouts_cloud.jobs.reading.packing import SIZES, Packing
from whenabouts_cloud.jobs.reading.sizes import SAMPLES, sizes_in
from whenabouts_cloud.landing.scan import encoded


def measured(parts, shards=1):
    """The sizes of shards from tables that different tasks have read."""
    work = Packing(CEP, {0: order("inner")}, shards, measured=[0])
    rows = [row for part in parts for batch in work.readings(part) for row in batch.to_pylist()]
    return sizes_in(row["rows"] for row in rows if row["table"] == SIZES)


def events(times, length=0):
    """Readings of the rule's first stream at these times."""
    rows = table(reading("g", n, "shelf/1", "k", int(t), int(t) + length) for n, t in enumerate(times))
    return rows.cast(encoded(rows.schema.names))


@pytest.mark.parametrize("spread", ["even", "burst", "one from 1970"])
def test_cuts_divide_the_readings_evenly_whatever_their_times(spread):
    """Three parts of different size; each piece has its share, within what samples allow."""
    rng = np.random.default_rng(1)
    times = rng.integers(0, 10**12, 9000)
    if spread == "burst":
        times[:8000] = 5 * 10**11 + rng.integers(0, 8000, 8000)
    if spread == "one from 1970":
        times = times + 10**15
        times[0] = 0
    [size] = measured(events(part, 7) for part in np.split(times, [500, 3000])).values()
    assert (size.count, size.longest_us) == (9000, 8)
    pieces = np.histogram(times, [-1, *size.cuts(6), 2 * 10**15])[0]
    assert abs(pieces - 1500).max() < 9000 / SAMPLES * 3


def test_stamps_of_all_time_and_shards_without_readings():
    """A clock that is not bounded; a part without a reading of the rule."""
    [size] = measured([events([-(1 << 63)], (1 << 63) - 1), events([])]).values()
    assert size.count == 1
    assert size.longest_us > 1 << 58
    assert size.cuts(1) == []
    assert measured([pa.concat_tables([events([])])]) == {}
