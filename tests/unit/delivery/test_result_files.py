"""A bit of a published result, or of the notes of a delivery, that changes is found, whichever it is."""

import errno
import os
import resource
import shutil
from contextlib import suppress
from random import Random

import pyarrow as pa
import pytest

from support.cloud.published_results import batch, publish
from whenabouts_cloud.delivery.courier import Courier
from whenabouts_cloud.delivery.cursor import NOTHING, DamagedCursorError, cursor_of, series_of
from whenabouts_cloud.delivery.published import Batch
from whenabouts_cloud.delivery.result_files import DamagedResultsError, opened, table_of
from whenabouts_cloud.jobs.output.sink import read_results
from whenabouts_cloud.landing.store import Store


def changed(data, at, bit):
    """The bytes with one bit changed."""
    return data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :]


@pytest.fixture
def folder(tmp_path):
    """A published batch of a few results."""
    return publish(tmp_path / "out", 1)


def test_no_changed_bit_becomes_another_result(folder):
    """A bit of each byte: the file is called damaged, or is read as it was."""
    [path] = folder.glob("*.parquet")
    place, data, chance = Store.at(folder), path.read_bytes(), Random(1)
    whole, found = table_of(place, path.name), 0
    for at in range(len(data)):
        path.write_bytes(changed(data, at, chance.randrange(8)))
        try:
            assert table_of(place, path.name).equals(whole), f"byte {at}"
        except DamagedResultsError:
            found += 1
    assert found > 0.9 * len(data)


@pytest.mark.parametrize("part", [0.0, 0.3, 0.6, 0.999])
def test_a_file_that_is_cut_or_empty_is_named_with_what_to_do(folder, part):
    """By all who read results; one that is gone is a missing file."""
    [path] = folder.glob("*.parquet")
    path.write_bytes(path.read_bytes()[: int(part * path.stat().st_size)])
    for read in (
        lambda: [*read_results(folder)],
        lambda: [*Batch(folder, "s", 1).parts()],
        lambda: Batch(folder, "s", 1).schema,
    ):
        with pytest.raises(DamagedResultsError) as caught:
            read()
        assert str(path) in str(caught.value)
        assert "put the file back from a copy, or delete its folder" in str(caught.value)
    path.unlink()
    with pytest.raises(FileNotFoundError):
        table_of(Store.at(folder), path.name)


def test_what_the_system_lacks_is_not_called_damage(folder):
    """Handles, memory, time: the file is as it was."""
    [path] = folder.glob("*.parquet")
    for lack in (OSError(errno.EMFILE, "too many open files"), pa.ArrowMemoryError("x"), pa.ArrowCancelled("x")):
        with pytest.raises(type(lack)), opened(Store.at(folder), path.name):
            raise lack
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    kept = [os.open(path, os.O_RDONLY)]
    resource.setrlimit(resource.RLIMIT_NOFILE, (kept[0] + 1, before[1]))
    try:
        with suppress(OSError):
            while True:  # numbers below the limit may be free
                kept.append(os.open(path, os.O_RDONLY))
        with pytest.raises(OSError, match="open") as caught:
            table_of(Store.at(folder), path.name)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
        for one in kept:
            os.close(one)
    assert caught.value.errno == errno.EMFILE
    assert table_of(Store.at(folder), path.name).num_rows == len(batch(1))


def test_a_damaged_batch_waits_until_it_is_mended_or_its_folder_is_deleted(tmp_path, caplog):
    """Nothing of it is delivered, and the log names the file once."""

    class Far:
        def __init__(self):
            self.got = []

        def deliver(self, batch):
            rows = [row["result_id"] for part in batch.parts() for row in part]
            self.got.append((batch.number, rows))
            return len(rows)

        def close(self):
            pass

    out = tmp_path / "out"
    first, second = publish(out, 0), publish(out, 1)
    publish(out, 2)
    kept = {}
    for folder in (first, second):
        [path] = folder.glob("*.parquet")
        kept[path] = path.read_bytes()
        path.write_bytes(changed(kept[path], 200, 3))
    tries = []

    def mend(failures):
        tries.append(failures)
        if len(tries) == 3:
            path, data = next(iter(kept.items()))
            path.write_bytes(data)
        if len(tries) == 6:
            shutil.rmtree(second)
        return 0.001

    far, series = Far(), series_of(out)
    courier = Courier(out, series, far, cursor_of(out, series, "http://x", "far"), None, mend)
    courier.start()
    assert courier.wait(lambda: False, 60)
    courier.end()
    assert far.got == [(number, [row["result_id"] for row in batch(number)]) for number in (0, 2)]
    events = [record.event for record in caplog.records if record.levelname != "INFO"]
    assert events == ["delivery.failed", "delivery.failed", "delivery.missing"]
    assert "found a damaged file" in caplog.records[0].fields["error"]


def test_no_changed_bit_moves_a_cursor(tmp_path):
    """A batch too far would be one that is never delivered."""
    out = tmp_path / "out"
    cursor = cursor_of(out, "a series", "http://x", "far")
    assert cursor.read("a series") == NOTHING
    cursor.write("a series", 41)
    assert cursor.read("a series") == 41
    path, chance = out / cursor.file, Random(2)
    data, found = path.read_bytes(), 0
    for at in range(len(data)):
        path.write_bytes(changed(data, at, chance.randrange(8)))
        with suppress(DamagedCursorError):
            assert cursor.read("a series") == 41, f"byte {at}"
            found -= 1
        found += 1
    assert found > 0.9 * len(data)
