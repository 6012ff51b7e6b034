"""A dashboard that serves: as the command in a process of its own, or its application in a thread; and its HTTP client."""

import http.client
import json
import os
import select
import signal
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from support.child import environment
from support.waiting import until
from whenabouts_cloud.dashboard.board import Board
from whenabouts_cloud.dashboard.data.landed import LandedIndex
from whenabouts_cloud.dashboard.questions.rule_book import RuleBook
from whenabouts_cloud.dashboard.results.health_state import HealthState
from whenabouts_cloud.dashboard.results.result_index import ResultIndex
from whenabouts_cloud.dashboard.server.app import Site
from whenabouts_cloud.dashboard.server.serving import Serving, listening, serving
from whenabouts_cloud.landing.store import Store

LIMIT_S = 60.0
COMMAND = [sys.executable, "-m", "whenabouts_cloud.cli", "dashboard"]


@dataclass(frozen=True)
class Answer:
    """A response."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


@dataclass(frozen=True)
class Served:
    """A dashboard at a URL; `process` if it is one of its own. context: for TLS."""

    url: str
    process: "subprocess.Popen[str] | None" = None
    log: Path | None = None
    context: ssl.SSLContext | None = None

    @property
    def port(self) -> int:
        """Its port."""
        return urlsplit(self.url).port or 0

    def connect(self) -> http.client.HTTPConnection:
        """A new connection."""
        if self.context is not None:
            return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=LIMIT_S, context=self.context)
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT_S)

    def get(self, path: str, headers: Mapping[str, str] = {}, method: str = "GET", body: bytes | None = None) -> Answer:
        """The answer to a request; a `Host` among the headers replaces the usual one."""
        connection = self.connect()
        try:
            connection.putrequest(method, path, skip_host="Host" in headers, skip_accept_encoding=True)
            for name, value in headers.items():
                connection.putheader(name, value)
            if body is not None:
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
            response = connection.getresponse()
            return Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
        finally:
            connection.close()

    def post(self, path: str, value: Any, headers: Mapping[str, str] = {}) -> Answer:
        """The answer to a JSON body."""
        content = {"Content-Type": "application/json", **headers}
        return self.get(path, content, "POST", json.dumps(value).encode())

    @contextmanager
    def news(self) -> Iterator[http.client.HTTPResponse]:
        """An open stream of news."""
        connection = self.connect()
        try:
            connection.request("GET", "/api/news")
            yield connection.getresponse()
        finally:
            connection.close()


@contextmanager
def served(
    landing: Path,
    folder: Path,
    *options: str,
    results: Sequence[Path] = (),
    rule: Path | None = None,
    context: ssl.SSLContext | None = None,
) -> Iterator[Served]:
    """The command on a free port in a process; its log is written into `folder`. It is killed if it still runs then."""
    log = folder / "dashboard.log"
    arguments = ["--landing", str(landing), "--port", "0", *options]
    arguments += [part for place in results for part in ("--results", str(place))]
    arguments += [] if rule is None else ["--rule", str(rule)]
    with log.open("w") as errors:
        process = subprocess.Popen(
            [*COMMAND, *arguments], env=environment(), stdout=subprocess.PIPE, stderr=errors, text=True
        )
    try:
        assert process.stdout is not None
        assert select.select([process.stdout], [], [], LIMIT_S)[0], f"no address after {LIMIT_S} s"
        line = process.stdout.readline()
        assert line.startswith("Dashboard: "), f"found {line!r} and {log.read_text()!r}, expected an address"
        made = Served(line.split()[1], process, log, context)
        until(lambda: _answers(made), "the dashboard to answer")
        yield made
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def end(dashboard: Served, number: signal.Signals = signal.SIGINT) -> int:
    """Ask a process to end; return its exit code."""
    assert dashboard.process is not None
    os.kill(dashboard.process.pid, number)
    return dashboard.process.wait(LIMIT_S)


@contextmanager
def in_thread(
    site: Site, server: Serving | None = None, tls: tuple[Path, Path, ssl.SSLContext] | None = None
) -> Iterator[Served]:
    """An application on a free port, in a thread of this process. tls: certificate, key, and the context of clients."""
    opened = listening("127.0.0.1", 0)
    url = f"http{'' if tls is None else 's'}://127.0.0.1:{opened.getsockname()[1]}/"
    server = server or serving(site, *(() if tls is None else map(str, tls[:2])))
    thread = threading.Thread(target=server.run, args=([opened],), daemon=True)
    thread.start()
    try:
        until(lambda: server.started or not thread.is_alive(), "the server to start")
        yield Served(url, context=None if tls is None else tls[2])
    finally:
        server.stop()
        thread.join(LIMIT_S)
    assert not thread.is_alive()


def board_over(landing: Path | str = "/nowhere", rules: Path | None = None) -> Board:
    """A board over a landing, without results."""
    store = Store.at(landing)
    return Board(LandedIndex(store), ResultIndex(()), HealthState(store), RuleBook(rules))


def _answers(dashboard: Served) -> bool:
    try:
        return dashboard.get("/healthz").status == 200
    except OSError:
        return False
