"""The inbox between broker and bridge: turns, limits for each sender and for all, nothing lost unseen."""

import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.search import examples
from whenabouts_cloud.ingest.receiving import inbox as inbox_module
from whenabouts_cloud.ingest.receiving.inbox import OVERHEAD_BYTES, Inbox


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Six messages or 8000 bytes in all, four messages or 4000 bytes of one sender."""
    for name, value in (
        ("MAX_MESSAGES", 6),
        ("MAX_SENDER_MESSAGES", 4),
        ("MAX_BYTES", 8000),
        ("MAX_SENDER_BYTES", 4000),
    ):
        monkeypatch.setattr(inbox_module, name, value)


def all_of(inbox: Inbox) -> list:
    return list(iter(inbox.get, None))


def test_senders_get_turns_and_keep_their_order(monkeypatch):
    """a a a b c b  ->  a b c a b a, where a turn is worth one message"""
    monkeypatch.setattr(inbox_module, "TURN_BYTES", OVERHEAD_BYTES)
    inbox = Inbox()
    for item in ("a1", "a2", "a3", "b1", "c1", "b2"):
        assert inbox.put(item[0], item, 0, 0)
    assert all_of(inbox) == ["a1", "b1", "c1", "a2", "b2", "a3"]


def test_turns_are_worth_bytes(monkeypatch):
    """A sender of long messages leaves others as many bytes as it takes itself, not as many messages."""
    monkeypatch.setattr(inbox_module, "TURN_BYTES", 2 * OVERHEAD_BYTES)
    inbox = Inbox()
    for item, size in (("L1", 3), ("L2", 2), *((f"s{n}", 0) for n in range(1, 5))):
        assert inbox.put(item[0], item, size * OVERHEAD_BYTES, 0), item
    assert all_of(inbox) == ["s1", "s2", "L1", "s3", "s4", "L2"]


def test_one_sender_is_refused_beyond_its_share_and_others_are_not():
    """By messages and by bytes; the refused are counted once, by sender."""
    inbox = Inbox()
    assert [inbox.put("evil", n, 0, 0) for n in range(6)] == [True] * 4 + [False] * 2
    assert inbox.put("good", "g", 0, 0)
    assert inbox.take_refused() == {"evil": 2}
    assert inbox.take_refused() == {}
    assert len(all_of(inbox)) == 5
    assert [inbox.put("evil", n, 3000 - OVERHEAD_BYTES, 0) for n in range(3)] == [True, False, False]


def test_when_all_is_full_the_largest_sender_is_refused_and_a_small_one_waits_for_room():
    """The one with more than an equal share is refused at once; the other gets in when something was taken."""
    inbox = Inbox()
    for item in ("a", "a", "a", "b", "b", "c"):
        assert inbox.put(item, item, 0, 0)
    assert inbox.put("a", "a", 0, 0) is False
    assert inbox.put("d", "d", 0, 0) is None
    taken = threading.Timer(0.05, inbox.get)
    taken.start()
    assert inbox.put("d", "d", 0, 30.0) is True
    taken.join()


def test_an_empty_inbox_waits_for_a_message():
    """Until one comes, or the time is over."""
    inbox = Inbox()
    assert inbox.get(0.01) is None
    later = threading.Timer(0.05, inbox.put, ("a", "item", 0, 0.0))
    later.start()
    assert inbox.get(30.0) == "item"
    later.join()


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(st.one_of(st.tuples(st.sampled_from("abcd"), st.integers(0, 2500)), st.none())))
def test_what_was_added_comes_out_once_and_limits_hold(steps):
    """In the order of each sender, whatever is added and taken between."""
    inbox, added, came = Inbox(), [], []
    for number, step in enumerate(steps):
        if step is None:
            came.append(inbox.get())
        elif inbox.put(step[0], (step[0], number), step[1], 0):
            added.append((step[0], number))
        assert inbox._messages <= 6
        assert inbox._bytes <= 8000
    came = [item for item in came if item] + all_of(inbox)
    assert sorted(came) == sorted(added)
    for sender in "abcd":
        assert [n for s, n in came if s == sender] == [n for s, n in added if s == sender]
    assert (inbox._messages, inbox._bytes) == (0, 0)


def test_names_of_refused_senders_are_bounded(monkeypatch):
    """Beyond the limit they are counted together, without a name."""
    monkeypatch.setattr(inbox_module, "MAX_NAMED", 2)
    inbox = Inbox()
    for sender in "abc":
        for _ in range(5):
            inbox.put(sender, 0, 0, 0)
        all_of(inbox)
    assert inbox.take_refused() == {"a": 1, "b": 1, "": 1}
