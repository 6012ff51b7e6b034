"""Looking at a page in Chromium: what it shows in tables and pixels, and whether it kept its own rules."""

import io
from typing import Any
from urllib.parse import urlsplit

from PIL import Image
from playwright.sync_api import ConsoleMessage, Page, Request

CHROMIUM = "/usr/bin/chromium"
# Without a sandbox, as tests may run as root in a container; without what asks Google's servers at every start.
FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
LIMIT_MS = 60_000


class Watched:
    """What a page does that none may do: errors, breaches of its security policy, requests to other hosts.

    A page whose server is killed is allowed to say that it cannot be reached: set `server_may_end`. So is one whose
    question is refused: set `server_may_refuse`.
    """

    def __init__(self, page: Page) -> None:
        self.server_may_end = self.server_may_refuse = False
        self._faults: list[str] = []
        page.on("pageerror", lambda error: self._faults.append(f"error: {error}"))
        page.on("console", self._told)
        page.on("request", self._requested)

    def faults(self) -> list[str]:
        """What went wrong until now."""
        return list(self._faults)

    def _told(self, message: ConsoleMessage) -> None:
        if message.type != "error":
            return
        if self.server_may_end and "net::ERR_" in message.text:
            return
        if self.server_may_refuse and "responded with a status of 4" in message.text:
            return
        self._faults.append(f"console: {message.text}")

    def _requested(self, request: Request) -> None:
        parts = urlsplit(request.url)
        if parts.scheme not in ("blob", "data") and parts.hostname != "127.0.0.1":
            self._faults.append(f"request to {request.url}")


def opened(page: Page, url: str, view: str) -> Any:
    """Open a view of a dashboard and wait for what it shows; return its section."""
    page.goto(f"{url}#{view}")
    section = page.locator(f'section[data-view="{view.partition("?")[0]}"]')
    section.wait_for(state="visible", timeout=LIMIT_MS)
    return section


def rows_of(table: Any) -> list[list[str]]:
    """The texts of a table's body, row by row, also where the table is only for screen readers."""
    found: list[list[str]] = table.evaluate(
        "table => [...table.tBodies].flatMap(body => [...body.rows])"
        ".map(row => [...row.cells].map(cell => cell.textContent.trim()))"
    )
    return found


def picture(element: Any) -> Image.Image:
    """What is drawn where an element is, a pixel of the picture for each CSS pixel."""
    return Image.open(io.BytesIO(element.screenshot(timeout=LIMIT_MS))).convert("RGB")


def same(a: tuple[int, ...], b: tuple[int, ...], most: int = 12) -> bool:
    """True if two colours differ by no more than smoothing of edges explains."""
    return all(abs(x - y) <= most for x, y in zip(a, b, strict=True))
