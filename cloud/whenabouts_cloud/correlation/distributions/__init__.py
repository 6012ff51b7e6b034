"""Correlation when the true moment is not uniform in its interval: triangular, truncated normal, histogram.

A *shape* is the distribution of u in [0, 1]; an interval [t_min, t_max] with that shape means the moment t_min + (t_max -
t_min) u. Each stream has one shape; any two kinds can be combined. `shapes` and `normal` hold the kinds behind one
interface (cdf, quantile, support), `probability` computes the probability of a pair to a stated error, `quantile_bounds`
finds pairs that can never match or must match, `lookup` holds the conditions for reusing a verdict, and `shaped_join`
finds all pairs of two sets. This is the future work of "Lazy Approaches ..." (2010), section 6.
"""

from whenabouts_cloud.correlation.distributions.lookup import may_reuse, stochastically_below
from whenabouts_cloud.correlation.distributions.normal import TruncatedNormal
from whenabouts_cloud.correlation.distributions.probability import (
    PROBABILITY_ERROR,
    Shape,
    exact_probability,
    probability,
)
from whenabouts_cloud.correlation.distributions.quantile_bounds import Bounds
from whenabouts_cloud.correlation.distributions.shaped_join import correlate_distributed
from whenabouts_cloud.correlation.distributions.shapes import PiecewiseLinear, histogram, triangular, uniform

__all__ = [
    "correlate_distributed", "probability", "exact_probability", "PROBABILITY_ERROR",
    "uniform", "triangular", "histogram", "TruncatedNormal", "PiecewiseLinear", "Shape",
    "Bounds", "stochastically_below", "may_reuse",
]  # fmt: skip
