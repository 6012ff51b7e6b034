"""Complex events: sequences of events per key, told exactly and as early as can be, though events arrive out of order.

What an engine needs is loaded when one is asked for: patterns alone, and the commands that only read them, do without numba.
"""

import importlib
from typing import TYPE_CHECKING, Any

from whenabouts_cloud.language.pattern import Pattern

if TYPE_CHECKING:
    from whenabouts_cloud.cep.methods import detect, engine
    from whenabouts_cloud.cep.runtime.infa_hts import LimitError
    from whenabouts_cloud.cep.runtime.output import Out

__all__ = ["LimitError", "Out", "Pattern", "detect", "engine"]

_OF = {"detect": "methods", "engine": "methods", "LimitError": "runtime.infa_hts", "Out": "runtime.output"}


def __getattr__(name: str) -> Any:
    if name in _OF:
        return getattr(importlib.import_module(f"{__name__}.{_OF[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
