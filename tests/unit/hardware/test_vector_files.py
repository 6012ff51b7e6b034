"""The files of published frames, hardware/vectors: each belongs to a reader, each frame names its source."""

import json

import pytest

from support.files.reader_frames import VECTORS
from whenabouts_hardware import DECODERS, READERS

FILES = sorted(VECTORS.iterdir())


def test_there_is_one_file_a_reader():
    """None is missing, none is of a reader that nobody knows."""
    assert [path.name for path in FILES] == sorted(f"{reader}.json" for reader in DECODERS)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_has_the_form_that_the_readme_describes(path):
    """Its reader, its rate, its frames; names are unique, bytes have one spelling, every frame has a source."""
    table = json.loads(path.read_text(encoding="utf-8"))
    assert list(table) == ["reader", "baud", "frames"]
    assert table["reader"] == path.stem
    assert table["baud"] == READERS[path.stem].baud
    names = [row["name"] for row in table["frames"]]
    assert names
    assert len(set(names)) == len(names)
    for row in table["frames"]:
        assert list(row) == ["name", "hex", "ok", "fields", "source"]
        assert row["hex"] == bytes.fromhex(row["hex"]).hex(" ") != ""
        assert isinstance(row["ok"], bool)
        assert isinstance(row["fields"], dict)
        assert row["name"].strip()
        assert row["source"].strip()


def test_no_frame_is_there_twice():
    """Equal bytes under two names would test nothing more."""
    rows = [(path.stem, row["hex"]) for path in FILES for row in json.loads(path.read_text())["frames"]]
    assert len(set(rows)) == len(rows)
