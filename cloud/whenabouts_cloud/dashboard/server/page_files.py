"""The files of the page, by a list that is made at the start: a request chooses from it, and no path is ever joined.

All of them together are below 1 MB and are kept in memory with their hash, which browsers send back to learn that nothing
has changed. While the page is being written, `fresh` reads a file again at each request.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

PAGE = Path(__file__).parent.parent / "page"
KINDS = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".mjs": "text/javascript",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".json": "application/json",
    ".map": "application/json",
    ".woff2": "font/woff2",
    ".txt": "text/plain",
    ".md": "text/plain",
}
INDEX = "index.html"


@dataclass(frozen=True, slots=True)
class PageFile:
    """A file of the page. tag: its hash, quoted as an ETag."""

    content: bytes
    kind: str
    tag: str


def page_files(folder: Path = PAGE) -> dict[str, PageFile]:
    """The files below a folder by their path in it; those of unknown kinds and hidden ones are left out."""
    paths = sorted(path for path in folder.rglob("*") if path.suffix in KINDS and path.is_file())
    named = {path.relative_to(folder).as_posix(): path for path in paths}
    return {name: _file(path) for name, path in named.items() if not any(x[0] == "." for x in name.split("/"))}


def respond(files: dict[str, PageFile], name: str, request: Request) -> Response:
    """The response with a file of the list; 304 if the browser has it, 404 without one."""
    file = files.get(name)
    if file is None:
        return Response("no such file", 404, media_type="text/plain")
    headers = {"etag": file.tag, "cache-control": "no-cache"}
    if request.headers.get("if-none-match") == file.tag:
        return Response(status_code=304, headers=headers)
    return Response(file.content, 200, headers, file.kind)


def _file(path: Path) -> PageFile:
    content = path.read_bytes()
    return PageFile(content, KINDS[path.suffix], f'"{hashlib.sha256(content).hexdigest()[:32]}"')
