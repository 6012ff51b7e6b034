"""The dialogue with an LLRP reader as a value: times and messages in, requests out."""

import pytest
from llrpkit.protocol import messages, params

from whenabouts_hardware.network import llrp_messages as llrp
from whenabouts_hardware.network.llrp_decoder import LlrpDecoder
from whenabouts_hardware.network.llrp_dialogue import ANSWER_US, PARTING_US, PROBE_US, SETUP_US, LlrpDialogue
from whenabouts_hardware.network.llrp_status import status_text

MS = 1000
OK = params.LLRPStatus(status_code=0)


class Talk:
    """A dialogue and a clock; the reader answers by hand."""

    def __init__(self, **config):
        self.dialogue = LlrpDialogue(config)
        self.decoder = LlrpDecoder()
        self.now_us = 1_000_000

    def asks(self):
        """The type of the next request, and its number; None if there is none."""
        raw = self.dialogue.due(self.now_us)
        [frame] = LlrpDecoder().feed(raw) if raw else [None]
        return None if frame is None else (frame.fields["type"], frame.fields["number"])

    def says(self, message, number=0):
        [frame] = self.decoder.feed(message.to_bytes(message_id=number))
        self.dialogue.heard(frame, self.now_us)
        return frame

    def event(self, **events):
        stamp = params.UTCTimestamp(microseconds=1)
        data = params.ReaderEventNotificationData(timestamp=stamp, **events)
        return self.says(messages.READER_EVENT_NOTIFICATION(reader_event_notification_data=data))

    def greets(self, status=0):
        assert self.asks() is None
        self.event(connection_attempt_event=params.ConnectionAttemptEvent(status=status))

    def set_up(self):
        """To the inventory; each answer takes a millisecond."""
        self.greets()
        for kind, answer in (
            (llrp.GET_CAPABILITIES, messages.GET_READER_CAPABILITIES_RESPONSE),
            (llrp.SET_CONFIG, messages.SET_READER_CONFIG_RESPONSE),
            (llrp.DELETE_ROSPEC, messages.DELETE_ROSPEC_RESPONSE),
            (llrp.ADD_ROSPEC, messages.ADD_ROSPEC_RESPONSE),
            (llrp.ENABLE_ROSPEC, messages.ENABLE_ROSPEC_RESPONSE),
            (llrp.START_ROSPEC, messages.START_ROSPEC_RESPONSE),
        ):
            asked, number = self.asks()
            if asked == llrp.ENABLE_REPORTS:
                asked, number = self.asks()
            assert asked == kind
            self.now_us += MS
            self.says(answer(llrp_status=OK), number)
        return self

    def answers_probe(self, after_us):
        kind, number = self.asks()
        assert kind == llrp.GET_CONFIG
        self.now_us += after_us
        self.says(messages.GET_READER_CONFIG_RESPONSE(llrp_status=OK), number)


def test_what_comes_behind_an_answer_was_sent_after_its_question():
    """
    probe    |asked at 0 ----- answered at 3 ms|       |asked at 203 ms ...
    bound     0                                         0 until the answer comes
    """
    talk = Talk().set_up()
    assert talk.dialogue.since_us == talk.now_us
    begun_us = talk.now_us
    talk.answers_probe(3 * MS)
    assert talk.dialogue.answered_us == begun_us
    assert talk.asks() is None
    talk.now_us += PROBE_US
    assert talk.asks()[0] == llrp.GET_CONFIG
    assert talk.dialogue.answered_us == begun_us
    assert talk.asks() is None


def test_an_answer_to_another_question_proves_nothing():
    """A wrong number, or a wrong type with the right number."""
    talk = Talk().set_up()
    before_us = talk.dialogue.answered_us
    _, number = talk.asks()
    talk.says(messages.GET_READER_CONFIG_RESPONSE(llrp_status=OK), number + 1)
    talk.says(messages.ADD_ROSPEC_RESPONSE(llrp_status=OK), number)
    assert talk.dialogue.answered_us == before_us
    talk.says(messages.ERROR_MESSAGE(llrp_status=OK), number)  # of a reader that does not know the question
    assert talk.dialogue.answered_us > before_us


@pytest.mark.parametrize(("status", "said"), [(1, "the reader itself"), (2, "another client holds"), (3, "no reason")])
def test_a_refused_connection_is_said_in_words(status, said):
    """And nothing more is sent."""
    talk = Talk()
    talk.greets(status)
    assert said in talk.dialogue.fault
    assert talk.asks() is None


