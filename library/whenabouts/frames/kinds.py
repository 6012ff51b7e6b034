"""Which kind a frame is, and results of that kind. narwhals knows frames without loading their libraries.

eager    pandas, Polars, PyArrow (and what else narwhals knows): rows are taken where they are
lazy     Polars' LazyFrame and DuckDB's relations: collected, and given back as they came
spark    classic and Connect: nothing is collected
"""

import uuid
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import narwhals as nw

Kind = Literal["eager", "lazy", "spark"]


class FrameError(ValueError):
    """A frame that cannot be used. The text names it, and says what was found and what was expected."""


class Given(NamedTuple):
    """A frame as a caller gave it. name: that of the argument. rows: eager, also of a lazy frame. back: makes a frame of the
    caller's kind from an eager one.
    """

    name: str
    kind: Kind
    native: Any
    rows: "nw.DataFrame[Any] | None"
    back: Callable[["nw.DataFrame[Any]"], Any]

    @property
    def columns(self) -> list[str]:
        """The names of its columns."""
        return list(self.native.columns) if self.rows is None else self.rows.columns


def given(frame: Any, name: str) -> Given:
    """What kind of frame this is. Collects a lazy frame, which takes memory for all of its rows.

    Raises:
        FrameError: it is no frame, or two of its columns have one name.
    """
    checked(frame, name)
    if type(frame).__module__.startswith("pyspark.sql"):
        return Given(name, "spark", frame, None, _native)
    wrapped: Any = nw.from_native(frame)
    if isinstance(wrapped, nw.DataFrame):
        return Given(name, "eager", frame, nw.maybe_reset_index(wrapped), _native)
    if wrapped.implementation.is_duckdb():
        rows = nw.from_native(frame.to_arrow_table().combine_chunks(), eager_only=True)
        return Given(name, "lazy", frame, rows, lambda made: _relation(frame, made))
    collected = wrapped.collect()
    return Given(name, "lazy", frame, collected, lambda made: made.lazy().to_native())


def _names(frame: Any) -> list[Any]:
    """The names of columns of frames that may have one twice."""
    library = type(frame).__module__.partition(".")[0]
    if library == "pyarrow":
        return list(getattr(frame, "column_names", ()))
    known = library in ("pandas", "pyspark", "duckdb", "_duckdb") and hasattr(frame, "columns")
    return list(frame.columns) if known else []


def checked(frame: Any, name: str) -> None:
    """Raise FrameError unless it is a frame whose columns have a name each."""
    names = _names(frame)
    strange = [one for one in names if not isinstance(one, str)]
    if strange:
        raise FrameError(f"{name}: found a column with the name {strange[0]!r}, expected texts as names; rename it")
    twice = sorted({one for one in names if names.count(one) > 1})
    if twice:
        raise FrameError(f"{name}: found the column {twice[0]!r} twice, expected each name once")
    try:
        nw.from_native(frame)
    except TypeError:
        raise FrameError(
            f"{name}: found {type(frame).__name__}, expected a frame of pandas, Polars, PyArrow, DuckDB or Spark"
        ) from None


def same_kind(a: Given, b: Given) -> None:
    """Raise FrameError unless both are frames of one library."""
    if a.kind != b.kind or type(a.native).__module__.partition(".")[0] != type(b.native).__module__.partition(".")[0]:
        raise FrameError(
            f"{b.name}: found {_described(b.native)} beside {_described(a.native)} as {a.name}, expected two of one kind"
        )


def _described(frame: Any) -> str:
    return f"{type(frame).__module__.partition('.')[0].lstrip('_')}'s {type(frame).__name__}"


def _native(made: "nw.DataFrame[Any]") -> Any:
    return made.to_native()


def _relation(frame: Any, made: "nw.DataFrame[Any]") -> Any:
    """A relation of the same connection as another one. DuckDB finds the table among this module's names, by one that no
    table of the caller has.
    """
    name = f"whenabouts_{uuid.uuid4().hex}"
    globals()[name] = made.to_native()
    try:
        return frame.query(f"{name}_given", f"SELECT * FROM {name}").set_alias("whenabouts_result")
    except Exception as error:
        if type(error).__name__ != "CatalogException":
            raise
        raise FrameError(
            "result: found python_enable_replacements switched off in DuckDB, expected it on: without it no Arrow table "
            "gets into the connection of a relation"
        ) from None
    finally:
        del globals()[name]
