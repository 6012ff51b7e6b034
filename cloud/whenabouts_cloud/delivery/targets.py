"""Table of the kinds of targets, and those of other packages: entry points of the group `whenabouts.sinks`.

The name of an entry point is the kind, and the scheme of its URIs; its object is a `target.Factory`. In a package's
pyproject.toml:

    [project.entry-points."whenabouts.sinks"]
    acme = "acme_sink:Acme"

Packages are searched only for a kind that is not built in.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.metadata import entry_points
from typing import cast

from whenabouts_cloud.delivery.target import Factory, Target
from whenabouts_cloud.delivery.uri import TargetError, scheme_of, shown

GROUP = "whenabouts.sinks"
PARQUET = "parquet"  # the output folder itself
UNIT = "{unit}"  # in a URI: pairs, matches, counts or verdicts
# Modules are imported when a target of their kind is made.
BUILT_IN = {
    "postgres": "postgres:Postgres",
    "delta": "delta:Delta",
    "mqtt": "mqtt:Mqtt",
    "webhook": "webhook:Webhook",
    "epcis": "capturing.capture:Capture",
    "kafka": "kafka:Kafka",
}
_KIND_OF = {"postgresql": "postgres", "mqtts": "mqtt", "http": "webhook", "https": "webhook"}  # of a scheme
TABLES = frozenset({"postgres", "delta"})  # kinds whose results must have the same columns


def kind_of(uri: str) -> str:
    """The kind of target that a URI names."""
    return _KIND_OF.get(scheme_of(uri), scheme_of(uri))


def chosen(text: str, kind: str | None = None) -> str | None:
    """The URI of a target as it was chosen; None for `parquet`, which is always there.

    Raises:
        TargetError: it names no kind of target, or another one than `kind`.
    """
    if PARQUET in (kind, text):
        if text not in ("", PARQUET):
            raise TargetError(f"parquet: found {shown(text)}, expected nothing after it: the folder is given by --out")
        return None
    if kind is not None and kind_of(text) != kind:
        raise TargetError(f"{kind}: found {shown(text) if text else 'no URI'}, expected a URI of this kind of target")
    _factory(kind_of(text), text)
    return text


def open_target(uri: str, unit: str) -> Target:
    """Make a target, without connecting.

    Raises:
        TargetError: it cannot be used as it is written, or its client library is missing.
    """
    try:
        return _factory(kind_of(uri), uri)()(uri, unit)
    except TargetError as error:
        raise TargetError(str(error) if str(error).startswith(shown(uri)) else f"{shown(uri)}: {error}") from None


def _factory(kind: str, uri: str) -> Callable[[], Factory]:
    if kind in BUILT_IN:
        module, _, name = BUILT_IN[kind].partition(":")
        return lambda: cast(Factory, getattr(import_module(f"{__package__}.{module}"), name))
    points: Mapping[str, str] = {point.value: point.name for point in entry_points(group=GROUP, name=kind)}
    if len(points) > 1:
        raise TargetError(f"{kind}: found packages that both bring it ({', '.join(sorted(points))}), expected one")
    for point in entry_points(group=GROUP, name=kind):
        return lambda: cast(Factory, point.load())
    known = ", ".join([PARQUET, *BUILT_IN])
    raise TargetError(f"{shown(uri) if ':' in uri else kind}: found no such kind of target, expected one of {known}")
