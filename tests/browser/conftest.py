"""A real Chromium, the known run, and a dashboard that serves it; one of each for a file of tests.

Playwright keeps an event loop in the thread of the tests until it ends: it must not outlive a file of tests, as tests of
other folders, which run in the same process, have loops of their own.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from support.browser.known_run import make
from support.browser.look import CHROMIUM, FLAGS, Watched
from support.browser.served import Served, served
from support.waiting import until


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """The browser."""
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    """Landing, results and rules of the known run; no test changes them."""
    return make(tmp_path_factory.mktemp("known"))


@pytest.fixture(scope="module")
def known(run: tuple[Path, Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A dashboard over the known run, all of which is counted: before that it shows fewer lanes, and estimates."""
    landing, results, rules = run
    with served(landing, tmp_path_factory.mktemp("log"), results=[results], rule=rules) as server:
        until(lambda: server.get("/api/overview").json["exact"], "the dashboard to have counted the run")
        yield server


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A new page; the test fails if the page raised an error, broke its security policy, or asked another host."""
    context = browser.new_context(viewport={"width": 1280, "height": 800}, accept_downloads=True)
    opened = context.new_page()
    watched = opened.watched = Watched(opened)  # type: ignore[attr-defined]
    yield opened
    context.close()
    assert watched.faults() == []
