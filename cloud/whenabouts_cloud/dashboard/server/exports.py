"""The timeline of a request as a file: pictures and tables."""

from collections.abc import Callable

from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response

from whenabouts_cloud.dashboard.answers.timeline_answer import timeline
from whenabouts_cloud.dashboard.board import Board
from whenabouts_cloud.dashboard.picture.timeline_picture import THEMES
from whenabouts_cloud.dashboard.picture.view_file import MEDIA_TYPES, view_file
from whenabouts_cloud.dashboard.server.parameters import one, refuse, view_of, whole

PATHS = {
    "svg": "/api/picture.svg",
    "png": "/api/picture.png",
    "csv": "/api/export.csv",
    "parquet": "/api/export.parquet",
}
MOST_PX = 4000


def exports(board: Board) -> list[tuple[str, Callable[[Request], Response]]]:
    """Path and endpoint of each kind of file. Endpoints are called in threads."""
    return [(path, _endpoint(board, kind)) for kind, path in PATHS.items()]


def _endpoint(board: Board, kind: str) -> Callable[[Request], Response]:
    def endpoint(request: Request) -> Response:
        width, height, theme = _size(request.query_params)
        answer = timeline(board.landed, board.results, view_of(request.query_params))
        name = {"content-disposition": f'attachment; filename="timeline.{kind}"'}
        return Response(view_file(answer, kind, width, height, theme), 200, name, MEDIA_TYPES[kind])

    return endpoint


def _size(query: QueryParams) -> tuple[int, int, str]:
    theme = one(query, "theme", "light")
    if theme not in THEMES:
        refuse("theme", theme, "light or dark")
    return whole(query, "width", 300, MOST_PX, 1200), whole(query, "height", 0, MOST_PX, 0), theme
