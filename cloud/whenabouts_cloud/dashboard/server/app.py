"""The routes of the dashboard.

Answers are computed in threads, of which there are THREADS, so that a slow one does not hold up the streams of news. An
error that nobody expected is a line of the log; the client is told only that there was one.
"""

import contextlib
import json
from collections.abc import AsyncIterator, Callable
from typing import Any, NamedTuple

import anyio.to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from whenabouts_cloud.dashboard.board import Board
from whenabouts_cloud.dashboard.questions.asking import Asker
from whenabouts_cloud.dashboard.questions.plain_values import plain
from whenabouts_cloud.dashboard.server.about import About
from whenabouts_cloud.dashboard.server.access import Access, Logins, refusal
from whenabouts_cloud.dashboard.server.asked import Questions
from whenabouts_cloud.dashboard.server.bodies import BodyError
from whenabouts_cloud.dashboard.server.exports import exports
from whenabouts_cloud.dashboard.server.news import MAX_STREAMS, News
from whenabouts_cloud.dashboard.server.page_files import INDEX, page_files, respond
from whenabouts_cloud.dashboard.server.parameters import ParameterError
from whenabouts_cloud.dashboard.server.shown import VIEWS, Answer
from whenabouts_protocol.logs import Log

log = Log(__name__)

THREADS = 8


class Site(NamedTuple):
    """An application, and what ends its endless answers."""

    app: ASGIApp
    end: Callable[[], None]


class Guard(NamedTuple):
    """Who may ask: names that a Host header may have (None: any), logins (None: nobody needs one), and whether by TLS."""

    hosts: frozenset[str] | None = frozenset(("localhost", "127.0.0.1", "::1"))
    logins: Logins | None = None
    tls: bool = False


def site_of(board: Board, about: About, guard: Guard) -> Site:
    """The application of a board. Call it in any thread; `end` belongs to the thread of its event loop."""
    news, files, asker = News(board.version), page_files(), Asker()

    def end() -> None:
        news.ended.set()
        asker.close()

    @contextlib.asynccontextmanager
    async def running(_app: Starlette) -> AsyncIterator[None]:
        anyio.to_thread.current_default_thread_limiter().total_tokens = THREADS
        yield
        end()

    async def stream(_request: Request) -> Response:
        if news.open >= MAX_STREAMS:
            text = f"found {news.open} streams of news, expected fewer than {MAX_STREAMS}: close some pages"
            return refusal(503, text, {"retry-after": "10"})
        return StreamingResponse(news.stream(), media_type="text/event-stream")

    async def page(request: Request) -> Response:
        return respond(files, request.path_params.get("name", INDEX), request)

    async def healthy(_request: Request) -> Response:
        return JSONResponse({"ok": True})

    routes = [
        Route("/healthz", healthy, methods=["GET"]),
        Route("/", page, methods=["GET"]),
        Route("/page/{name:path}", page, methods=["GET"]),
        Route("/api/news", stream, methods=["GET"]),
        *(Route(f"/api/{name}", _endpoint(view, board, about), methods=["GET"]) for name, view in VIEWS.items()),
        *(Route(path, export, methods=["GET"]) for path, export in exports(board)),
        *(Route(path, ask, methods=[method]) for path, method, ask in Questions(board, about, asker).routes()),
    ]
    app = Starlette(
        routes=routes,
        lifespan=running,
        exception_handlers={
            ParameterError: _wrong_parameter,
            BodyError: _wrong_body,
            HTTPException: _http_error,
            Exception: _failed,
        },
    )
    app.router.redirect_slashes = False
    return Site(Access(app, guard.hosts, guard.logins, guard.tls), end)


def _endpoint(view: Answer, board: Board, about: About) -> Callable[[Request], Response]:
    def endpoint(request: Request) -> Response:
        return Response(encoded(view(board, about, request.query_params)), media_type="application/json")

    return endpoint


def encoded(value: Any) -> bytes:
    """A value as JSON; numbers that JSON lacks become null."""
    try:
        text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    except ValueError:
        text = json.dumps(plain(value), separators=(",", ":"))
    return text.encode()


def _wrong_parameter(_request: Request, error: Exception) -> Response:
    return refusal(400, str(error))


def _wrong_body(_request: Request, error: Exception) -> Response:
    assert isinstance(error, BodyError)
    return refusal(error.status, str(error), {"connection": "close"})


def _http_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return refusal(error.status_code, error.detail, dict(error.headers or {}))


def _failed(request: Request, error: Exception) -> Response:
    return refusal(500, "the server failed, and its log says why; please report it")
