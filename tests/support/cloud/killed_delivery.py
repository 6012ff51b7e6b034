"""A process that delivers a folder and is killed before a line of its own: `python killed_delivery.py` in forks.

    stdin    {"out": ..., "uri": ..., "unit": ..., "kill": [file, line] or null}, one a line
    stdout   for each: {"signal": 9 or 0, "code": ..., "lines": [[file, line], ...]}

The product is run as it is. A fork of this process traces the thread that delivers; `lines` are those of the package
`delivery` that the thread has reached, in the order of their first visit.
"""

import contextlib
import json
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import deltalake  # noqa: F401  # imported, so that forks need not; used in forks only

import whenabouts_cloud.delivery.capturing.capture
import whenabouts_cloud.delivery.delta
import whenabouts_cloud.delivery.kafka
import whenabouts_cloud.delivery.mqtt
import whenabouts_cloud.delivery.postgres
import whenabouts_cloud.delivery.webhook  # noqa: F401
from whenabouts_cloud.delivery import deliveries

with contextlib.suppress(ImportError):
    import confluent_kafka  # noqa: F401
    import psycopg.sql  # noqa: F401

FOLDER = str(Path(deliveries.__file__).parent)


def deliver(work: dict[str, Any], told: int) -> None:
    """Deliver all that is published and end; or be killed before a line."""
    seen: dict[tuple[str, int], None] = {}
    kill = tuple(work["kill"] or ())

    def trace(frame: Any, event: str, _: Any) -> Any:
        if not frame.f_code.co_filename.startswith(FOLDER):
            return None
        at = (Path(frame.f_code.co_filename).name, frame.f_lineno)
        if event == "line":
            if at == kill:
                os.kill(os.getpid(), signal.SIGKILL)
            seen.setdefault(at)
        return trace

    threading.settrace(trace)
    some = deliveries.Deliveries(Path(work["out"]), work["unit"], [work["uri"]], {})
    some.start()
    problems = some.finish(None)
    os.write(told, json.dumps([*seen]).encode())
    sys.stderr.write("\n".join(problems))
    os._exit(1 if problems else 0)


def main() -> None:
    """Serve one line after the other."""
    for line in sys.stdin:
        work = json.loads(line)
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            deliver(work, writing)
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            seen = pipe.read()
        _, status = os.waitpid(child, 0)
        print(json.dumps({
            "signal": os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0,
            "code": os.waitstatus_to_exitcode(status), "lines": json.loads(seen or "[]"),
        }), flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
