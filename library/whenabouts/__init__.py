"""Readings whose clocks cannot be trusted, in the frames that you have: pandas, Polars, PyArrow, DuckDB, Spark.

    correlate            pairs of two frames that happened close to each other, as surely as you ask
    detect               rows of one frame that happened in an order, or did not
    verdicts             conditions that held at one moment in several places, certainly or possibly
    within_probability   the probability that two times are as far apart as a condition says, as a column
    explain, plot        why a row is a pair, a match or a verdict, or why it is none
    interval             from timestamps and an error to the times between which each reading surely happened
    read_landing         the readings of a landing, from a folder or a bucket
    epc, epc_names       the name that a tag's EPC memory holds; those of a column of tags

A result is of the same kind as what you gave. Everything is loaded at its first use.

>>> import pyarrow as pa, whenabouts as wa
>>> dock = pa.table({"key": ["x"], "t_min": [0], "t_max": [100_000]})
>>> door = pa.table({"key": ["x"], "t_min": [500_000], "t_max": [600_000]})
>>> wa.correlate(dock, door, "|@a - @b| <= 2 s OVER 80 %", on="key").to_pylist()[0]["probability"]
1.0
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from whenabouts.columns import within_probability
    from whenabouts.explanations import Explanation, explain
    from whenabouts.frames.kinds import FrameError
    from whenabouts.held import verdicts
    from whenabouts.intervals import interval
    from whenabouts.landings import read_landing
    from whenabouts.matches import detect
    from whenabouts.pairs import correlate
    from whenabouts.pictures import plot
    from whenabouts.tag_columns import epc_names
    from whenabouts_cloud.epc.tag_names import EpcError, EpcName, epc

__all__ = [
    "EpcError",
    "EpcName",
    "Explanation",
    "FrameError",
    "correlate",
    "detect",
    "epc",
    "epc_names",
    "explain",
    "interval",
    "plot",
    "read_landing",
    "verdicts",
    "within_probability",
]

_HOMES = {
    "FrameError": "whenabouts.frames.kinds",
    "interval": "whenabouts.intervals",
    "read_landing": "whenabouts.landings",
    "detect": "whenabouts.matches",
    "verdicts": "whenabouts.held",
    "within_probability": "whenabouts.columns",
    "Explanation": "whenabouts.explanations",
    "explain": "whenabouts.explanations",
    "plot": "whenabouts.pictures",
    "correlate": "whenabouts.pairs",
    "EpcError": "whenabouts_cloud.epc.tag_names",
    "EpcName": "whenabouts_cloud.epc.tag_names",
    "epc": "whenabouts_cloud.epc.tag_names",
    "epc_names": "whenabouts.tag_columns",
}

if not TYPE_CHECKING:

    def __getattr__(name):
        """A name of `__all__`, loaded with its module."""
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        value = globals()[name] = getattr(import_module(_HOMES[name]), name)
        return value


def __dir__() -> list[str]:
    return __all__
