"""Matches that later rows of the same output take back: rows of status `retracted` do not repeat the probability."""

from collections.abc import Set as AbstractSet

import pyarrow as pa
import pyarrow.compute as pc

from whenabouts_cloud.delivery.cursor import NOTHING
from whenabouts_cloud.delivery.published import folder_of, numbers_after, parquet_in
from whenabouts_cloud.delivery.result_files import opened
from whenabouts_cloud.landing.store import Store


def probabilities(out: Store, number: int, ids: AbstractSet[str]) -> dict[str, float | None]:
    """The probability of each match with one of these ids, of the batches up to a number; those not there are left out.

    The newest batches are read first, as a match is taken back soon after it. Cost: some 1 ms a batch.
    """
    found: dict[str, float | None] = {}
    for one in reversed(numbers_after(out, NOTHING) if ids else []):
        if one > number:
            continue
        place = out.at_folder(folder_of(one))
        for name in parquet_in(place):
            with opened(place, name) as file:
                table = file.read(["result_id", "status", "probability"])
            wanted = pc.is_in(table["result_id"], value_set=pa.array(sorted(ids), pa.string()))
            mine = table.filter(pc.and_(wanted, pc.equal(table["status"], "match")))
            for result_id, chance in zip(mine["result_id"].to_pylist(), mine["probability"].to_pylist(), strict=True):
                found[result_id] = chance
        if len(found) == len(ids):
            break
    return found
