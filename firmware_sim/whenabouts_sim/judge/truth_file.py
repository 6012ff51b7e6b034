"""Writes what truly happened beside the readings that tell of it: LANDING/_truth.jsonl, which the dashboard shows.

An object a line: site, gateway, boot and seq of a reading, and `true_us`, when its sighting truly was.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from whenabouts_sim.judge.placement import Placement
from whenabouts_sim.world.emitted import EmittedFrame

NAME = "_truth.jsonl"


def write_truth(landing: Path, placement: Placement, emitted: Iterable[EmittedFrame], sites: Mapping[str, str]) -> None:
    """Write the true time of each reading whose sighting is known; sites: by gateway."""
    true_us = {entry.id: entry.true_us for entry in emitted}
    lines = [
        {"site": sites[gateway], "gateway": gateway, "boot": boot, "seq": seq, "true_us": true_us[sighting]}
        for (gateway, boot, seq), sighting in sorted(placement.sighting_of.items())
    ]
    made = landing / f".{NAME}"
    made.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    made.rename(landing / NAME)
