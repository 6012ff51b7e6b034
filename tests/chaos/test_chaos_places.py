"""The laws of where readings land: numbers of files, and the output for readings that begin in the future."""

import pyarrow as pa
import pyarrow.parquet as pq

from whenabouts_sim.chaos.checks.landing.places import broken_places
from whenabouts_sim.chaos.network.lying_gateway import NAME

HOUR = "hour=2025-06-15T13"


def file(place, name, gateway="gw-1"):
    path = place / name
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"gateway": [gateway]}), path)


def broken(place, *rotten):
    return list(broken_places([place], {place / "_ahead" / HOUR / name for name in rotten}))


def test_no_two_files_have_a_number_but_a_merged_one_and_its_originals(tmp_path):
    for name in ("part-00000001", "part-00000002", "part-00000001-00000002"):
        file(tmp_path, f"{HOUR}/{name}.parquet")
    file(tmp_path, f"_frontier/{HOUR}/part-00000003.json")
    assert broken(tmp_path) == []
    file(tmp_path, f"{HOUR}/part-00000003.parquet")
    [text] = broken(tmp_path)
    assert "2 files have the number 3" in text


def test_only_who_lies_is_ahead_of_time(tmp_path):
    file(tmp_path, f"_ahead/{HOUR}/part-00000001.parquet", NAME)
    assert broken(tmp_path) == []
    file(tmp_path, f"_ahead/{HOUR}/part-00000002.parquet")
    (tmp_path / "_ahead" / HOUR / "part-00000003.parquet").write_bytes(b"damaged")
    [text] = broken(tmp_path)
    assert "part-00000002.parquet holds readings of ['gw-1']" in text
    assert broken(tmp_path, "part-00000002.parquet") == []
