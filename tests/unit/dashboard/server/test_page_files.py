"""The page's files come from a list: nothing else can be asked for."""

import hashlib

import pytest
from starlette.requests import Request

from whenabouts_cloud.dashboard.server.page_files import PAGE, page_files, respond


@pytest.fixture
def folder(tmp_path):
    """A page with a folder of a library, and files that are not for browsers."""
    page = tmp_path / "page"
    (page / "vendor").mkdir(parents=True)
    (page / "index.html").write_text("<!doctype html>")
    (page / "vendor" / "chart.js").write_text("export {}")
    (page / "notes.py").write_text("secret")
    (page / ".hidden.js").write_text("secret")
    (tmp_path / "secret.js").write_text("secret")
    return page


def request(**headers):
    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return Request({"type": "http", "method": "GET", "path": "/", "headers": raw, "query_string": b""})


def test_files_of_known_kinds_are_listed_by_their_path(folder):
    """Hidden ones and programs are not."""
    found = page_files(folder)
    assert {name: file.kind for name, file in found.items()} == {
        "index.html": "text/html",
        "vendor/chart.js": "text/javascript",
    }


def test_a_file_is_answered_with_its_kind_and_hash(folder):
    """Who has it already is told so, without the content."""
    files = page_files(folder)
    first = respond(files, "vendor/chart.js", request())
    assert (first.status_code, first.body, first.media_type) == (200, b"export {}", "text/javascript")
    again = respond(files, "vendor/chart.js", request(if_none_match=first.headers["etag"]))
    assert (again.status_code, again.body) == (304, b"")


@pytest.mark.parametrize(
    "name", ["../secret.js", "..%2fsecret.js", "/etc/passwd", "notes.py", ".hidden.js", "", "a\x00b"]
)
def test_what_is_not_in_the_list_is_not_there(folder, name):
    """A path is never joined with the folder."""
    assert respond(page_files(folder), name, request()).status_code == 404


def test_the_page_of_the_package_is_there():
    """It has an index."""
    assert page_files()["index.html"].content.startswith(b"<!doctype html>")


def test_vendored_files_are_those_that_their_readme_names_by_hash():
    """Nobody changes them unseen."""
    folder = PAGE / "vendor" / "uplot"
    text = (folder / "README.md").read_text()
    files = [file for file in folder.iterdir() if file.name != "README.md"]
    assert len(files) == 3
    assert [file.name for file in files if hashlib.sha256(file.read_bytes()).hexdigest() not in text] == []
