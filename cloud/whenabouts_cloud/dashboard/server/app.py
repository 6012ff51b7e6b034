"""The routes of the dashboard.

Answers are computed in threads, of which there are THREADS, so that a slow one does not hold up the streams of news.
"""

import contextlib
import importlib
import json
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import anyio.to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from whenabouts_cloud.dashboard.board import Board
from whenabouts_cloud.dashboard.server.news import MAX_STREAMS, News
from whenabouts_cloud.dashboard.server.page_files import INDEX, page_files, respond
from whenabouts_cloud.dashboard.server.parameters import ParameterError, view_of
from whenabouts_protocol.logs import Log

log = Log(__name__)

THREADS = 8


@dataclass(frozen=True)
class About:
    """What the page is told about this server."""

    landing: str
    results: tuple[str, ...] = ()
    rule_file: Path | None = None
    broker: str | None = None
    may_publish: bool = False


class Site(NamedTuple):
    """An application, and what ends its endless answers."""

    app: Starlette
    end: Callable[[], None]


def site_of(board: Board, about: About) -> Site:
    """The application of a board."""
    news, files = News(board.version), page_files()

    @contextlib.asynccontextmanager
    async def running(_app: Starlette) -> AsyncIterator[None]:
        anyio.to_thread.current_default_thread_limiter().total_tokens = THREADS
        yield
        news.ended.set()

    async def stream(_request: Request) -> Response:
        if news.open >= MAX_STREAMS:
            return refused(
                503, f"found {news.open} streams of news, expected fewer than {MAX_STREAMS}: close some pages"
            )
        return StreamingResponse(news.stream(), media_type="text/event-stream", headers={"cache-control": "no-store"})

    async def page(request: Request) -> Response:
        return respond(files, request.path_params.get("name", INDEX), request)

    routes = [
        Route("/healthz", lambda _request: JSONResponse({"ok": True}), methods=["GET"]),
        Route("/", page, methods=["GET"]),
        Route("/page/{name:path}", page, methods=["GET"]),
        Route("/api/news", stream, methods=["GET"]),
    ]
    for name, answer in ANSWERS.items():
        routes.append(Route(f"/api/{name}", _endpoint(answer, board, about), methods=["GET"]))
    app = Starlette(
        routes=routes,
        lifespan=running,
        exception_handlers={
            ParameterError: lambda _request, error: refused(400, str(error)),
            HTTPException: _http_error,
            Exception: lambda _request, _error: refused(500, "the server failed; its log says why"),
        },
    )
    return Site(app, news.ended.set)


def refused(status: int, text: str, headers: dict[str, str] | None = None) -> Response:
    """An error as the page understands it."""
    return JSONResponse({"error": text}, status, headers)


def _http_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return refused(error.status_code, error.detail, dict(error.headers or {}))


def _endpoint(answer: Callable[..., Any], board: Board, about: About) -> Callable[[Request], Response]:
    def endpoint(request: Request) -> Response:
        try:
            value = answer(board, about, request.query_params)
        except ModuleNotFoundError as error:
            return refused(503, f"not there yet: {error.name}")
        content = json.dumps(value, separators=(",", ":"), allow_nan=False).encode()
        return Response(content, 200, {"cache-control": "no-store"}, "application/json")

    return endpoint


def _overview(board: Board, about: About, _query: Any) -> Any:
    return {
        "landing": about.landing,
        "results": about.results,
        "rule_file": None if about.rule_file is None else str(about.rule_file),
        "now_us": time.time_ns() // 1000,
        "first_us": None, "last_us": None, "latest_landed_us": None, "readings": 0, "lanes": 0, "files": 0, "bytes": 0,
        "counted": 0.0, "exact": False, "problems": board.problems(), "rules": [], "may_publish": about.may_publish,
        "broker": about.broker, "has_truth": False, "version": board.version(),
    }  # fmt: skip


def _timeline(board: Board, _about: About, query: Any) -> Any:
    view = view_of(query)
    return importlib.import_module("whenabouts_cloud.dashboard.answers.timeline").timeline(board, view)


ANSWERS: dict[str, Callable[..., Any]] = {"overview": _overview, "timeline": _timeline}
