"""Rows of frames of all kinds, taken by position and named anew."""

import re
from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt

from whenabouts.frames.kinds import FrameError
from whenabouts.frames.taking import taken

PROBABILITY = "probability"  # column of results
PRESENT = "whenabouts_present"


def named_rows(rows: "nw.DataFrame[Any]", at: npt.NDArray[np.int64], names: dict[str, str]) -> "nw.DataFrame[Any]":
    """The rows at these positions, nulls at -1, with the columns of `names` under their new names, in their order."""
    missing = at < 0
    if not missing.any():
        return taken(rows.select(*names), at).rename(names)
    present = nw.new_series(PRESENT, ~missing, nw.Boolean(), backend=rows.implementation)
    chosen = nw.maybe_reset_index(_nullable(rows.select(*names))[np.maximum(at, 0)]).with_columns(present)
    return chosen.select(nw.when(nw.col(PRESENT)).then(nw.col(own)).alias(name) for own, name in names.items())


def _nullable(rows: "nw.DataFrame[Any]") -> "nw.DataFrame[Any]":
    """The rows with types that have nulls: in pandas NumPy's whole numbers have none, and would become fractions."""
    if not rows.implementation.is_pandas():
        return rows
    native: Any = rows.to_native()
    plain = {name: kind.name for name, kind in native.dtypes.items() if getattr(kind, "kind", "") in "iub"}
    kinds = {
        name: "boolean" if kind == "bool" else kind.replace("int", "Int").replace("u", "U")
        for name, kind in plain.items()
        if kind[0].islower()
    }
    made: nw.DataFrame[Any] = nw.from_native(native.astype(kinds), eager_only=True)
    return made


def suffix(place: str) -> str:
    """The name of a place of a match as the end of names of columns.

    >>> suffix("a"), suffix("b[1]"), suffix("shelf#2"), suffix("shelf|dock")
    ('a', 'b_1', 'shelf_2', 'shelf_dock')
    """
    return re.sub(r"\W+", "_", place).strip("_")


def once_each(names: Sequence[str], where: str, hint: str) -> None:
    """Raise FrameError if two columns of a result would have one name."""
    twice = sorted({one for one in names if names.count(one) > 1})
    if twice:
        raise FrameError(f"{where}: found columns that would both be called {twice[0]!r}; {hint}")
