"""Complex events: sequences of events per key, told exactly and as early as can be, though events arrive out of order.

What an engine needs is loaded when one is asked for: patterns alone, and the commands that only read them, do without numba.
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
