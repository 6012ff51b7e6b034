"""Pairs of readings from two streams that satisfy a timing condition with probability at least ct.

`condition` defines the probability and the intervals that can never match, `batch` finds all pairs of two arrays of
intervals, `pairs` converts pairs to result rows, and `stream` does the same for readings as they arrive. The package
depends on neither Spark, files nor clocks. Importing it loads numpy but not numba. `operator`, the papers' algorithms, is
loaded with its module on first use.
"""

from typing import TYPE_CHECKING

from whenabouts_cloud.correlation.batch.api import correlate, count_pairs
from whenabouts_cloud.pattern.condition import Condition

if TYPE_CHECKING:
    from whenabouts_cloud.research.operators import operator

__all__ = ["Condition", "correlate", "count_pairs", "operator"]

if not TYPE_CHECKING:

    def __getattr__(name):
        """Load `operator`, or a submodule."""
        from whenabouts_protocol.lazy import load

        if name == "operator":
            return load("whenabouts_cloud.research", name, (("operators", name),))
        return load(__name__, name, ())
