"""The lease of a part in an object store: one holder at a time, whatever the clocks of others say, on a real S3 server."""

import pytest

from support.cloud.s3_proxy import s3_proxy
from whenabouts_cloud.ingest import conditional
from whenabouts_cloud.ingest import lease as lease_module
from whenabouts_cloud.ingest.lease import PATH, Decision, Lease, LeaseHeld, LeaseLost, Value, Watch, acquire
from whenabouts_cloud.landing.store import Store

LONG_S = 3600.0


@pytest.fixture
def store(bucket_store):
    return bucket_store


@pytest.fixture
def clock(monkeypatch):
    """The clock of this process, which tests set; waiting moves it."""
    now = [1000.0]
    monkeypatch.setattr(lease_module, "now_s", lambda: now[0])
    return now


def waiting(clock, meanwhile=lambda: None):
    """A way to wait that moves the clock."""

    def wait(duration_s):
        clock[0] += duration_s
        meanwhile()

    return wait


def test_a_lease_that_is_absent_or_given_back_is_taken_at_once():
    """There is nothing to wait for."""
    assert Watch().decide(None, None, 0.0) is Decision.TAKE
    assert Watch().decide(Value("", "h", 30.0, "2026-01-31T17", 9), "v", 0.0) is Decision.TAKE


def test_a_foreign_lease_is_taken_when_it_has_not_changed_for_its_duration_by_the_own_clock():
    """The duration is the one that its holder has named; a renewal means that the holder lives."""
    value, watch = Value("a", "h", 30.0), Watch()
    assert [watch.decide(value, "v1", now_s) for now_s in (5.0, 20.0, 34.9)] == [Decision.WAIT] * 3
    assert watch.decide(value, "v1", 35.0) is Decision.TAKE
    assert watch.decide(value, "v2", 35.0) is Decision.REFUSE


def test_a_value_survives_its_encoding_and_other_bytes_are_refused():
    """JSON of exactly these fields and types."""
    value = Value("a", "h", 30.0, "2026-01-31T17", 4)
    assert Value.decode(value.encode()) == value
    for data in (b"", b"[]", b"{}", b'{"holder": 1, "host": "h", "duration_s": 1.0}', b"\xff"):
        with pytest.raises(ValueError, match=r"."):
            Value.decode(data)


def test_one_holder_at_a_time(store, clock):
    """A second one is refused while the first renews, and begins at once after the first has given it back."""
    first = acquire(store, LONG_S)
    assert not first.taken_over
    with pytest.raises(LeaseHeld, match=r"another ingest, on .*, writes here"):
        acquire(store, LONG_S, waiting(clock, lambda: first.keep(0.0)))
    first.enter("2026-01-31T17")
    first.give_back()
    second = acquire(store, LONG_S)
    assert (second.taken_over, second.hour) == (False, "2026-01-31T17")
    assert second.holder != first.holder


def test_a_lease_is_taken_over_from_one_that_has_vanished_who_then_has_lost_it(store, clock):
    """It takes as long as the duration; the one that wakes up again finds out when it renews, and harms nothing."""
    first = acquire(store, 30.0)
    first.enter("2026-01-31T17")
    begin_s = clock[0]
    second = acquire(store, 10.0, waiting(clock))
    assert 30.0 <= clock[0] - begin_s < 33.0
    assert (second.taken_over, second.hour) == (True, "2026-01-31T17")
    for call in (first.confirm, first.keep, first.give_back, lambda: first.enter("2026-01-31T18")):
        with pytest.raises(LeaseLost, match="has taken over"):
            call()
    second.keep(0.0)
    assert second.hour == "2026-01-31T17"


def test_a_lease_is_renewed_in_time_and_not_more_often(store, clock):
    """A third of the duration for keep; confirm renews when less than a fifth is left."""
    lease = acquire(store, 30.0)

    def version():
        return conditional.read(store, PATH)[1]

    before = version()
    clock[0] += 9.0
    lease.keep()
    assert version() == before
    clock[0] += 2.0
    lease.keep()
    renewed = version()
    assert renewed != before
    clock[0] += 23.0
    lease.confirm()
    assert version() == renewed
    clock[0] += 500.0  # nobody has taken it over
    lease.confirm()
    assert version() != renewed


def test_a_renewal_whose_answer_was_lost_is_ones_own(bucket, store, clock):
    """The conflict at the next renewal is no reason to end."""
    with s3_proxy() as proxy:
        inner = Store.at(f"{store.uri}/proxied")
        lease = acquire(inner, 30.0)
        proxy.lose = 10
        with pytest.raises(OSError, match=r"."):
            lease.enter("2026-01-31T17")
        proxy.lose = 0
        lease.enter("2026-01-31T17")
        lease.keep(0.0)
    assert isinstance(lease, Lease)
    assert Value.decode(conditional.read(Store.at(f"{store.uri}/proxied"), PATH)[0]).hour == "2026-01-31T17"


def test_a_store_that_ignores_conditions_is_refused(bucket, store):
    """Two ingests would overwrite each other's files there without noticing."""
    with s3_proxy() as proxy:
        proxy.ignores_conditions = True
        with pytest.raises(ValueError, match="this store ignores the condition If-None-Match"):
            acquire(Store.at(f"{store.uri}/ignoring"), 30.0)


def test_another_object_in_its_place_is_named(store):
    """With what to do."""
    conditional.create(store, PATH, b"something else")
    with pytest.raises(ValueError, match=r"_ingest/lease is no lease .*; delete it when no ingest writes here"):
        acquire(store)
