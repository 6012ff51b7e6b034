"""Dialogues of readers: starting, polling, waiting, giving up, and starting again after a loss of power."""

import pytest

from whenabouts_hardware import READERS
from whenabouts_hardware.dialogue import Start
from whenabouts_hardware.polling import UNANSWERED_MAX, Poll, Question
from whenabouts_hardware.readers.m6e_frames import KEEPALIVE, OP_BOOT, answer, set_read_power, set_region
from whenabouts_hardware.readers.pn532_frames import ACK, LIST_ONE_106A, SAM_NORMAL, WAKEUP, target_106a
from whenabouts_hardware.readers.pn532_frames import answer as pn532_answer
from whenabouts_hardware.readers.uhfreader18 import HEARTBEAT, INVENTORY, inventory_answer

S = 1_000_000


def said(dialogue, now_us):
    """All that is due at a moment."""
    written = []
    while raw := dialogue.due(now_us):
        written.append(raw)
    return written


def frame(kind, raw):
    """The one frame of these bytes."""
    reader = READERS[kind].new_decoder()
    [only] = reader.feed(raw) + reader.flush()
    return only


def test_a_reader_is_started_once_and_again_after_silence():
    """
    t      0        1         2.5      4.1          5.6
           start    frame              start again       nothing: three seconds are not over
    """
    one = Start((b"stop", b"go"), 3 * S)
    assert said(one, 0) == [b"stop", b"go"]
    one.heard(frame("m6e", KEEPALIVE), S)
    assert said(one, 5 * S // 2) == []
    assert said(one, 4_100_000) == [b"stop", b"go"]
    assert said(one, 5_600_000) == []
    assert one.restarts == 1


def test_a_reader_that_booted_is_started_again_at_once():
    """It lost its settings with its power; refusals and damage are no sign of life."""
    one = READERS["m6e"].dialogue()
    start = said(one, 0)
    assert start == list(READERS["m6e"].start)
    one.heard(frame("m6e", answer(OP_BOOT)), S)
    assert said(one, S) == start
    one.heard(frame("m6e", answer(0x22, 0x0504)), 2 * S)
    one.heard(frame("m6e", KEEPALIVE[:-1] + b"\0"), 3 * S)
    assert said(one, 4 * S + 1) == start
    assert one.restarts == 2


def test_what_an_operator_sets_follows_the_stop():
    """Region and power, before the reader is started again."""
    m6e = READERS["m6e"]
    first, *rest = m6e.start
    settings = [set_region(0x0D), set_read_power(2000)]
    assert said(m6e.dialogue({"region": 0x0D, "read_power_cdbm": 2000}), 0) == [first, *settings, *rest]
    assert said(m6e.dialogue(), 0) == list(m6e.start)


def test_a_reader_that_is_only_listened_to_is_sent_nothing():
    """However silent it is."""
    silent = Start((), None)
    assert [said(silent, t * S) for t in (0, 1000)] == [[], []]


def test_a_card_reader_is_polled_again_after_each_answer():
    """
    t      -10 s      20 ms    100 ms    120 ms
           wake up    ask      card      ask again
    """
    one = READERS["pn532"].dialogue()
    assert said(one, -10 * S) == [WAKEUP + SAM_NORMAL]
    assert said(one, 20_000) == [LIST_ONE_106A]
    assert one.asked_us == 20_000
    one.heard(frame("pn532", ACK), 22_000)
    assert one.asked_us == 20_000
    one.heard(frame("pn532", pn532_answer(0x4A, b"\1" + target_106a(1, b"\1\2\3\4"))), 100_000)
    assert one.asked_us is None
    assert said(one, 119_999) == []
    assert said(one, 120_000) == [LIST_ONE_106A]


def test_an_answer_may_be_to_the_question_before():
    """
    t      0      1.3      1.32               2.7
           ask    give up  ask    answer      the first question cannot be answered any more
    """
    one = READERS["uhfreader18"].dialogue()
    assert said(one, -10 * S) == [INVENTORY]
    one.heard(frame("uhfreader18", inventory_answer([])), -9 * S)
    assert said(one, 0) == [INVENTORY]
    assert said(one, 1_300_001) == []
    assert said(one, 1_320_000) == [INVENTORY]
    assert one.asked_us == 0
    one.heard(frame("uhfreader18", inventory_answer([])), 1_400_000)
    assert one.asked_us == 1_320_000
    assert said(one, 1_500_000) == [INVENTORY]
    assert said(one, 1_320_000 + 2 * 1_300_000 + 1) == []
    assert one.asked_us == 1_500_000


def test_what_is_answered_at_the_beginning_may_be_to_somebody_elses_question():
    """
    t      -1        0         1            2.61     2.62       an agent that was killed asked at -1, a new one begins at 0
           asked     ask       answer       ask      answer     the first answer does not show when its tags were seen
    """
    one = READERS["uhfreader18"].dialogue()
    assert said(one, 0) == [INVENTORY]
    assert one.asked_us is None
    one.heard(frame("uhfreader18", inventory_answer([b"\1" * 12])), S)
    assert said(one, 2_610_000) == [INVENTORY]
    assert one.asked_us == 2_610_000


def test_a_question_without_answer_is_broken_off_and_asked_again():
    """A chip without a card before it acknowledges and waits: that is no fault. A chip that lost power sends nothing."""
    one = READERS["pn532"].dialogue()
    said(one, 0)
    now_us = 0
    for _ in range(2 * UNANSWERED_MAX):  # acknowledged, no card
        now_us += 300_000
        said(one, now_us)
        one.heard(frame("pn532", ACK), now_us)
    assert one.restarts == 0
    sent = []
    for _ in range(4 * UNANSWERED_MAX):  # not even acknowledged
        now_us += 150_000
        sent += said(one, now_us)
    assert one.restarts >= 1
    assert sent.count(ACK) >= UNANSWERED_MAX
    assert sent.index(WAKEUP + SAM_NORMAL) < len(sent) - 1
    assert sent[-1] in (LIST_ONE_106A, ACK)


@pytest.mark.parametrize("epcs", [[], [b"\1" * 12]])
def test_an_inventory_is_repeated_whether_or_not_there_were_tags(epcs):
    """With a pause that the reader needs; a heartbeat of its network module answers nothing."""
    one = READERS["uhfreader18"].dialogue()
    assert said(one, -10 * S) == [INVENTORY]
    one.heard(frame("uhfreader18", inventory_answer([])), -9 * S)
    assert said(one, 7) == [INVENTORY]
    one.heard(frame("uhfreader18", HEARTBEAT), 8)
    assert one.asked_us == 7
    one.heard(frame("uhfreader18", inventory_answer(epcs)), 9)
    assert said(one, 10) == []
    assert said(one, 15_009) == [INVENTORY]


def test_an_answer_of_several_frames_is_heard_to_its_end():
    """A reader that still answers would lose the next question."""
    one = Poll((), Question(b"?", ("tags",), S, 10, parts=("more_tags",)))
    assert said(one, 0) == [b"?"]
    one.heard(frame("uhfreader18", inventory_answer([b"\1"], status=3)), 1)
    assert said(one, 100) == []
    one.heard(frame("uhfreader18", inventory_answer([b"\2"])), 200)
    assert said(one, 209) == []
    assert said(one, 210) == [b"?"]
