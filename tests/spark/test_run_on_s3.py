"""Landing and results in an object store, over HTTP: all three engines, through kills, with the results of a folder."""

import time
from itertools import count

from spark.background import Process
from spark.every_engine import check, defined, every_kind, published, watermark_bucket
from support.cloud.bucket import BucketLanding, copied
from support.latwin.states import FOREVER_US
from whenabouts_cloud.landing.store import Store
from whenabouts_cloud.rules import load_rules


def counted(uri, folder, number):
    """How many results of each rule are there, and a copy of them."""
    return published(copied(uri, folder / f"copy{number}" / "out"))


def test_once_from_a_bucket_into_a_bucket(places, tmp_path):
    """The results are those of the definitions; a second run replaces the first, and damage is told and left out."""
    (tags, states), (landing, out) = every_kind(), places
    writer = BucketLanding(landing)
    for n in range(3):
        writer.land([*tags[n::3], *states[n::3]])
    watermark_bucket(writer, FOREVER_US)
    writer.land(tags[:1])
    Store.at(landing).write("hour=2026-11-20T18/part-00000006.parquet", b"damaged")
    for number in range(2):
        job = Process(tmp_path, "--once", "--json", command="run", landing=landing, out=out)
        assert job.wait() == 0, "\n".join(job.err)
        wanted = check(copied(out, tmp_path / f"copy{number}" / "out").parent, tags, states, tmp_path / "rule.wa")
        assert len(job.out) == wanted.total()
        assert any("landing.damaged" in line and "part-00000006" in line for line in job.err)


def test_killed_while_files_arrive_in_a_bucket_every_rule_ends_with_its_definition(places, tmp_path):
    """SIGKILL to everything; another run continues from the checkpoint, and nothing is there twice."""
    (tags, states), (landing, out) = every_kind(), places
    writer, parts = BucketLanding(landing), iter([[*tags[n::5], *states[n::5]] for n in range(5)])
    writer.land(next(parts))
    first = Process(tmp_path, command="run", landing=landing, out=out)
    first.wait_for("Watching")
    for _ in range(2):
        writer.land(next(parts))
        time.sleep(0.8)  # the moment of the crash is what varies, not something awaited
    first.kill()
    for _ in range(2):
        writer.land(next(parts))
    wanted = defined(load_rules(tmp_path / "rule.wa"), tags, states)
    last, numbers = Process(tmp_path, command="run", landing=landing, out=out), count()
    last.wait_for("Watching")
    watermark_bucket(writer, FOREVER_US)
    last.until(lambda: counted(out, tmp_path, next(numbers)) == wanted)
    assert last.stop() == 0, "\n".join(last.err)
    check(copied(out, tmp_path / "end" / "out").parent, tags, states, tmp_path / "rule.wa")
    assert not (tmp_path / "out").exists()
