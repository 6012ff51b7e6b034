"""Lists of tables hold the rows that a plain list would, in few tables."""

import numpy as np
import pyarrow as pa
import pytest

from support import search
from whenabouts_cloud.dashboard.results import kept_tables
from whenabouts_cloud.dashboard.results.kept_tables import appended, drop_oldest, without


def rows(numbers):
    """A table of these numbers, in two chunks, with a list in each row."""
    parts = [
        pa.table({"n": pa.array(x, pa.int64()), "l": pa.array([[y] for y in x], pa.list_(pa.int64()))})
        for x in halves(numbers)
    ]
    return pa.concat_tables(parts)


def halves(numbers):
    return numbers[: len(numbers) // 2], numbers[len(numbers) // 2 :]


def held(tables):
    return [n for table in tables for n in table["n"].to_pylist()]


@pytest.mark.parametrize("seed", search.seeds(16))
def test_rows_are_those_that_were_added_and_neither_removed_nor_dropped(seed, monkeypatch):
    """At each prefix; each column of a table is one chunk, and no joined table is longer than JOINED."""
    monkeypatch.setattr(kept_tables, "JOINED", 12)
    rng, kept, plain, dropped, next_number = np.random.default_rng(seed), {"a": []}, [], 0, 0
    for _ in range(40):
        count = int(rng.integers(1, 6))
        new = list(range(next_number, next_number + count))
        next_number += count
        kept["a"], plain = appended(kept["a"], rows(new)), plain + new
        if rng.random() < 0.3:
            gone = rng.integers(0, next_number, 2).tolist()
            kept["a"] = without(kept["a"], "n", pa.array(gone))
            plain = [n for n in plain if n not in gone]
        dropped += drop_oldest(kept, 30)
        plain = plain[-30:]
        assert held(kept["a"]) == plain
        assert [n for table in kept["a"] for [n] in table["l"].to_pylist()] == plain
        assert all(table["l"].num_chunks == 1 and table.num_rows <= 12 for table in kept["a"] if table.num_rows)
        assert sum(table.num_rows <= 3 for table in kept["a"]) < 12


def test_the_oldest_rows_of_the_longest_list_go_first():
    """So that one busy rule does not drive out the others."""
    kept = {"busy": [rows([1, 2, 3]), rows([4, 5, 6])], "quiet": [rows([7])]}
    assert drop_oldest(kept, 5) == 2
    assert {name: held(tables) for name, tables in kept.items()} == {"busy": [3, 4, 5, 6], "quiet": [7]}


def test_tables_without_a_removed_row_are_not_copied():
    """A retraction costs what its table does."""
    tables = [rows([1, 2]).combine_chunks(), rows([3]).combine_chunks()]
    made = without(tables, "n", pa.array([3]))
    assert made[0] is tables[0]
    assert held(made) == [1, 2]
