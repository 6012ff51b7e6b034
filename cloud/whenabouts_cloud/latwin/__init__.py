"""Sliding windows over the states of a group of processes without a common clock: which global states were possible.

After Yang, Huang, Cao, Ma, Lu, "Design of a Sliding Window over Asynchronous Event Streams" (arXiv 1111.3022, 2011). What an
engine needs is loaded when one is asked for: commands that only read rules do without numba.
"""

import importlib
from typing import TYPE_CHECKING
from typing import Any as _Any

if TYPE_CHECKING:
    from whenabouts_cloud.latwin.conjunction.detector import ConjunctionDetector, Verdict, Verdicts
    from whenabouts_cloud.latwin.model.predicate import All, Any, AtLeast, Local, Not, Predicate, Related
    from whenabouts_cloud.latwin.windows.box import LimitError
    from whenabouts_cloud.latwin.windows.lattice import LatWin

__all__ = [
    "LatWin", "ConjunctionDetector", "Verdict", "Verdicts", "LimitError",
    "Predicate", "Local", "Related", "All", "Any", "Not", "AtLeast",
]  # fmt: skip

_OF = {
    "LimitError": "windows.box", "LatWin": "windows.lattice",
    **dict.fromkeys(("ConjunctionDetector", "Verdict", "Verdicts"), "conjunction.detector"),
    **dict.fromkeys(("Predicate", "Local", "Related", "All", "Any", "Not", "AtLeast"), "model.predicate"),
}  # fmt: skip


def __getattr__(name: str) -> _Any:
    if name in _OF:
        return getattr(importlib.import_module(f"{__name__}.{_OF[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
