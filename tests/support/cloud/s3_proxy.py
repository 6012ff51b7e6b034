"""A proxy before a server of S3's protocol: counts requests, can lose answers, and can drop the conditions of writes."""

import http.client
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

CONDITIONS = ("if-match", "if-none-match")


class S3Proxy:
    """requests: method and path of each, in order. lose: so many answers to PUTs are lost from now on."""

    def __init__(self, behind: str) -> None:
        self.requests: list[tuple[str, str]] = []
        self.lose, self.ignores_conditions = 0, False
        self._behind = urlsplit(behind).netloc
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _forward(self) -> None:
                proxy.forward(self)

            do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _forward

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True

    def forward(self, asked: BaseHTTPRequestHandler) -> None:
        """Ask the server behind, and give its answer, or close the connection instead."""
        self.requests.append((asked.command, asked.path))
        dropped = ["host", "expect", "transfer-encoding", *(CONDITIONS if self.ignores_conditions else ())]
        headers = {name: value for name, value in asked.headers.items() if name.lower() not in dropped}
        body = _body(asked)
        behind = http.client.HTTPConnection(self._behind)
        behind.request(asked.command, asked.path, body, headers)
        answer = behind.getresponse()
        content = answer.read()
        behind.close()
        if asked.command == "PUT" and self.lose:
            self.lose -= 1
            asked.close_connection = True
            return
        asked.send_response_only(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("transfer-encoding", "connection", "content-length"):
                asked.send_header(name, value)
        length = answer.getheader("content-length", "0") if asked.command == "HEAD" else str(len(content))
        asked.send_header("content-length", length)
        asked.end_headers()
        asked.wfile.write(content)


def _body(asked: BaseHTTPRequestHandler) -> bytes:
    if asked.headers.get("transfer-encoding", "").lower() != "chunked":
        return asked.rfile.read(int(asked.headers.get("content-length", 0)))
    chunks = []
    while size := int(asked.rfile.readline().split(b";")[0], 16):
        chunks.append(asked.rfile.read(size))
        asked.rfile.readline()
    while asked.rfile.readline().strip():  # headers after the content
        pass
    return b"".join(chunks)


@contextmanager
def s3_proxy() -> Iterator[S3Proxy]:
    """A proxy before the server that AWS_ENDPOINT_URL names; the variable names the proxy meanwhile."""
    behind = os.environ["AWS_ENDPOINT_URL"]
    proxy = S3Proxy(behind)
    thread = threading.Thread(target=proxy.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    os.environ["AWS_ENDPOINT_URL"] = f"http://127.0.0.1:{proxy.server.server_port}"
    try:
        yield proxy
    finally:
        os.environ["AWS_ENDPOINT_URL"] = behind
        proxy.server.shutdown()
        thread.join()
        proxy.server.server_close()
