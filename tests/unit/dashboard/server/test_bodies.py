"""Bodies of requests: one JSON object of limited size."""

import asyncio
import json

import pytest
from starlette.requests import Request

from whenabouts_cloud.dashboard.server import bodies
from whenabouts_cloud.dashboard.server.bodies import MAX_BYTES, BodyError, body_of, flag_in, text_in, time_in
from whenabouts_cloud.dashboard.server.parameters import SAFE, ParameterError


def read(*parts, gone=False):
    """The object of a body that comes in these parts, and whose sender then goes, or is silent."""
    messages = [{"type": "http.request", "body": part, "more_body": True} for part in parts]

    async def receive():
        if messages:
            return messages.pop(0)
        if not gone:
            await asyncio.Event().wait()
        return {"type": "http.disconnect"}

    return asyncio.run(body_of(Request({"type": "http", "method": "POST", "headers": []}, receive)))


def whole(body):
    async def receive():
        return {"type": "http.request", "body": body, "more_body": False}

    return asyncio.run(body_of(Request({"type": "http", "method": "POST", "headers": []}, receive)))


def test_an_object_is_read():
    """In UTF-8."""
    assert whole('{"text": "ä"}'.encode()) == {"text": "ä"}


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"nonsense", b"[1]", b"1", b"null", b'{"a": NaN}', b'{"a": Infinity}', b"\xff", b"[" * 100_000,
     b'{"a": ' + b"9" * 5000 + b"}"],
)  # fmt: skip
def test_what_is_no_object_is_refused(body):
    """However deep or odd it is."""
    with pytest.raises(ParameterError, match=r"^body: found .* expected an object$"):
        whole(body)


def test_a_large_body_is_refused_before_all_of_it_has_come():
    """Its sender may go on for ever."""
    with pytest.raises(BodyError, match="more than") as error:
        read(b" " * MAX_BYTES, b" ")
    assert error.value.status == 413


def test_a_slow_body_is_refused(monkeypatch):
    """One that never ends, too."""
    monkeypatch.setattr(bodies, "WITHIN_S", 0.01)
    with pytest.raises(BodyError, match="found 1 bytes") as error:
        read(b"{")
    assert error.value.status == 408


def test_a_body_whose_sender_goes_is_refused():
    """Nothing is done with a part of it."""
    with pytest.raises(BodyError, match="found an end"):
        read(b'{"text": "a', gone=True)


@pytest.mark.parametrize(
    ("take", "value"),
    [(text_in, None), (text_in, 1), (text_in, ["a"]), (text_in, "\ud800"), (text_in, "x" * (MAX_BYTES + 1)),
     (time_in, None), (time_in, 1.0), (time_in, True), (time_in, "1"), (time_in, SAFE + 1),
     (flag_in, 1), (flag_in, "true")],
)  # fmt: skip
def test_a_value_of_another_kind_is_refused_with_its_name(take, value):
    """The text is short."""
    with pytest.raises(ParameterError, match=r"^it: found") as error:
        take({"it": value}, "it")
    assert len(str(error.value)) < 200


def test_values_are_taken():
    """A flag that is not given is not set."""
    body = json.loads('{"text": "a", "at": -5, "yes": true}')
    assert (text_in(body, "text"), time_in(body, "at"), flag_in(body, "yes"), flag_in(body, "no")) == (
        "a",
        -5,
        True,
        False,
    )
