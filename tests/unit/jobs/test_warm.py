"""The machine code that a setup makes ahead."""

import numpy as np

from whenabouts_cloud import result_ids
from whenabouts_cloud.cep import Pattern, engine
from whenabouts_cloud.cep.kernel.block import feed_block
from whenabouts_cloud.cep.shard import match_columns
from whenabouts_cloud.warm import warm


def test_what_is_compiled_ahead_is_what_jobs_use():
    """After it, an ordinary feed of points compiles nothing more."""
    warm()
    assert match_columns._fill.signatures
    assert result_ids._combine.signatures
    before = len(feed_block.signatures)
    running = engine(Pattern.parse("SEQ(A, B) WITHIN 3", unit_us=1), ["A", "B"], k=1)
    running.feed(np.array([0, 1]), np.array([4, 4]), np.array([1, 2]))
    assert len(feed_block.signatures) == before > 0
