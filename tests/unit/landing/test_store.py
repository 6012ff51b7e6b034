"""A store behaves the same in a folder and in a bucket."""

import pytest

from whenabouts_cloud.landing.store import Entry, Store


@pytest.fixture
def store(place):
    return Store.at(place)


def failing(store, path):
    with store.writing(path) as file:
        file.write(b"22")
        raise RuntimeError


def test_a_file_is_whole_or_absent(store):
    """What fails while it is written leaves no file, and the earlier one as it was."""
    assert not store.exists()
    assert store.entries() == store.entries("a") == []
    store.write("a/b/one", b"1")
    for name in ("one", "two"):
        with pytest.raises(RuntimeError):
            failing(store, f"a/b/{name}")
    assert store.read("a/b/one") == b"1"
    assert [one.name for one in store.entries("a/b")] == ["one"]
    assert [one.name for one in store.entries("a")] == ["b"]
    assert store.sizes(["a/b/one", "a/b/two", "c/d", "a/b"]) == [1, None, None, None] or store.local
    assert store.exists()


def test_files_are_read_from_anywhere_and_deleted(store):
    """A file that is not there is an error; deleting it again is none."""
    data = bytes(range(256)) * 5000
    with store.writing("folder/file") as file:
        file.write(data)
    with store.open("folder/file") as found:
        found.seek(1000)
        assert found.read(10) == data[1000:1010]
    with pytest.raises(FileNotFoundError):
        store.read("folder/none")
    inner = store.at_folder("folder")
    inner.remove("file")
    inner.remove("file")
    assert store.sizes(["folder/file"]) == [None]
    store.write("gone/x/y", b"1")
    store.remove_folder("gone")
    store.remove_folder("gone")
    assert store.sizes(["gone/x/y"]) == [None]


def test_places_are_named_by_paths_and_uris(tmp_path, monkeypatch):
    """A path is made absolute; a kind of store that nobody knows is refused."""
    monkeypatch.chdir(tmp_path)
    assert Store.at("l").local == tmp_path / "l" == Store.at(f"file://{tmp_path}/l").local
    assert Store.at("s3://bucket/l/").uri == "s3://bucket/l"
    assert Store.at("s3://bucket/l").local is None
    with pytest.raises(ValueError, match="expected a path, s3:"):
        Store.at("nfs4://server/l")


def test_listings_of_a_bucket_tell_when_files_changed(bucket):
    """A local listing does not: there it would cost a look at every file."""
    store = Store.at(f"{bucket}/times")
    store.write("x", b"1")
    [entry] = store.entries()
    assert entry == Entry("x", entry.mtime_ns)
    assert entry.mtime_ns > 1_600_000_000 * 10**9
    assert store.changed_ns("x") is None
