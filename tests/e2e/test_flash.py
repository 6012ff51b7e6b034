"""Flashing for real: mpremote on the console of a simulated board, which then boots and beats at a real broker."""

import json
import os
import pty
import signal
import subprocess
import sys

import pytest
import serial
from click.testing import CliRunner

from support.edge_agent import witness
from support.paths import REPOSITORY
from whenabouts_edge.flash import device as device_module
from whenabouts_edge.flash.arrival import Arrival
from whenabouts_edge.flash.command import flash_command
from whenabouts_edge.flash.device import Device
from whenabouts_edge.flash.failure import FlashError
from whenabouts_sim.boards.node_board import NodeBoard
from whenabouts_sim.broker import running_broker

WAIT_S = "60"
SECRET = "correct horse"


@pytest.fixture
def broker(tmp_path):
    with running_broker(tmp_path, kind="mosquitto") as made:
        yield made


@pytest.fixture
def board(tmp_path):
    with NodeBoard(tmp_path / "flash") as made:
        yield made


@pytest.fixture
def config(tmp_path, broker):
    """An agent's configuration, whose broker is this one."""
    path = tmp_path / "edge.toml"
    path.write_text(
        f'site = "bench"\ngateway = "gw"\n[broker]\nhost = "127.0.0.1"\nport = {broker.port}\nusername = "gw"\n'
        '[beat]\nevery_ms = 300\n[[reader]]\nname = "gate"\nkind = "rdm6300"\nport = "uart0"\n'
    )
    return path


def words(board, config, *more):
    return [board.port, "--board", "simulated", "--config", str(config), "--wait-s", WAIT_S, *more]


def command(board, config, *more):
    """The program, started."""
    return subprocess.Popen(
        [sys.executable, "-m", "whenabouts_edge.cli", "flash", *words(board, config, *more)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "WHENABOUTS_BROKER_PASSWORD": SECRET},
    )


def flashed(board, config, *more):
    """What the program told machines when it ended well."""
    process = command(board, config, "--json", *more)
    out, err = process.communicate(timeout=180)
    assert process.returncode == 0, out + err + board.complaint
    assert SECRET not in out + err
    return json.loads(out)


def test_a_flash_that_is_killed_goes_on_and_the_board_beats(board, config, broker):
    """
    flash   |---- killed |      |-----------------------| a beat came
    board   raw prompt          ... goes on    restarts |----- beats
    """
    first = command(board, config)
    copied = 0
    for line in first.stderr:
        copied += line.startswith("copy")
        if copied == 15:
            break
    first.send_signal(signal.SIGKILL)
    first.communicate(timeout=60)
    assert not (board.flash / "main.py").exists()
    with witness(broker.port) as seen:
        told = flashed(board, config)
        seen.wait("a beat by itself", seen.beats)
        assert told["beat"]["boot"] in {beat.boot for beat in seen.beats()}
    assert told["kept"] >= copied - 1
    assert told["copied"] + told["kept"] == len(told["steps"]) - sum(s["verb"] == "folder" for s in told["steps"])
    assert json.loads((board.flash / "board.json").read_text())["broker"]["password"] == SECRET


def test_flashing_again_copies_nothing_and_a_change_only_itself(board, config):
    """The second time the board only restarts; then a reader of another kind comes, and what is of use to none goes."""
    first = flashed(board, config)
    assert first["kept"] == 0
    second = flashed(board, config)
    assert (second["copied"], second["build"]) == (0, first["build"])
    assert second["beat"]["boot"] != first["beat"]["boot"]
    config.write_text(config.read_text().replace("rdm6300", "line"))
    stale = board.flash / "lib/whenabouts_edge/board/run.py"
    stale.write_text("raise SystemExit\n")
    third = flashed(board, config)
    changed = {(step["verb"], step["path"]) for step in third["steps"] if step["verb"] != "keep"}
    assert changed == {
        ("remove", "/lib/whenabouts_edge/board/run.py"),
        ("copy", "/board.json"),
        ("copy", "/main.py"),
    }
    assert not stale.exists()
    assert third["build"] == first["build"]