def test_a_refused_request_is_said_with_its_reason():
    """Only deleting what is not there may fail."""
    talk = Talk()
    talk.greets()
    _, number = talk.asks()
    status = params.LLRPStatus(status_code=109, error_description="not\nhere\x1b[2J")
    talk.says(messages.ERROR_MESSAGE(llrp_status=status), number)
    assert talk.dialogue.fault == (
        "the reader refused GET_READER_CAPABILITIES, found message: unsupported message (109): not?here?[2J"
    )


@pytest.mark.parametrize("stage", ["greeting", "request", "probe"])
def test_silence_ends_the_connection(stage):
    """No greeting, no answer to a request, none to a probe."""
    talk = Talk()
    if stage == "probe":
        talk.set_up()
    elif stage == "request":
        talk.greets()
    talk.asks()
    most_us = ANSWER_US if stage == "probe" else SETUP_US
    talk.now_us += most_us
    assert (talk.asks(), talk.dialogue.fault) == (None, "")
    talk.now_us += 1
    assert talk.asks() is None
    assert f"found no answer for {most_us // 1000} ms" in talk.dialogue.fault


def test_lost_reports_and_antennas_begin_the_scan_anew():
    """
    antenna 2     |    away    |
    scan      ----|            |----|overflow|----
    """
    talk = Talk(antennas=(1, 2)).set_up()
    talk.now_us += MS
    talk.event(antenna_event=params.AntennaEvent(event_type=0, antenna_id=2))
    assert talk.dialogue.since_us is None
    assert talk.dialogue.complaint == "antenna 2 disconnected"
    talk.event(report_buffer_overflow_error_event=params.ReportBufferOverflowErrorEvent())
    assert talk.dialogue.since_us is None
    talk.event(antenna_event=params.AntennaEvent(event_type=1, antenna_id=2))
    assert talk.dialogue.since_us == talk.now_us
    talk.now_us += MS
    talk.event(report_buffer_overflow_error_event=params.ReportBufferOverflowErrorEvent())
    assert talk.dialogue.since_us == talk.now_us
    assert talk.dialogue.complaint == "its buffer overflowed, reports are lost"


def test_an_inventory_that_somebody_else_ends_is_begun_again():
    """The connection is given up; of another ROSpec it is no concern."""
    talk = Talk().set_up()
    own = talk.dialogue._rospec
    for rospec, fault in ((own + 1, False), (own, True)):
        talk.event(ro_spec_event=params.ROSpecEvent(event_type=1, ro_spec_id=rospec, preempting_ro_spec_id=0))
        assert ("ended the inventory" in talk.dialogue.fault) is fault


def test_only_reports_of_this_connection_are_taken():
    """Tag by tag; one without a number of an ROSpec counts from the start of the inventory on."""

    def taken(talk, *rospecs):
        tags = [
            params.TagReportData(
                epc_parameter=params.EPC_96(epc=bytes(12)),
                ro_spec_id=None if rospec is None else params.ROSpecID(ro_spec_id=rospec),
            )
            for rospec in rospecs
        ]
        frame = talk.says(messages.RO_ACCESS_REPORT(tag_report_datas=tags))
        return [talk.dialogue.takes(frame, place) for place in range(len(rospecs))]

    talk = Talk()
    talk.greets()
    assert taken(talk, None) == [False]
    talk = Talk().set_up()
    own = talk.dialogue._rospec
    assert taken(talk, None) == [True]
    assert taken(talk, own + 1, own, own + 1, own) == [False, True, False, True]


def test_the_end_stops_the_inventory_and_waits_for_the_last_answer():
    """Or for a limited time; before a greeting there is nobody to ask."""
    assert not Talk().dialogue.end(0)
    talk = Talk().set_up()
    talk.answers_probe(MS)
    assert talk.dialogue.end(talk.now_us)
    kinds = [talk.asks() for _ in range(3)]
    assert [kind for kind, _ in kinds] == [llrp.STOP_ROSPEC, llrp.DELETE_ROSPEC, llrp.CLOSE]
    assert talk.asks() is None
    assert talk.dialogue.end(talk.now_us + PARTING_US)
    assert not talk.dialogue.end(talk.now_us + PARTING_US + 1)
    talk.says(messages.CLOSE_CONNECTION_RESPONSE(llrp_status=OK), kinds[-1][1])
    assert talk.dialogue.ended
    assert not talk.dialogue.end(talk.now_us)


def test_status_codes_in_words():
    """Those of messages, parameters, values, devices, and others."""
    assert status_text(0) == "success (0)"
    assert status_text(209) == "parameter: unsupported parameter (209)"
    assert status_text(301) == "value out of range (301)"
    assert status_text(9999) == "an unknown status (9999)"
