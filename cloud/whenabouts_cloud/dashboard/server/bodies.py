"""Bodies of requests as checked values: one JSON object of a few fields, of limited size, read in limited time."""

import asyncio
import json
from typing import Any

from starlette.requests import ClientDisconnect, Request

from whenabouts_cloud.dashboard.server.parameters import SAFE, ParameterError, refuse

MAX_BYTES = 256 << 10
WITHIN_S = 10.0  # that a body takes to come


class BodyError(Exception):
    """A body is too large or too slow. status: of the response."""

    def __init__(self, status: int, text: str) -> None:
        self.status = status
        super().__init__(text)


async def body_of(request: Request) -> dict[str, Any]:
    """The JSON object that a request brings.

    Raises:
        BodyError: it is too large, or has not come in time.
        ParameterError: it is no JSON object.
    """
    parts, size = [], 0
    try:
        async with asyncio.timeout(WITHIN_S):
            async for part in request.stream():
                parts.append(part)
                size += len(part)
                if size > MAX_BYTES:
                    raise BodyError(413, f"body: found more than {MAX_BYTES} bytes, expected at most that many")
    except TimeoutError:
        raise BodyError(408, f"body: found {size} bytes after {WITHIN_S:g} s, expected all of it") from None
    except ClientDisconnect:
        raise BodyError(400, "body: found an end before all of it had come") from None
    try:
        value = json.loads(b"".join(parts).decode("utf-8"), parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise ParameterError("body: found no JSON, expected an object") from None
    if not isinstance(value, dict):
        raise ParameterError("body: found JSON of another kind, expected an object")
    return value


def text_in(body: dict[str, Any], name: str, longest: int = MAX_BYTES) -> str:
    """A text of an object."""
    value = body.get(name)
    if not isinstance(value, str):
        raise ParameterError(f"{name}: found {_kind(value)}, expected text")
    if len(value) > longest:
        raise ParameterError(f"{name}: found {len(value)} characters, expected at most {longest}")
    if any("\ud800" <= letter <= "\udfff" for letter in value):
        refuse(name, value, "text that UTF-8 can hold")
    return value


def time_in(body: dict[str, Any], name: str) -> int:
    """A time of an object, in microseconds since 1970 UTC."""
    value = body.get(name)
    if type(value) is not int or not -SAFE <= value <= SAFE:
        raise ParameterError(f"{name}: found {_kind(value)}, expected a whole number from {-SAFE} to {SAFE}")
    return value


def flag_in(body: dict[str, Any], name: str) -> bool:
    """A truth value of an object; False without one."""
    value = body.get(name, False)
    if not isinstance(value, bool):
        raise ParameterError(f"{name}: found {_kind(value)}, expected true or false")
    return value


def _kind(value: Any) -> str:
    return "nothing" if value is None else ascii(value)[:60]


def _no_number(text: str) -> float:
    raise ValueError(text)
