"""The process that answers one question: `python -m ...child LIMITS`, JSON on stdin, JSON on stdout.

A rule text comes from anyone who may open the page, and a pattern of a few letters can need years or all memory. So each
question has a process of its own: what it may use is limited before anything is read (memory, processor time, an alarm that
also ends it when the server is gone), and the server kills it in time. Whatever the question prints goes to stderr: stdout
carries nothing but the answer.

Cost: 0.3 s to start for `explain`, 1 to 1.5 s for the others, which load kernels.
"""

import importlib
import json
import os
import resource
import signal
import sys
from collections.abc import Mapping
from typing import Any

KINDS = {
    "explain": "whenabouts_cloud.dashboard.questions.explained",
    "why-not": "whenabouts_cloud.dashboard.questions.reasons",
    "try": "whenabouts_cloud.dashboard.questions.trial",
    "publish": "whenabouts_cloud.dashboard.questions.publishing",
}
GRACE_S = 5  # that the alarm comes later than the server's own limit
REFUSED = (ValueError, LookupError, OSError, MemoryError, RecursionError, OverflowError)


def answer(kind: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """The answer to a question, {"error": text} if it has none."""
    try:
        found: dict[str, Any] = importlib.import_module(KINDS[kind]).answer(values)
    except MemoryError:
        return {"error": "found no answer within the memory that a question may use; ask about less"}
    except (KeyError, IndexError):
        raise  # a fault of ours: the server logs what this process says
    except REFUSED as error:
        return {"error": " ".join(str(error).split())[:1000] or type(error).__name__}
    return found


def main() -> None:
    """Answer the question on stdin."""
    seconds, memory_bytes = map(int, sys.argv[1:3])
    _limit(seconds + GRACE_S, memory_bytes)
    out = os.dup(1)
    os.dup2(2, 1)
    question = json.loads(sys.stdin.buffer.read())
    with open(out, "wb") as file:
        file.write(json.dumps(answer(question["kind"], question)).encode())
    os._exit(0)  # threads of libraries may still run


def _limit(seconds: int, memory_bytes: int) -> None:
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(seconds)
    resource.setrlimit(resource.RLIMIT_CPU, (2 * seconds, 2 * seconds))
    resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.nice(5)  # the page comes first


if __name__ == "__main__":
    main()
