"""One reading in detail: its columns, the parts of its stamp, its results, and its true time where a simulator knows it."""

from collections.abc import Mapping
from typing import Any, Protocol

from whenabouts_cloud.dashboard.data.landed import LandedIndex, TooManyError
from whenabouts_cloud.landing.schema import json_in

PARTS = (
    ("latency_us", "reader", "time that the reader takes to report"),
    ("adapter_us", "adapter", "time that bytes wait in the serial adapter"),
    ("wire_us", "wire", "time that the bytes take on the wire"),
    ("poll_us", "polling", "time between two looks at the port"),
)


class Found(Protocol):
    """What a reading asks of the results."""

    def of_reading(self, site: str, gateway: str, boot: int, seq: int) -> dict[str, list[dict[str, Any]]]:
        """The results with a reading, and its rows in the side output."""
        ...


class Streams(Protocol):
    """What a reading asks of the gateways' health."""

    def stream(self, site: str, gateway: str, name: str) -> Mapping[str, Any] | None:
        """The parts of the stamps of a reader, as its gateway's last birth tells them."""
        ...


def reading(
    landed: LandedIndex, results: Found | None, health: Streams | None, identity: tuple[str, str, int, int, int, int]
) -> dict[str, Any]:
    """The answer to /api/reading; `reading` is null if there is none. identity: site, gateway, boot, seq, t_min, t_max."""
    site, gateway, boot, seq, *_ = identity
    try:
        found = landed.reading(*identity)
    except TooManyError:
        found = None
    if found is None:
        return {"reading": None, "parts": [], "lateness_us": None, "results": [], "side_output": [], "truth": None}
    true_us = landed.true_us(site, gateway, boot, seq)
    told = {"results": [], "side_output": []} if results is None else results.of_reading(site, gateway, boot, seq)
    landed_us = found["landed_us"]
    return {
        "reading": {
            **found, "boot": str(boot), "seq": str(seq), "value": json_in(found["value"]), "attrs": json_in(found["attrs"]),
            "vclock": None if found["vclock"] is None else [str(x) for x in found["vclock"]],
        },
        "parts": parts_of(found, None if health is None else health.stream(site, gateway, found["stream"])),
        "lateness_us": None if landed_us is None else landed_us - found["t_max"],
        **told,
        "truth": None if true_us is None else {"true_us": true_us, "inside": found["t_min"] <= true_us <= found["t_max"]},
    }  # fmt: skip


def parts_of(found: Mapping[str, Any], stream: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """What the width of a stamp is made of: the parts that the gateway's birth names; the clock has the rest.

    A part is {name, us, text}; without a birth the whole width is one part.
    """
    width = found["t_max"] - found["t_min"]
    named = [] if stream is None else [(name, stream.get(key), text) for key, name, text in PARTS]
    known: list[dict[str, Any]] = [
        {"name": name, "us": us, "text": text} for name, us, text in named if isinstance(us, int) and us > 0
    ]
    rest = width - sum(int(part["us"]) for part in known)
    if not known:
        return [{"name": "whole width", "us": width, "text": "its gateway has not told the parts"}]
    if rest < 0:  # births changed since, or the reader reports its own time
        return [{"name": "whole width", "us": width, "text": "narrower than the parts that its gateway tells now"}]
    return [{"name": "clock", "us": rest, "text": "the rest: the bound of the gateway's clock on both sides"}, *known]
