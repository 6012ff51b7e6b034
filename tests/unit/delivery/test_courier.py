"""What a courier does when the far side fails or a folder is gone (`delivery.courier`, `delivery.deliveries`)."""

import os
import shutil
import time

import pytest

from support.cloud.published_results import batch, publish
from support.waiting import until
from whenabouts_cloud.delivery.courier import LAGGING_S, Courier, Progress
from whenabouts_cloud.delivery.cursor import NOTHING, DamagedCursorError, cursor_of, series_of
from whenabouts_cloud.delivery.deliveries import Deliveries, check_tables
from whenabouts_cloud.delivery.uri import TargetError
from whenabouts_cloud.landing.sealing import unsealed

URI = "http://somewhere/x"


class Far:
    """A target that fails `failures` times."""

    def __init__(self, failures=0):
        self.failures, self.got, self.closed = failures, [], 0

    def deliver(self, batch):
        rows = [row for part in batch.parts() for row in part]
        if self.failures:
            self.failures -= 1
            raise ConnectionError("down")
        self.got.append((batch.number, [row["result_id"] for row in rows]))
        return len(rows)

    def close(self):
        self.closed += 1


@pytest.fixture
def deliver(tmp_path):
    """Delivers what is published with a courier of its own to the end; returns the courier."""

    def run(far, rules=None):
        cursor = cursor_of(tmp_path, series_of(tmp_path), URI, "far")
        courier = Courier(tmp_path, series_of(tmp_path), far, cursor, rules, lambda failures: 0.001)
        courier.start()
        assert courier.wait(lambda: False, 60)
        courier.end()
        return courier

    return run


def ids(number, rule=None):
    return [row["result_id"] for row in batch(number) if rule in (None, row["rule"])]


def test_batches_come_in_the_order_of_their_numbers_and_once(tmp_path, deliver):
    """A further run delivers only what is new."""
    for number in (2, 0, 10):
        publish(tmp_path, number)
    far = Far()
    deliver(far)
    publish(tmp_path, 11)
    assert deliver(far).progress.batches == 1
    assert far.got == [(number, ids(number)) for number in (0, 2, 10, 11)]


def test_a_target_that_fails_is_closed_and_given_the_same_batch_again(tmp_path, deliver, caplog):
    """One event for several failures, one when it takes results again."""
    publish(tmp_path, 0)
    far = Far(failures=3)
    caplog.set_level("INFO")
    progress = deliver(far).progress
    assert (progress.failures, progress.batches, progress.results, progress.waiting) == (3, 1, 4, 0)
    assert far.got == [(0, ids(0))]
    assert far.closed >= 3
    assert [record.event for record in caplog.records] == ["delivery.failed", "delivery.resumed"]


def test_only_results_of_the_rules_that_name_the_target_come(tmp_path, deliver):
    """Several rules share a folder."""
    publish(tmp_path, 0)
    far = Far()
    deliver(far, frozenset({"stolen"}))
    assert far.got == [(0, ids(0, "stolen"))]


def test_a_folder_that_was_deleted_is_reported_and_passed_over(tmp_path, caplog):
    """The next batch is delivered."""
    far = Far()
    publish(tmp_path, 1)
    series = series_of(tmp_path)
    courier = Courier(tmp_path, series, far, cursor_of(tmp_path, series, URI, "far"))
    publish(tmp_path, 0)
    shutil.rmtree(tmp_path / "batch=00000000")
    courier._numbers.append(0)
    courier.start()
    assert courier.wait(lambda: False, 60)
    courier.end()
    assert far.got == [(1, ids(1))]
    assert [record.event for record in caplog.records] == ["delivery.missing"]


def test_a_target_that_lags_is_reported_once(tmp_path, caplog):
    """By the age of the oldest batch that waits."""
    publish(tmp_path, 0)
    os.utime(tmp_path / "batch=00000000", (time.time() - LAGGING_S - 9,) * 2)
    far = Far(failures=10**9)
    series = series_of(tmp_path)
    courier = Courier(tmp_path, series, far, cursor_of(tmp_path, series, URI, "far"), None, lambda failures: 0.001)
    courier.start()
    until(lambda: courier.progress.failures > 5, "attempts")
    far.failures = 0
    assert courier.wait(lambda: False, 60)
    assert [r.event for r in caplog.records].count("delivery.lagging") == 1
    courier.end()


def test_the_lag_is_the_age_of_the_oldest_batch_that_waits():
    """None when none waits."""
    assert Progress("far", waiting=1, waiting_since_s=100.0).lag_s(107.5) == 7.5
    assert Progress("far").lag_s(107.5) == 0


def test_a_damaged_cursor_is_named_with_what_to_do(tmp_path):
    """Nothing is delivered on a guess."""
    series = series_of(tmp_path)
    cursor = cursor_of(tmp_path, series, URI, "far")
    assert cursor.read(series) == NOTHING
    cursor.write(series, 4)
    assert (cursor.read(series), cursor.read("another")) == (4, NOTHING)
    (tmp_path / cursor.file).write_text("{")
    with pytest.raises(DamagedCursorError, match="delete it to deliver all batches"):
        cursor.read(series)


def test_a_series_has_one_name_for_ever_and_another_in_every_folder(tmp_path):
    """So that two folders never take each other's batches for delivered."""
    assert series_of(tmp_path / "a") == series_of(tmp_path / "a") != series_of(tmp_path / "b")


def test_one_table_for_results_with_other_columns_is_refused(tmp_path):
    """Before anything runs."""
    some = [(unit, Deliveries(tmp_path, unit, ["delta:/t"], {})) for unit in ("pairs", "matches")]
    with pytest.raises(TargetError, match=r"for pairs and matches, whose columns differ, expected .unit. in its name"):
        check_tables(some)
    check_tables((unit, Deliveries(tmp_path, unit, ["delta:/t-{unit}"], {})) for unit in ("pairs", "matches"))


def test_a_target_of_all_rules_is_not_narrowed_by_one_that_names_it(tmp_path):
    """`--to` and INTO of the same URI are one target."""
    some = Deliveries(tmp_path, "matches", ["delta:/t"], {"r": ["delta:/t", "delta:/u"], "s": ["delta:/u"]})
    assert some.rules == {"delta:/t": None, "delta:/u": frozenset({"r", "s"})}


def test_the_cursor_shows_no_secret(tmp_path):
    """Its file neither in the name nor inside."""
    uri = "postgresql://me:secret@db/shop"
    one = cursor_of(tmp_path, "s", uri, "postgresql://***@db/shop")
    one.write("s", 1)
    shown = "postgresql://***@db/shop"
    assert unsealed((tmp_path / one.file).read_bytes()) == {"target": shown, "series": "s", "batch": 1}
    assert one == cursor_of(tmp_path, "s", uri.replace("secret", "other"), "postgresql://***@db/shop")
