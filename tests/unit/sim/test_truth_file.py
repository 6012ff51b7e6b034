"""The truth beside the readings."""

import json

from whenabouts_cloud.dashboard.data.truth_file import TruthFile
from whenabouts_cloud.landing.store import Store
from whenabouts_sim.judge.placement import Placement
from whenabouts_sim.judge.truth_file import write_truth
from whenabouts_sim.world.emitted import EmittedFrame


def test_what_is_written_is_what_the_dashboard_reads(tmp_path):
    """The true time of each reading that was placed, and of no other."""
    emitted = [EmittedFrame("dock-1", n, f"key{n}", 1000 + n, 1000 + n) for n in range(3)]
    placement = Placement({("gw", 7, 1): emitted[1].id, ("gw", 7, 2): emitted[2].id}, 0, (), (), ())
    write_truth(tmp_path, placement, emitted, {"gw": "hall"})
    truth = TruthFile(Store.at(tmp_path))
    truth.follow()
    assert [truth.of("hall", "gw", 7, n) for n in range(3)] == [None, 1001, 1002]
    assert len(truth) == 2
    assert [json.loads(line)["seq"] for line in (tmp_path / "_truth.jsonl").read_text().splitlines()] == [1, 2]
