"""Sliding windows over the states of a group of processes without a common clock: which global states were possible.

After Yang, Huang, Cao, Ma, Lu, "Design of a Sliding Window over Asynchronous Event Streams" (arXiv 1111.3022, 2011).
"""

from whenabouts_cloud.latwin.box import LimitError
from whenabouts_cloud.latwin.conjunction import ConjunctionDetector, Verdict, Verdicts
from whenabouts_cloud.latwin.lattice import LatWin
from whenabouts_cloud.latwin.predicate import All, Any, AtLeast, Local, Not, Predicate, Related

__all__ = [
    "LatWin", "ConjunctionDetector", "Verdict", "Verdicts", "LimitError",
    "Predicate", "Local", "Related", "All", "Any", "Not", "AtLeast",
]  # fmt: skip
