"""Sizes of searches: a share of their examples in `make test`, all of them and more in `make test-deep`.

A test states the number of examples that finds its kind of mistake with good odds. The quick run draws an eighth of it, the
deep run three times the number, from the seed that it prints. Tests under the marker `deep` run only in the deep run.
"""

import os
from random import Random

SEED = os.environ.get("WHENABOUTS_DEEP", "")  # the seed of a deep run; empty in a quick one
QUICK_SHARE = 8
QUICK_MIN = 5
DEEP_TIMES = 3


def examples(stated: int) -> int:
    """Number of examples that a search draws if it states this number."""
    return DEEP_TIMES * stated if SEED else min(stated, max(QUICK_MIN, stated // QUICK_SHARE))


def seeds(stated: int) -> list[int]:
    """The seeds of a search that states this number: always the first ones, in a deep run also others."""
    if not SEED:
        return list(range(examples(stated)))
    more = Random(f"{SEED} {stated}")
    return [*range(stated), *(more.randrange(1 << 32) for _ in range(examples(stated) - stated))]
