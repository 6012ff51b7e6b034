"""Which pairs of readings from two streams satisfy a timing condition with probability at least ct.

`condition` says what that means and what can never match, `batch` finds all pairs of two arrays of intervals, `pairs` turns
pairs into result rows, `online` does the same for readings that arrive bit by bit. Nothing here knows Spark, files or
clocks. Importing this package loads numpy but not numba.
"""

from whenabouts_cloud.correlation.batch.api import correlate, count_pairs
from whenabouts_cloud.pattern.condition import Condition
from whenabouts_cloud.research.operators import operator

__all__ = ["Condition", "correlate", "count_pairs", "operator"]
