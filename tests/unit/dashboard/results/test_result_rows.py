"""Results of every kind in one form."""

import pyarrow as pa

from support.browser import known_run
from whenabouts_cloud.cep.shard.results import COUNT
from whenabouts_cloud.correlation.pairs import RESULT as PAIR
from whenabouts_cloud.dashboard.results.result_rows import ROWS, rows_of


def test_a_pair_has_two_readings_and_the_time_of_both():
    """A reading without a partner has one."""
    whole = known_run.pairs()[2]
    alone = whole | {name: None for name in whole if name.startswith("b_")} | {"probability": None}
    rows = rows_of(pa.Table.from_pylist([whole, alone], PAIR), "pair", 7).to_pylist()
    assert [[x["seq"] for x in row["readings"]] for row in rows] == [[2, 2], [2]]
    assert rows[0]["t_min"] == min(whole["a_t_min"], whole["b_t_min"])
    assert rows[0]["t_max"] == max(whole["a_t_max"], whole["b_t_max"])
    assert (rows[1]["t_min"], rows[1]["probability"], rows[1]["published_us"]) == (alone["a_t_min"], None, 7)


def test_a_count_has_no_readings():
    """It belongs to a period."""
    count = {
        "result_id": "c",
        "rule": "r",
        "key": "k",
        "t_min": 1,
        "t_max": 2,
        "matches": 3,
        "exact": True,
        "aggregates": [],
    }
    rows = rows_of(pa.Table.from_pylist([count], COUNT), "count", None)
    assert rows.schema == ROWS
    assert rows.to_pylist()[0]["readings"] == []