def test_a_dry_run_changes_nothing_and_lets_the_board_run_on(board, config, broker):
    """It names every file, and a board that ran beats again after it."""
    before = flashed(board, config)
    files = {path: path.read_bytes() for path in board.flash.rglob("*.mpy")}
    config.write_text(config.read_text().replace("= 300", "= 400"))
    with witness(broker.port) as seen:
        told = flashed(board, config, "--dry-run")
        assert [s["path"] for s in told["steps"] if s["verb"] == "copy"] == ["/board.json", "/main.py"]
        seen.wait("a beat of another boot", lambda: any(b.boot != before["beat"]["boot"] for b in seen.beats()))
    assert files == {path: path.read_bytes() for path in board.flash.rglob("*.mpy")}


def test_a_board_of_another_kind_is_left_alone(board, config):
    """Refused by what the board says of itself, before a file is written."""
    text = config.read_text().replace("127.0.0.1", "broker.example.org") + '[board]\nwifi_ssid = "x"\n'
    config.write_text(text)
    done = CliRunner().invoke(
        flash_command, [board.port, "--board", "pico_w", "--config", str(config), "--no-wait"], catch_exceptions=False
    )
    assert done.exit_code == 1
    assert "found JS with Emscripten (webassembly), expected Raspberry Pi Pico W" in done.stderr
    assert list(board.flash.rglob("*.mpy")) == []


def test_a_file_that_the_flash_holds_otherwise_is_found(board, config, monkeypatch):
    """A byte changes between copying and verifying: the main program is not written, so the board starts nothing."""
    copy = Device.copy

    def worn(self, files):
        copy(self, files)
        (board.flash / "lib/whenabouts_edge/stamp.mpy").write_bytes(b"worn")

    monkeypatch.setattr(Device, "copy", worn)
    done = CliRunner().invoke(flash_command, words(board, config, "--no-wait"))
    assert done.exit_code == 1
    assert "/lib/whenabouts_edge/stamp.mpy: found 4 bytes with hash" in done.stderr
    assert "run it again, it copies what differs" in done.stderr
    assert not (board.flash / "main.py").exists()


def test_a_main_program_that_ends_says_why(board, config, tmp_path):
    """A folder for readings that cannot be made: what the board printed is what is told."""
    provisioned = tmp_path / "board.json"
    done = subprocess.run(
        [sys.executable, "-m", "whenabouts_edge.cli", "provision", "--config", str(config), "--board", "simulated",
         "--out", str(provisioned)],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert "bench/gw" in done.stdout
    values = json.loads(provisioned.read_text())
    values["ring"]["folder"] = "/no/such/folder"
    provisioned.write_text(json.dumps(values))
    done = CliRunner().invoke(flash_command, words(board, provisioned))
    assert done.exit_code == 1
    assert f"{board.port}: found the board's program ended" in done.stderr
    assert "OSError" in done.stderr


def test_a_port_without_a_board_is_told(monkeypatch):
    """A terminal that nobody answers on, and one that another program has."""
    monkeypatch.setattr(device_module, "SILENCE_S", 3)
    monkeypatch.setattr(device_module, "BUSY_S", 1)
    master, slave = pty.openpty()
    try:
        with pytest.raises(FlashError, match="found a port that does not answer as MicroPython"):
            Device(os.ttyname(slave)).look()
        with (
            serial.Serial(os.ttyname(slave), exclusive=True),
            pytest.raises(FlashError, match="in use by another program"),
        ):
            Device(os.ttyname(slave)).look()
    finally:
        os.close(master)
        os.close(slave)


def test_a_beat_that_does_not_come_is_told_with_what_to_look_at(board, broker):
    """A board that was not flashed."""
    values = {"site": "bench", "gateway": "gw", "build": "b", "broker": {"host": "127.0.0.1", "port": broker.port}}
    with (
        Arrival(values) as arrival,
        pytest.raises(FlashError, match=r"found nothing of it within 1 s, expected a beat of bench/gw; look at"),
    ):
        arrival.wait(board.port, arrival.before(), 1)


def test_the_package_for_mip_installs_and_loads(board):
    """MicroPython's own installer, from this checkout: the modules are found and imported on the board."""
    mpremote = [sys.executable, "-m", "mpremote", "connect", board.port]
    subprocess.run(
        [*mpremote, "mip", "install", "./package.json"], cwd=REPOSITORY, check=True, timeout=180, capture_output=True
    )
    code = (
        "from whenabouts_edge.board.reader import BoardReader as R; print(R({'kind': 'pn532', 'stream': 's'}, 0).baud)"
    )
    done = subprocess.run([*mpremote, "exec", code], capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout.strip() == "115200", done.stderr
