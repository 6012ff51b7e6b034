"""The watermarks of the micro-batch that published last.

    OUT/_watermarks.json     the newest of each start of a gateway, and up to where the micro-batch reads the landing

They are written before its results appear. A micro-batch that is killed before its commit is repeated with them: a file of
watermarks may have been damaged meanwhile, and without it a later micro-batch would emit the results again.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from whenabouts_cloud.landing.scan import newest_watermarks
from whenabouts_cloud.landing.sealing import sealed, unsealed
from whenabouts_cloud.landing.store import Store

NAME = "_watermarks.json"


class UsedWatermarks(NamedTuple):
    """end: up to where the micro-batch reads. said: its watermarks, as those of `scan.frontiers_in`."""

    end: dict[str, Any]
    said: list[dict[str, Any]]


def keep_watermarks(out: Store, end: Mapping[str, Any], said: Iterable[Mapping[str, Any]]) -> None:
    """Write the watermarks of a micro-batch durably."""
    rows = [
        {"site": site, "gateway": gateway, "boot": boot, "streams": streams, "frontier_us": us}
        for (site, gateway, boot, streams), us in newest_watermarks(said).items()
    ]
    out.write(NAME, sealed({"end": end, "said": rows}))


def used_watermarks(out: Store) -> UsedWatermarks | None:
    """Those that were kept last; None if there are none, or they are damaged."""
    try:
        kept = unsealed(out.read(NAME))
        return UsedWatermarks(dict(kept["end"]), list(kept["said"]))
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None
