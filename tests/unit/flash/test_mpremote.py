"""Answers of a board and of mpremote: facts, and each failure with a remedy. The port itself is in tests/e2e."""

import os
import re

import pytest
from click.testing import CliRunner

from whenabouts_edge.flash import FlashError
from whenabouts_edge.flash.command import flash_command
from whenabouts_edge.flash.first_heartbeat import FirstHeartbeatWatch
from whenabouts_edge.flash.mpremote import Device, explained, seen

SAID = """\
board rp2 6 1.27.0
machine Raspberry Pi Pico W with RP2040
free 700416
folder /lib
file 12 0a /lib/whenabouts_edge/a b.mpy
end
""".splitlines()


def test_the_lines_of_a_board_are_understood():
    """A name with a space too."""
    facts = seen(SAID, "p")
    assert (facts.platform, facts.mpy_version, facts.firmware) == ("rp2", 6, "1.27.0")
    assert facts.machine == "Raspberry Pi Pico W with RP2040"
    assert (facts.free_bytes, facts.files) == (700416, {"/lib/whenabouts_edge/a b.mpy": (12, "0a")})
    assert facts.folders == {"/lib"}
    assert seen(["free -1" if line.startswith("free") else line for line in SAID], "p").free_bytes is None


@pytest.mark.parametrize("missing", ["board", "machine", "free", "end"])
def test_an_answer_that_is_cut_is_refused(missing):
    """Half an answer would look like a board that lacks files."""
    with pytest.raises(FlashError, match="not MicroPython's"):
        seen([line for line in SAID if not line.startswith(missing)], "p")


ENDINGS = [
    # (exit code, stdout, stderr, the expected report)
    (1, "", "mpremote: failed to access /dev/x (it may be in use by another program)\n", "in use by another program"),
    (
        1,
        "b'garbage'\n",
        "mpremote.transport.TransportError: could not enter raw repl\n",
        "does not answer as MicroPython",
    ),
    (None, "", "", "does not answer as MicroPython"),
    (1, "cp a :b\n", "mpremote: cp: b: No space left on device.\n", "found it full, expected room"),
    (1, "", 'File "<stdin>", line 1\nOSError: 28\n', "found it full, expected room"),
    (1, "", "OSError: [Errno 5] Input/output error\n", "found the connection lost"),
    (1, "", "MemoryError: memory allocation failed, allocating 4096 bytes\n", "out of memory"),
    (1, "", "mpremote: something new\n", "exit code 1, expected 0: something new"),
]


@pytest.mark.parametrize(("code", "out", "err", "expected"), ENDINGS, ids=[ending[3] for ending in ENDINGS])
def test_each_ending_of_mpremote_has_an_explanation(code, out, err, expected):
    """The text has what was found, what was expected, and what to do behind a semicolon."""
    reported = explained("/dev/x", code, out, err)
    assert expected in reported
    assert re.search(r"found|ended with", reported)
    assert "expected" in reported
    assert "; " in reported


def test_a_port_that_is_not_there_is_reported_with_those_that_are():
    """Before mpremote is started."""
    with pytest.raises(
        FlashError, match="/dev/no-such-board: found no such port, expected a board's; ports that are there:"
    ):
        Device("/dev/no-such-board")


def test_a_port_without_permission_names_the_group(tmp_path, monkeypatch):
    """The fix is a group, not sudo. Reported of any file here, as the tests may run as root, who may open every port."""
    port = tmp_path / "port"
    port.touch()
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(FlashError, match="found no permission, expected a user in the group dialout"):
        Device(str(port))


def test_a_missing_mpremote_names_the_extra(monkeypatch):
    """On a gateway it is not installed."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(FlashError, match=r"expected the extra `flash`; pip install 'whenabouts\[flash\]'"):
        Device("/dev/null")


def test_a_broker_that_is_not_there_is_reported_before_the_board_is_touched():
    """With the way to do without."""
    config = {"site": "s", "gateway": "g", "build": "b", "broker": {"host": "127.0.0.1", "port": 1}}
    with pytest.raises(FlashError, match="or flash with --no-wait"):
        FirstHeartbeatWatch(config)


def test_the_command_needs_a_board_and_ends_with_1_when_there_is_none(tmp_path):
    """2 for a kind that is not known, 1 for a port that is not there."""
    config = tmp_path / "edge.toml"
    config.write_text('site = "s"\ngateway = "g"\n[[reader]]\nname = "r"\nkind = "rdm6300"\nport = "/dev/pts/9"\n')
    words = ["/dev/no-such-board", "--config", str(config), "--no-wait"]
    assert CliRunner().invoke(flash_command, [*words, "--board", "pico"]).exit_code == 2
    done = CliRunner().invoke(flash_command, [*words, "--board", "unix"])
    assert done.exit_code == 1
    assert "found no such port" in done.stderr
