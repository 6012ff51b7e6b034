"""How a process ends that was asked to: by itself, or cut short with a word on what it waits for."""

import signal
import subprocess
import sys

import pytest

from support.child import environment
from whenabouts_cloud.orderly_end import EXIT_HUNG, orderly_end

LIMIT_S = 90.0

# It prints when it can be ended; nobody releases the lock.
PROGRAM = """
import sys, threading
from whenabouts_cloud.orderly_end import orderly_end

asked, lost_lock = threading.Event(), threading.Lock()

def wait_for_a_lock_that_nobody_releases():
    lost_lock.acquire()
    lost_lock.acquire()

with orderly_end(asked.set, float(sys.argv[1])):
    print("ready", flush=True)
    {body}
"""


def program(body: str, within_s: float, **streams: int) -> subprocess.Popen[bytes]:
    """A process that has begun this body."""
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(body=body), str(within_s)],
        stdout=subprocess.PIPE, env=environment(), **streams,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return process


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_who_ends_in_time_ends_with_its_own_code(number):
    """The signal reaches `ask`; a second one changes nothing; nothing is printed."""
    process = program("asked.wait(); print('asked', flush=True); sys.stdin.readline(); sys.exit(3)", 30,
                      stdin=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip
    process.send_signal(number)
    assert process.stdout.readline() == b"asked\n"
    process.send_signal(number)
    _, said = process.communicate(b"\n", LIMIT_S)
    assert (process.returncode, said) == (3, b"")


def test_a_hanging_process_prints_its_function_and_is_ended():
    """A separate exit code, and the function that hangs on stderr."""
    process = program("wait_for_a_lock_that_nobody_releases()", 0.2, stderr=subprocess.PIPE)
    process.terminate()
    _, said = process.communicate(timeout=LIMIT_S)
    assert process.returncode == EXIT_HUNG
    assert b"running 0.2 s after it was asked to end" in said
    assert b"in wait_for_a_lock_that_nobody_releases" in said


def test_who_hangs_in_a_report_that_nobody_reads_is_ended_too():
    """stderr is a full pipe, perhaps what the process hangs at: the kernel ends it."""
    body = "import os; os.set_blocking(2, False)\n    while True:\n        try: os.write(2, bytes(4096))\n"
    body += "        except BlockingIOError: break\n"
    body += "    os.set_blocking(2, True); print('full', flush=True); os.write(2, b'!')"
    process = program(body, 0.2, stderr=subprocess.PIPE)
    assert process.stdout.readline() == b"full\n"
    process.terminate()
    assert process.wait(LIMIT_S) == -signal.SIGALRM
    process.stderr.close()
    process.stdout.close()


def test_who_was_not_asked_keeps_the_handlers_it_had():
    """After the block signals mean what they meant before."""
    numbers = (signal.SIGTERM, signal.SIGINT)
    before = [signal.getsignal(number) for number in numbers]
    with orderly_end(lambda: None, 1):
        assert [signal.getsignal(number) for number in numbers] != before
    assert [signal.getsignal(number) for number in numbers] == before
    assert signal.set_wakeup_fd(-1) == -1
