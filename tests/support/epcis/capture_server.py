"""A capture interface of EPCIS 2.0 that keeps events as a repository does, and fails as it is told to."""

import contextlib
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from support.epcis.gs1 import faults

Event = dict[str, Any]


class Repository(ThreadingHTTPServer):
    """Documents must be valid by GS1's schema. Events are kept by their id, those that take one back beside it.

    answers: statuses of the next requests to capture, then 202. refuses: true for events that it does not want. looks: how
    often a job still runs when it is asked for; None: there are no jobs, and the answer is 201. by_job: a refusal is told by
    the job. location: before the path of a job, or all of it if jobs are not numbered. slow_s: before each answer.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.events: dict[tuple[str, bool], Event] = {}
        self.posts: Counter[str] = Counter()  # how often each event came
        self.sizes: list[int] = []  # events of each document that was asked to be kept
        self.headers: list[dict[str, str]] = []
        self.answers: list[int] = []
        self.refuses: Callable[[Event], bool] = lambda event: False
        self.refusal = 400
        self.most_events = 1 << 30
        self.looks: int | None = 1
        self.by_job = False
        self.location, self.numbered = "", True
        self.slow_s = 0.0
        self.jobs: dict[str, dict[str, Any]] = {}
        self.looked: list[str] = []
        self._valid: set[str] = set()
        self.uri = f"epcis:http://127.0.0.1:{self.server_address[1]}/v1/capture?tenant=7"

    def capture(self, document: dict[str, Any]) -> tuple[int, str]:
        """Keep all events or none; (status, problem)."""
        events = document["epcisBody"]["eventList"]
        self.sizes.append(len(events))
        new = [one for one in events if json.dumps(one) not in self._valid]  # the check takes milliseconds an event
        problems = faults(document | {"epcisBody": {"eventList": new}})
        self._valid.update(json.dumps(one) for one in new if not problems)
        if problems or any(map(self.refuses, events)):
            return self.refusal, (problems or ["not wanted"])[0]
        if len(events) > self.most_events:
            return 413, "too many"
        for one in events:
            self.events[one["eventID"], "errorDeclaration" in one] = one
            self.posts[one["eventID"]] += 1
        return 202, ""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Repository

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        time.sleep(self.server.slow_s)
        self.server.headers.append(dict(self.headers))
        assert self.path == "/v1/capture?tenant=7"
        status = self.server.answers.pop(0) if self.server.answers else 202
        if status == 0:  # the connection is cut, after the events are kept
            self.server.capture(json.loads(body))
            self.close_connection = True
            return
        if status >= 300:
            self._answer(status, {}, {"Location": f"http://127.0.0.1:{self.server.server_address[1]}/elsewhere"})
            return
        status, problem = self.server.capture(json.loads(body))
        if status == 202 or self.server.by_job:
            self._accept(status == 202, problem)
        else:
            self._answer(status, {"type": "epcisException:ValidationException", "title": problem})

    def _accept(self, success: bool, problem: str) -> None:
        if self.server.looks is None:
            self._answer(201, {})
            return
        path = f"/v1/capture/{len(self.server.jobs)}"
        errors = [{"type": "epcisException:ValidationException", "title": problem}] if problem else []
        self.server.jobs[path] = {"left": self.server.looks, "success": success, "errors": errors}
        self._answer(202, {}, {"Location": self.server.location + (path if self.server.numbered else "")})

    def do_GET(self) -> None:
        self.server.looked.append(self.path)
        job = self.server.jobs.get(self.path)
        if job is None:
            self._answer(404, {})
            return
        job["left"] -= 1
        self._answer(200, {"captureID": self.path, "running": job["left"] >= 0} | job)

    def _answer(self, status: int, value: Any, headers: dict[str, str] | None = None) -> None:
        text = json.dumps(value).encode()
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.send_response(status)
            for name, x in {"Content-Length": str(len(text)), **(headers or {})}.items():
                self.send_header(name, x)
            self.end_headers()
            self.wfile.write(text)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@contextlib.contextmanager
def repository() -> Iterator[Repository]:
    """A server in a thread until the end of the block."""
    server = Repository()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
