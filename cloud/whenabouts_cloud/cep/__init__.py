"""Complex events: sequences of events per key, detected exactly and as early as possible though events arrive out of order.

The engine's modules are loaded at its first use, so patterns, and the commands that only read them, do without numba.
"""

from typing import TYPE_CHECKING

from whenabouts_cloud.language.pattern import Pattern

if TYPE_CHECKING:
    from whenabouts_cloud.cep.methods import detect, engine
    from whenabouts_cloud.cep.runtime.infa_hts import EngineLimitError as LimitError
    from whenabouts_cloud.cep.runtime.output import Out

__all__ = ["LimitError", "Out", "Pattern", "detect", "engine"]

if not TYPE_CHECKING:

    def __getattr__(name):
        """A name of `__all__`, loaded with its module."""
        from whenabouts_protocol.lazy import load

        homes = (("methods", "detect engine"), ("runtime.infa_hts", "EngineLimitError"), ("runtime.output", "Out"))
        return load(__name__, "EngineLimitError" if name == "LimitError" else name, homes)
