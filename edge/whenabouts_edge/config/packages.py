"""Readers of other packages: entry points of the group `whenabouts.readers`.

The name of the entry point is the kind in a configuration, its object a `whenabouts_hardware.Reader` with `tags`, like
the `READER` of a built-in kind. In a package's pyproject.toml:

    [project.entry-points."whenabouts.readers"]
    acme = "acme_reader:READER"

Packages are searched only when a configuration names a kind that is not built in. A faulty package does not affect
others: `register_readers` returns the reason for its kind. A package never replaces a built-in kind, and if two
packages define the same kind, neither is used.
"""

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from whenabouts_edge.config.settings import READER
from whenabouts_hardware import READERS, Decoder, Reader
from whenabouts_protocol.reading import is_text

GROUP = "whenabouts.readers"


@cache
def register_readers() -> dict[str, str]:
    """Register the kinds of all installed packages, once a process; returns the fault of each unusable kind."""
    by_kind: dict[str, list[EntryPoint]] = {}
    for point in entry_points(group=GROUP):
        by_kind.setdefault(point.name, []).append(point)
    problems = {}
    for kind, points in by_kind.items():
        problem = _register(kind, points)
        if problem:
            problems[kind] = problem
    return problems


def _register(kind: str, points: list[EntryPoint]) -> str:
    names = ", ".join(sorted({_package(point) for point in points}))
    if kind in READERS:
        return f"which is built in and not taken from package {names}"
    if len({point.value for point in points}) > 1:
        return f"which packages {names} bring both; remove one"
    try:
        reader = points[0].load()
        problem = _problem(reader)
    except Exception as error:  # a package may raise anything when imported; the other readers must work
        problem = f"{type(error).__name__}: {error}"
    if problem:
        return f"whose package {names} cannot be used ({points[0].value}: {problem})"
    READERS[kind] = reader
    return ""


def _problem(reader: Any) -> str:
    """The fault of a reader as text; empty if an agent can use it."""
    if not isinstance(reader, Reader):
        return f"found {type(reader).__name__}, expected whenabouts_hardware.Reader"
    if reader.tags is None:
        return "found a Reader without tags, expected a function for the tags of a frame"
    for key, entry in reader.own_keys.items():
        if key in READER and not any(key in one.own_keys for one in READERS.values()):
            return f"found own key {key!r}, expected a name that not every reader has"
        if len(entry) != 4 or not (type(entry[0]) is type(entry[1]) is int and is_text(entry[2])):
            return f"found own key {key!r} with {entry!r}, expected (least, most, description, example)"
    if not is_text(reader.latency_source) or type(reader.latency_us) is not int or reader.latency_us < 0:
        return f"found latency_us {reader.latency_us!r}, expected microseconds and their source"
    made = reader.new_decoder()
    if not isinstance(made, Decoder):
        return f"decoder gave {type(made).__name__}, expected a whenabouts_hardware.Decoder"
    return ""


def _package(point: EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist else "unknown"
