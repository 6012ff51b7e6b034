"""A reader of a landing reads every reading once and no frontier before what it covers, whatever happens meanwhile."""

import tempfile
from pathlib import Path

import pyarrow.parquet as pq
from hypothesis import given, settings
from hypothesis import strategies as st

from support.cloud.landing import reading, table
from support.cloud.parts import Part
from whenabouts_cloud.landing import index
from whenabouts_cloud.landing.history import History, frontiers_of, readings_of
from whenabouts_cloud.landing.scan import frontiers_in, read_piece
from whenabouts_cloud.landing.schema import of
from whenabouts_cloud.landing.store import Store

SEQ = of("seq")
OTHERS = 1_000_000  # seq of the readings of other programs begins there
STEPS = ["data", "data", "frontier", "hour", "merge", "clear", "read", "read", "restart", "commit", "other"]


class Reader:
    """A query: it plans in pieces, may repeat a piece after a restart, and commits."""

    def __init__(self, landing: Store, max_bytes: int | None) -> None:
        self.landing, self.max_bytes = landing, max_bytes
        self.history, self.offset = History(landing), {}
        self.read, self.claims = [], []

    def step(self) -> bool:
        """Read the next piece, twice: the second time as a process would that knows only the offsets."""
        end = self.history.latest(self.offset, self.max_bytes)
        if end == self.offset:
            return False
        seqs, said = self.content(self.history, end)
        assert (sorted(seqs), said) == (lambda again: (sorted(again[0]), again[1]))(
            self.content(History(self.landing), end)
        )
        self.read += seqs
        self.claims += said
        self.offset = end
        return True

    def content(self, history, end):
        pieces = history.pieces(self.offset, end)
        seqs = [n for one in readings_of(pieces) for n in read_piece(self.landing, one, SEQ)["seq"].to_pylist()]
        said = {one["frontier_us"] for one in frontiers_in(self.landing, frontiers_of(pieces))}
        numbered = sum(seq < OTHERS for seq in [*self.read, *seqs])
        assert all(us <= numbered for us in said), "a frontier without the readings that it covers"
        return seqs, sorted(said)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.sampled_from(STEPS), max_size=40), st.booleans(), st.randoms(use_true_random=False))
def test_every_reading_is_read_once_and_frontiers_cover_only_what_was_read(steps, in_pieces, chance):
    """Hours that end, files that are merged before and after they are read, restarts at any point, other programs' files."""
    with tempfile.TemporaryDirectory() as folder:
        part, landing = Part(Path(folder) / "landing"), Store.at(Path(folder) / "landing")
        part.folder.mkdir()
        reader, others = Reader(landing, 3000 if in_pieces else None), 0
        for step in [*steps, "data", "frontier"]:
            if step in ("data", "frontier", "clear"):
                getattr(part, step)()
            elif step == "hour":
                part.hour += chance.choice([1, 1, 30])
            elif step == "merge" and part.number:
                first = chance.randint(1, part.number)
                part.merge(first, chance.randint(first, part.number))
            elif step == "read":
                reader.step()
            elif step == "restart":
                reader.history = History(landing)
            elif step == "commit":
                reader.history.forget(reader.offset)
            elif step == "other" and in_pieces is False:
                others += 1
                land_other(part.folder / f"hour={part.at}" / f"z{others % 3}{others}.parquet", OTHERS + others)
        while reader.step():
            pass
        assert sorted(reader.read) == [*sorted(part.readings), *range(OTHERS + 1, OTHERS + others + 1)]
        assert not others or reader.offset["."]["other"]
        assert max(reader.claims) == len(part.readings)
        assert not reader.step()


def land_other(path, seq):
    """A file of another program: it appears by a rename, later than all before."""
    path.parent.mkdir(exist_ok=True)
    hidden = path.with_name(f".{path.name}")
    pq.write_table(table([reading("o", seq, "x", "k", 1, 1)]), hidden)
    hidden.rename(path)


def test_a_small_limit_of_found_files_changes_nothing(tmp_path, monkeypatch):
    """A history of many more files than one call finds, in several hours."""
    monkeypatch.setattr(index, "MOST_FOUND", 7)
    part = Part(tmp_path)
    for n in range(60):
        part.data() if n % 5 else part.frontier()
        part.hour += n % 11 == 0
    reader = Reader(Store.at(tmp_path), None)
    while reader.step():
        pass
    assert reader.read == part.readings
