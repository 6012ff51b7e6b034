"""Requests of readers that post their events, and of those who are none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whenabouts_edge.readers.http_request import BODY_BYTES_MAX, CONTINUE, HEAD_BYTES_MAX, Conversation

GOOD = b"POST /dock HTTP/1.1\r\nHost: gw\r\nContent-Length: 4\r\n\r\nbody"


def statuses(answers):
    return [int(answer.data.split(b" ")[1]) for answer in answers]


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (GOOD.replace(b"POST", b"GET"), 405),
        (GOOD.replace(b"/dock", b"/other"), 404),
        (GOOD.replace(b"HTTP/1.1", b"HTTP/2"), 400),
        (GOOD.replace(b"POST /dock ", b"POST "), 400),
        (GOOD.replace(b"Host: gw", b"Host"), 400),
        (GOOD.replace(b"Host: gw", b"Content-Length: 5"), 400),
        (GOOD.replace(b"Host: gw", b"Transfer-Encoding: chunked"), 411),
        (GOOD.replace(b"Content-Length: 4", b"X: y"), 411),
        (GOOD.replace(b"Length: 4", b"Length: -4"), 400),
        (GOOD.replace(b"Length: 4", b"Length: " + b"9" * 5000), 400),
        (GOOD.replace(b"Length: 4", b"Length: %d" % (BODY_BYTES_MAX + 1)), 413),
        (b"POST /dock HTTP/1.1\r\n" + b"X: " + b"y" * HEAD_BYTES_MAX, 431),
        (b"\x16\x03\x01" + b"\0" * HEAD_BYTES_MAX, 431),
    ],
)
def test_a_request_that_is_not_for_it_is_refused_with_a_reason(request_bytes, status):
    """And ends the conversation: what follows is not read as another request."""
    [answer] = Conversation("/dock", None).feed(request_bytes + GOOD)
    assert statuses([answer]) == [status]
    assert answer.last
    assert answer.body is None


def test_a_client_may_ask_before_it_sends_and_may_end():
    """As libcurl does with long bodies; HTTP/1.0 and Connection: close end after the answer."""
    asking = GOOD.replace(b"Host: gw", b"Expect: 100-continue")
    first, _ = Conversation("/dock", None).feed(asking)
    assert first.data == CONTINUE
    for ending in (GOOD.replace(b"Host: gw", b"Connection: close"), GOOD.replace(b"HTTP/1.1", b"HTTP/1.0")):
        [answer] = Conversation("/dock", None).feed(ending)
        assert (answer.body, answer.last) == (b"body", True)


@given(st.lists(st.binary(max_size=30), max_size=4), st.data())
def test_bodies_do_not_depend_on_how_reads_split_the_requests(bodies, data):
    """Several requests of one connection, in any pieces; between them none has begun."""
    stream = b"".join(b"POST /dock?x=1 HTTP/1.1\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body) for body in bodies)
    conversation, answers, at = Conversation("/dock", None), [], 0
    while at < len(stream):
        size = data.draw(st.integers(1, 40))
        answers += conversation.feed(stream[at : at + size])
        at += size
    assert [answer.body for answer in answers] == bodies
    assert not conversation.begun


@given(st.binary(max_size=300))
def test_any_bytes_are_answered_or_awaited(data):
    """Nothing raises, and nothing beyond the limits is kept."""
    conversation = Conversation("/", "token")
    for answer in conversation.feed(data + b"\r\n\r\n"):
        assert answer.body is None
        assert b"token" not in answer.data.replace(b"expected the token", b"")
