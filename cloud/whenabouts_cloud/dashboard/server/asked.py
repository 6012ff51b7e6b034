"""The routes that ask questions: check, try, why-not, publish. The process of a question ends when the page goes away."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from whenabouts_cloud.dashboard.board import Board
from whenabouts_cloud.dashboard.questions.asking import Asker, BusyError
from whenabouts_cloud.dashboard.server.about import About
from whenabouts_cloud.dashboard.server.access import refusal
from whenabouts_cloud.dashboard.server.bodies import body_of, flag_in, text_in, time_in
from whenabouts_cloud.dashboard.server.parameters import INT64, MAX_TEXT, ParameterError, one, whole

RETRY_S = 5
MAX_KEY = 1024
SUGGESTED = 20  # keys, where nothing was found of the one that was asked about

Endpoint = Callable[[Request], Awaitable[Response]]


class Questions:
    """The questions of one server."""

    def __init__(self, board: Board, about: About, asker: Asker) -> None:
        self._board, self._about, self._asker = board, about, asker

    def routes(self) -> list[tuple[str, str, Endpoint]]:
        """Path, method and endpoint of each."""
        return [
            ("/api/check", "POST", self.check),
            ("/api/try", "POST", self.attempt),
            ("/api/why-not", "GET", self.why_not),
            ("/api/publish", "POST", self.publish),
        ]

    async def check(self, request: Request) -> Response:
        """The mistakes of a text, or its rules with their explanations."""
        text = text_in(await body_of(request), "text")
        return await self._asked(request, "explain", {"text": text, "streams": self._board.streams()})

    async def attempt(self, request: Request) -> Response:
        """The results of a rule on what has landed in a time."""
        body = await body_of(request)
        rule = text_in(body, "rule", MAX_TEXT) if body.get("rule") is not None else None
        from_us, to_us = time_in(body, "from_us"), time_in(body, "to_us")
        if from_us >= to_us:
            raise ParameterError(f"to_us: found {to_us}, expected a time after from_us, {from_us}")
        about = {"landing": self._about.landing, "rule": rule, "from_us": from_us, "to_us": to_us}
        return await self._asked(request, "try", {**about, "text": text_in(body, "text")})

    async def why_not(self, request: Request) -> Response:
        """What became of a key around a time."""
        query = request.query_params
        key, at_us = one(query, "key", longest=MAX_KEY), whole(query, "at", -INT64, INT64 - 1)
        rule = one(query, "rule", "") or None
        text = await asyncio.to_thread(lambda: self._board.rules.text)
        if not text:
            return refusal(409, "found no rules, expected a rule file: start the dashboard with --rule FILE")
        values = {"landing": self._about.landing, "text": text, "rule": rule, "key": key, "at_us": at_us}
        return await self._asked(request, "why-not", values, self._with_keys)

    async def publish(self, request: Request) -> Response:
        """Where the rules of a text would run; with `confirm` they are sent there."""
        if not self._about.may_publish or self._about.broker is None:
            return refusal(403, "found a dashboard that only reads; start it with --broker and --allow-publish")
        body = await body_of(request)
        send = flag_in(body, "confirm")
        return await self._asked(
            request, "publish", {**self._about.publishing, "text": text_in(body, "text"), "send": send}
        )

    async def _asked(
        self,
        request: Request,
        kind: str,
        values: Mapping[str, Any],
        more: Callable[[dict[str, Any]], dict[str, Any]] = lambda found: found,
    ) -> Response:
        question, gone = asyncio.ensure_future(self._asker.ask(kind, values)), asyncio.ensure_future(_gone(request))
        try:
            await asyncio.wait({question, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not question.done():
                return refusal(499, "the page has gone")
            found = question.result()
        except BusyError as error:
            return refusal(429, str(error), {"retry-after": str(RETRY_S)})
        finally:
            for task in (question, gone):
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError, BusyError):
                    await task
        if "error" in found:
            return refusal(422, found["error"])
        return JSONResponse(await asyncio.to_thread(more, found))

    def _with_keys(self, found: dict[str, Any]) -> dict[str, Any]:
        """Suggest keys where there is no reading of the one that was asked about."""
        answer = found["answer"]
        if answer.get("readings") or answer.get("kind") == "states":
            return {**found, "keys": []}
        return {**found, "keys": self._board.keys(answer["key"][:4], SUGGESTED) or self._board.keys("", SUGGESTED)}


async def _gone(request: Request) -> None:
    """Return when the client has closed the connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
