"""Sliding windows over the states of a group of processes without a common clock: which global states were possible.

After Yang, Huang, Cao, Ma, Lu, "Design of a Sliding Window over Asynchronous Event Streams" (arXiv 1111.3022, 2011).
Engines are loaded on first use: commands that only read rules do not load numba.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from whenabouts_cloud.latwin.conjunction.detector import ConjunctionDetector, Verdict, Verdicts
    from whenabouts_cloud.latwin.model.predicate import All, Any, AtLeast, Local, Not, Predicate, Related
    from whenabouts_cloud.latwin.windows.box import BoxLimitError as LimitError
    from whenabouts_cloud.latwin.windows.lattice import LatWin

__all__ = [
    "LatWin", "ConjunctionDetector", "Verdict", "Verdicts", "LimitError",
    "Predicate", "Local", "Related", "All", "Any", "Not", "AtLeast",
]  # fmt: skip

if not TYPE_CHECKING:

    def __getattr__(name):
        """Return a name of `__all__`, loading its module."""
        from whenabouts_protocol.lazy import load

        homes = (
            ("conjunction.detector", "ConjunctionDetector Verdict Verdicts"),
            ("model.predicate", "All Any AtLeast Local Not Predicate Related"),
            ("windows.box", "BoxLimitError"),
            ("windows.lattice", "LatWin"),
        )
        return load(__name__, "BoxLimitError" if name == "LimitError" else name, homes)
