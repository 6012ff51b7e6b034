"""Keys are divided among shards, the same everywhere and in all versions."""

from collections import Counter

import pyarrow as pa

from whenabouts_cloud.jobs.engines.sharding import hashes, shard_of_key


def test_the_shard_of_a_key_never_changes():
    """State is divided by it: a new version must find its own."""
    texts = ["", "a", "E28011606000020000000000", "é", "a" * 5000]
    assert shard_of_key(pa.chunked_array([texts]), 1000).tolist() == [0, 199, 271, 17, 646]
    parts = [pa.array(["x", *texts]).slice(1, 2), pa.array(texts[2:]).dictionary_encode().cast(pa.string())]
    assert shard_of_key(pa.chunked_array(parts), 1000).tolist() == [0, 199, 271, 17, 646]


def test_readings_without_a_key_are_in_one_shard():
    """Also where no reading has one."""
    assert shard_of_key(pa.chunked_array([["a", None], pa.array([None], pa.string())]), 7).tolist()[1:] == [0, 0]
    assert shard_of_key(pa.chunked_array([pa.array([None], pa.string())]), 7).tolist() == [0]
    assert shard_of_key(pa.chunked_array([], pa.string()), 7).tolist() == []


def test_keys_that_count_up_are_spread_evenly():
    """100 000 tags of a maker over 8 shards: none has 5 % more than its share; no two have one hash."""
    tags = pa.array([f"E2801160600002{n:010X}" for n in range(100_000)])
    assert max(Counter(shard_of_key(pa.chunked_array([tags]), 8).tolist()).values()) < 1.05 * 100_000 / 8
    assert len(set(hashes(tags).tolist())) == 100_000
