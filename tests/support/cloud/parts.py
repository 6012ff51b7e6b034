"""A part of a landing written by hand: numbered files of any kinds, merged and deleted as by an ingest and `compact`."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from support.cloud.landing import reading, table
from whenabouts_cloud.landing.layout import DATA, FRONTIER, NUMBER, Numbers, path_of


class Part:
    """Writes files with the numbers 1, 2, 3 ...; a reading's seq says the number of its file."""

    def __init__(self, folder: Path, gateway: str = "g") -> None:
        self.folder, self.gateway = folder, gateway
        self.number, self.hour = 0, 0
        self.readings: list[int] = []  # seq of all readings so far
        self.merged: set[Path] = set()

    @property
    def at(self) -> str:
        return f"2026-11-{20 + self.hour // 24:02d}T{self.hour % 24:02d}"

    def data(self) -> None:
        """Land a file of two readings."""
        self.number += 1
        some = [10 * self.number, 10 * self.number + 1]
        self.write(DATA, Numbers(self.number, self.number), self.rows(some))
        self.readings += some

    def frontier(self) -> None:
        """Say that all readings so far have landed: frontier_us is their number."""
        self.number += 1
        self.write(FRONTIER, Numbers(self.number, self.number), [self.said(self.number, len(self.readings))])

    def said(self, number, frontier_us):
        return {"site": "s", "gateway": self.gateway, "frontier_us": frontier_us, "streams": ["x"], NUMBER: number}

    def rows(self, seqs):
        return table(reading(self.gateway, seq, "x", "k", seq, seq) for seq in seqs)

    def write(self, kind, numbers, content) -> None:
        path = self.folder / path_of(kind, self.at, numbers)
        path.parent.mkdir(parents=True, exist_ok=True)
        hidden = path.with_name(f".{path.name}")
        if kind == FRONTIER:
            hidden.write_text("".join(json.dumps(one) + "\n" for one in content))
        else:
            pq.write_table(content, hidden)
        hidden.rename(path)

    def merge(self, first: int, last: int) -> None:
        """Merge the files of the present hour between two numbers, readings and frontiers each; the originals stay."""
        data, said = [], []
        for number in range(first, last + 1):
            one = Numbers(number, number)
            if (path := self.folder / path_of(DATA, self.at, one)).exists():
                rows = pq.read_table(path)
                data.append(rows.append_column(NUMBER, pa.repeat(pa.scalar(number, pa.int64()), rows.num_rows)))
            elif (path := self.folder / path_of(FRONTIER, self.at, one)).exists():
                said += [json.loads(line) for line in path.read_text().splitlines()]
            else:
                return
        if data and first < last:
            self.write(
                DATA,
                Numbers(first, last),
                pa.concat_tables(data).sort_by([("stream", "ascending"), ("t_min", "descending")]),
            )
        if said and first < last:
            self.write(FRONTIER, Numbers(first, last), said)
        if first < last:
            one_by_one = (Numbers(n, n) for n in range(first, last + 1))
            self.merged |= {self.folder / path_of(kind, self.at, n) for n in one_by_one for kind in (DATA, FRONTIER)}

    def clear(self) -> None:
        """Delete the originals of merged files."""
        for path in self.merged:
            path.unlink(missing_ok=True)
        self.merged = set()
