"""The process of a question limits itself, and answers whatever it is asked."""

import json
import signal
import subprocess
import sys
from subprocess import PIPE

from support.child import environment
from whenabouts_cloud.dashboard.questions.child import GRACE_S, answer

MODULE = "whenabouts_cloud.dashboard.questions.child"


def test_a_question_that_fails_has_an_error_for_an_answer():
    """In one line."""
    assert answer("try", {"landing": "/nowhere", "text": "RULE", "rule": None, "from_us": 0, "to_us": 1}) == {
        "error": "rules:1:5: found the end of the declaration, expected a name"
    }


def test_a_process_answers_on_stdout():
    """Nothing else is written there."""
    done = subprocess.run(
        [sys.executable, "-m", MODULE, "20", str(1 << 30)], env=environment(), capture_output=True, check=True,
        input=json.dumps({"kind": "explain", "text": "RULE"}).encode(), timeout=60,
    )  # fmt: skip
    assert json.loads(done.stdout)["ok"] is False


def test_a_process_has_no_more_memory_than_it_is_given():
    """What is too large for it is an error, not the end of the machine."""
    code = (
        f"import sys, {MODULE} as child; sys.argv[1:] = ['20', str(200 << 20)]\n"
        "child.KINDS['explain'] = 'large'\n"
        "import types; large = sys.modules['large'] = types.ModuleType('large')\n"
        "large.answer = lambda values: {'size': len(bytearray(1 << 30))}\n"
        "child.main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(), capture_output=True, check=True,
        input=b'{"kind": "explain"}', timeout=60,
    )  # fmt: skip
    assert "memory" in json.loads(done.stdout)["error"]


def test_a_process_ends_by_itself_in_time():
    """Nobody else would end it when the server was killed."""
    done = subprocess.Popen(
        [sys.executable, "-m", MODULE, str(1 - GRACE_S), "1000000000"], env=environment(), stdin=PIPE
    )
    assert done.wait(60) == -signal.SIGALRM
    done.stdin.close()
