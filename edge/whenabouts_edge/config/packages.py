"""Readers that other packages bring: entry points of the group `whenabouts.readers`.

The entry point's name is the kind as a configuration writes it, its object a `whenabouts_hardware.Reader` with `tags`, as
the `READER` of a kind that is built in. In a package's pyproject.toml:

    [project.entry-points."whenabouts.readers"]
    acme = "acme_reader:READER"

They are looked for when a configuration names a kind that is not built in. A package that cannot be used takes nothing
else with it: the text that `register_readers` keeps for its kind says why. A package never takes the place of a built-in
kind, and of two that bring the same kind neither is taken.
"""

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from whenabouts_hardware import READERS, Decoder, Reader
from whenabouts_protocol.reading import is_text

GROUP = "whenabouts.readers"


@cache
def register_readers() -> dict[str, str]:
    """Make the kinds of all installed packages known, once a process; by kind what is wrong with those that are not."""
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
    except Exception as error:  # whatever a package does when it is imported, the other readers work
        problem = f"{type(error).__name__}: {error}"
    if problem:
        return f"whose package {names} cannot be used ({points[0].value}: {problem})"
    READERS[kind] = reader
    return ""


def _problem(reader: Any) -> str:
    """The text of what an agent lacks in a reader, empty if nothing."""
    if not isinstance(reader, Reader):
        return f"found {type(reader).__name__}, expected whenabouts_hardware.Reader"
    if reader.tags is None:
        return "found a Reader without tags, expected what gives the tags of a frame"
    if not is_text(reader.latency_source) or type(reader.latency_us) is not int or reader.latency_us < 0:
        return f"found latency_us {reader.latency_us!r}, expected microseconds and where they are from"
    made = reader.new_decoder()
    if not isinstance(made, Decoder):
        return f"decoder gave {type(made).__name__}, expected a whenabouts_hardware.Decoder"
    return ""


def _package(point: EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist else "unknown"
