"""The file that tells how far a query is (`jobs.progress_file`), in a folder and in a bucket."""

import json
from collections import Counter

import pytest

from whenabouts_cloud.delivery.query_progress import MOST_RECENT, PROGRESS, progress_in, recent_in
from whenabouts_cloud.jobs.metrics import Tally
from whenabouts_cloud.jobs.output.publication import publication
from whenabouts_cloud.jobs.progress_file import MOST_RULES, ProgressFile
from whenabouts_cloud.landing.store import Store


class Clock:
    """Seconds that the test sets."""

    s = 100.0

    def __call__(self):
        return self.s

    def us(self):
        return int(self.s * 1e6)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def made(tmp_path, clock):
    return ProgressFile(Store.at(tmp_path), clock, clock.us)


def counts(rule="near", shard=0, **had):
    return {"rule": rule, "shard": shard, "readings": 0, "pairs": 0, "late": 0, "streams_us": {"a": 7 + shard}} | had


def done(progress, tally, number, **had):
    """Let a batch end, as the query's thread does."""
    progress.note(number, 0.25, Counter(had), "pairs")
    return tally.after([counts(**had), counts(shard=1)], 0.25)


def test_the_file_tells_counts_frontiers_and_the_last_batches(made, tmp_path, clock):
    """Batches of watermarks only are counted, and not listed."""
    tally = done(made, Tally("out", "pairs", ()), 0, readings=5, pairs=2, late=1)
    tally = done(made, tally, 1)
    made.write(tally)
    assert json.loads((tmp_path / PROGRESS).read_text()) == {
        "updated_us": 100_000_000,
        "started_us": 100_000_000,
        "batches": 2,
        "rules": {"near": {"readings": 5, "results": 2, "late": 1, "streams_us": {"a": 7}}},
        "more_rules": 0,
        "recent": [{"number": 0, "ended_us": 100_000_000, "seconds": 0.25, "readings": 5, "results": 2, "late": 1}],
    }


def test_it_is_written_at_most_once_a_second_and_at_the_end(made, tmp_path, clock):
    """What came in between is in the next one."""
    tally = Tally("out", "pairs", ())
    made.write(tally)
    assert not (tmp_path / PROGRESS).exists(), "no batch has ended"
    written = []
    for number in range(5):
        tally = done(made, tally, number, readings=1)
        made.write(tally)
        written.append(progress_in(Store.at(tmp_path))["batches"])
        clock.s += 0.4
    assert written == [1, 1, 1, 4, 4]
    made.write(tally, last=True)
    assert progress_in(Store.at(tmp_path))["batches"] == 5


def test_in_an_object_store_it_is_written_every_ten_seconds(bucket_store, clock):
    """Each is a PUT."""
    progress, tally, written = ProgressFile(bucket_store, clock, clock.us), Tally("out", "pairs", ()), []
    for number in range(4):
        tally = done(progress, tally, number, readings=1)
        progress.write(tally)
        written.append(progress_in(bucket_store)["batches"])
        clock.s += 4
    assert written == [1, 1, 1, 4]


def test_a_file_that_cannot_be_written_is_told_once_and_stops_nothing(tmp_path, clock, caplog):
    """And again after it could be written meanwhile."""
    (tmp_path / "o").write_text("no folder")
    progress, tally = ProgressFile(Store.at(tmp_path / "o"), clock, clock.us), Tally("out", "pairs", ())
    for number in range(6):
        if number == 3:
            (tmp_path / "o").unlink()
        if number == 4:
            (tmp_path / "o" / PROGRESS).unlink()
            (tmp_path / "o").rmdir()
            (tmp_path / "o").write_text("no folder")
        tally = done(progress, tally, number, readings=1)
        progress.write(tally)
        clock.s += 2
    assert len(caplog.records) == 2


def test_a_restart_lists_earlier_batches_and_a_repeated_one_once(made, tmp_path, clock):
    """Counts begin anew, as those of metrics; the list has an end."""
    tally = Tally("out", "pairs", ())
    for number in range(MOST_RECENT + 5):
        tally = done(made, tally, number, readings=1)
    made.write(tally)
    again = ProgressFile(Store.at(tmp_path), clock, clock.us)
    again.begin()
    again.write(done(again, Tally("out", "pairs", ()), MOST_RECENT + 4, readings=3))
    found = progress_in(Store.at(tmp_path))
    assert [one["number"] for one in found["recent"]] == list(range(5, MOST_RECENT + 5))
    assert found["recent"][-1]["readings"] == 3
    assert found["batches"] == 1


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff",
        b"[1]",
        b"[" * 100_000,
        b'{"recent": 7}',
        b'{"recent": [7, {}, {"number": "x"}, {"number": 1e999}]}',
    ],
)
def test_a_damaged_file_is_taken_for_none(tmp_path, content):
    """It may be of another program."""
    (tmp_path / PROGRESS).write_bytes(content)
    assert recent_in(progress_in(Store.at(tmp_path))) == ()


def test_of_very_many_rules_some_are_listed(made, tmp_path):
    """And the number of the others is told."""
    tally = Tally("out", "pairs", ()).after([counts(f"r{n}", n) for n in range(MOST_RULES + 3)], 0.1)
    made.write(tally)
    found = progress_in(Store.at(tmp_path))
    assert (len(found["rules"]), found["more_rules"]) == (MOST_RULES, 3)


def test_a_published_batch_has_its_time(place):
    """Also a whole result; a batch that is repeated keeps the first one."""
    import pyarrow as pa

    from whenabouts_cloud.jobs.output.task_files import TaskFiles

    out = Store.at(place)
    files = TaskFiles(out.at_folder(".tmp-parts"))
    table = pa.table({"result_id": ["x"]})

    def times(name):
        return json.loads(out.read(f"{name}/_input.json"))

    published = publication(out, files, table.schema)
    assert published.appear({files._write(table): 1}, "batch=00000000", "d")
    first = times("batch=00000000")
    assert first["digest"] == "d"
    assert first["published_us"] > 1_700_000_000_000_000
    assert not published.appear({files._write(table): 1}, "batch=00000000", "d")
    assert times("batch=00000000") == first
    published.replace({files._write(table): 1}, "batch=00000000")
    assert times("batch=00000000")["published_us"] > first["published_us"]
