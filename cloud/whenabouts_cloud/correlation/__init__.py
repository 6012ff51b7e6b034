"""Pairs of readings from two streams that satisfy a timing condition with probability at least ct.

`condition` defines the probability and the intervals that can never match, `batch` finds all pairs of two arrays of
intervals, `pairs` converts pairs to result rows, and `stream` does the same for readings as they arrive. The package
depends on neither Spark, files nor clocks. Importing it loads numpy but not numba.
"""

from whenabouts_cloud.correlation.batch.api import correlate, count_pairs
from whenabouts_cloud.pattern.condition import Condition
from whenabouts_cloud.research.operators import operator

__all__ = ["Condition", "correlate", "count_pairs", "operator"]
