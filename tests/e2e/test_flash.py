"""Flashing for real: mpremote on the console of a simulated board, which then boots and reports to a real broker."""

import json
import os
import pty
import shutil
import signal
import subprocess
import sys

import pytest
import serial
from click.testing import CliRunner

from support.board.site import TimeServer
from support.edge.agent import Bench, passed, witness
from support.paths import REPOSITORY
from whenabouts_edge.flash import FlashError, mpremote
from whenabouts_edge.flash.boards import board as kind
from whenabouts_edge.flash.command import flash_command, provision_command
from whenabouts_edge.flash.first_heartbeat import FirstHeartbeatWatch
from whenabouts_edge.flash.job import Job
from whenabouts_edge.flash.modules import needed, place
from whenabouts_edge.flash.mpremote import Device
from whenabouts_edge.flash.provision import Provisioned, provision
from whenabouts_sim.boards.node_board import NodeBoard
from whenabouts_sim.readers.pty_link import PtyLink
from whenabouts_sim.readers.rdm6300 import Rdm6300
from whenabouts_sim.stack.broker import running_broker
from whenabouts_sim.world.world import GATE, Sighting

WAIT_S = "60"
SECRET = "correct horse"
TOML = """\
site = "bench"
gateway = "gw"
[broker]
host = "127.0.0.1"
port = {port}
username = "gw"
[heartbeat]
every_ms = 300
[spool]
commit_ms = 100
[board]
ntp_host = "127.0.0.1"
ntp_port = {ntp_port}
[[reader]]
name = "gate"
kind = "rdm6300"
port = "uart0"
"""


@pytest.fixture
def broker(tmp_path):
    with running_broker(tmp_path, kind="mosquitto") as made:
        yield made


@pytest.fixture(scope="module")
def once_flashed(tmp_path_factory):
    """The flash of a board that was flashed without a mistake."""
    folder = tmp_path_factory.mktemp("once")
    config = written(folder, 1)
    with NodeBoard(folder / "flash") as board:
        reported = flashed(board, config, "--no-wait")
    assert reported["kept"] == 0
    return folder / "flash"


@pytest.fixture
def flash(tmp_path, once_flashed, broker):
    """A flash that was flashed before, as for this broker."""
    folder = tmp_path / "flash"
    shutil.copytree(once_flashed, folder)
    configured(folder, broker={**json.loads((folder / "board.json").read_text())["broker"], "port": broker.port})
    return folder


def configured(flash, **more):
    """Change these keys of its configuration, and nothing else."""
    path = flash / "board.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **more}, sort_keys=True))


@pytest.fixture
def board(flash):
    """A board that runs a program flashed before."""
    with NodeBoard(flash) as made:
        yield made


@pytest.fixture
def config(tmp_path, broker):
    """An agent's configuration, whose broker is this one."""
    return written(tmp_path, broker.port)


def written(folder, port, ntp_port=123):
    path = folder / "edge.toml"
    path.write_text(TOML.format(port=port, ntp_port=ntp_port))
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
    """JSON that the program printed when it ended without an error."""
    process = command(board, config, "--json", *more)
    out, err = process.communicate(timeout=180)
    assert process.returncode == 0, out + err + board.complaint
    assert SECRET not in out + err
    return json.loads(out)


def test_a_flash_that_is_killed_goes_on_and_the_board_reads_and_publishes(tmp_path):
    """
    flash   |---- killed |      |-----------------------| a heartbeat came
    board   raw prompt          ... goes on    restarts |----- sends heartbeats, dates, publishes a badge
    """
    with (
        Bench(tmp_path) as bench,
        TimeServer(bench.sim_clock) as ntp,
        PtyLink(Rdm6300(GATE.name, 1), bench.sim_clock, tmp_path / "gate") as gate,
        NodeBoard(tmp_path / "flash", uarts={0: gate.path}) as board,
    ):
        bench.broker.start()
        config = written(tmp_path, bench.broker.port, ntp.port)
        first = command(board, config)
        copied = 0
        for line in first.stderr:
            copied += line.startswith("copy")
            if copied == 15:
                break
        first.send_signal(signal.SIGKILL)
        first.communicate(timeout=60)
        assert not (board.flash / "main.py").exists()
        with witness(bench.broker.port) as seen:
            reported = flashed(board, config)
            seen.wait("a watermark", lambda: any(heartbeat.frontier_us for heartbeat in seen.heartbeats()), 60)
            assert reported["heartbeat"]["boot"] in {heartbeat.boot for heartbeat in seen.heartbeats()}
            passed(bench, gate, [Sighting(bench.true_us() + 300_000, GATE.name, 1, "00000000A1")])
            seen.wait("the badge", lambda: seen.keys() == {"00000000A1"}, 60)
            [reading] = seen.readings()
        assert reading.t_min <= gate.emitted[-1].true_us <= reading.t_max
        assert reported["kept"] >= copied - 1
        files = [step for step in reported["steps"] if step["verb"] in ("copy", "keep")]
        assert reported["copied"] + reported["kept"] == len(files) > 20
        assert json.loads((board.flash / "board.json").read_text())["broker"]["password"] == SECRET


@pytest.mark.deep
def test_flashing_again_copies_nothing_and_a_change_only_itself(board, config):
    """The second time the board only restarts; then the configuration differs, and a source lies before its module."""
    config.write_text(config.read_text().replace("every_ms = 300", "every_ms = 250"))
    first = flashed(board, config)
    assert [step["path"] for step in first["steps"] if step["verb"] == "copy"] == ["/board.json", "/main.py"]
    second = flashed(board, config)
    assert (second["copied"], second["build"]) == (0, first["build"])
    assert second["heartbeat"]["boot"] != first["heartbeat"]["boot"]
    config.write_text(config.read_text().replace("every_ms = 250", "every_ms = 200"))
    stale = board.flash / "lib/whenabouts_edge/board/run.py"
    stale.write_text("raise SystemExit\n")
    third = flashed(board, config)
    assert [(step["verb"], step["path"]) for step in third["steps"] if step["verb"] != "keep"] == [
        ("remove", "/lib/whenabouts_edge/board/run.py"),
        ("copy", "/board.json"),
        ("copy", "/main.py"),
    ]
    assert not stale.exists()
    assert third["build"] == first["build"]


def test_a_dry_run_changes_nothing_and_lets_the_board_run_on(board, config, broker):
    """It names what would be copied; a board that ran sends heartbeats again afterwards, as another boot."""
    files = contents(board)
    config.write_text(config.read_text().replace("every_ms = 300", "every_ms = 400"))
    with witness(broker.port) as seen:
        seen.wait("a heartbeat", seen.heartbeats)
        before = seen.heartbeats()[0].boot
        reported = flashed(board, config, "--dry-run")
        assert [step["path"] for step in reported["steps"] if step["verb"] == "copy"] == ["/board.json", "/main.py"]
        seen.wait("another boot", lambda: any(heartbeat.boot != before for heartbeat in seen.heartbeats()))
    assert contents(board) == files


def contents(board):
    """Files that were flashed, without those that the agent itself writes."""
    return {path: path.read_bytes() for path in board.flash.rglob("*") if path.is_file() and "spool" not in path.parts}


SLOW_S = 4


def test_no_watchdog_bites_while_a_board_is_flashed(flash, config, broker, monkeypatch):
    """Its agent runs with a watchdog of 2 s; looking at the board takes twice as long.

    agent     runs, feeds |          nobody feeds           | runs again
    watchdog  2 s ........| a reset ends it, none begins it | 2 s .....
    """
    configured(flash, watchdog_s=2)
    values = provision(config.read_text(), kind("simulated"), {}, lambda path: b"").config
    look = Device.look

    def slowly(self):
        assert self.run(f"import time\ntime.sleep({SLOW_S})\nprint('done')").strip() == "done"
        return look(self)

    monkeypatch.setattr(Device, "look", slowly)
    made = Provisioned({**values, "watchdog_s": 2, "heartbeat_ms": 500})
    with NodeBoard(flash) as board, witness(broker.port) as seen:
        seen.wait("a heartbeat", seen.heartbeats)
        first = seen.heartbeats()[0].boot
        reported = Job(board.port, kind("simulated"), made, int(WAIT_S), print).flash()
    assert reported["copied"] == 2
    assert reported["heartbeat"]["boot"] > first
    assert not (flash / "hold").exists()


@pytest.mark.deep
def test_a_board_of_another_kind_is_not_changed(board, config):
    """Refused by the name that the board reports, before a file is written."""
    text = config.read_text().replace('host = "127.0.0.1"\nport', 'host = "broker.example.org"\nport')
    config.write_text(text.replace("[board]", '[board]\nwifi_ssid = "x"'))
    files = contents(board)
    done = CliRunner().invoke(
        flash_command, [board.port, "--board", "pico_w", "--config", str(config), "--no-wait"], catch_exceptions=False
    )
    assert done.exit_code == 1
    assert "found JS with Emscripten (webassembly), expected Raspberry Pi Pico W" in done.stderr
    assert contents(board) == files


def test_a_file_that_the_flash_holds_otherwise_is_found(board, config, monkeypatch):
    """A byte changes between copying and verifying: the main program is not written, so the board starts nothing."""
    copy = Device.copy

    def worn(self, files):
        copy(self, files)
        (board.flash / "lib/whenabouts_edge/board/config.mpy").write_bytes(b"worn")

    monkeypatch.setattr(Device, "copy", worn)
    (board.flash / "lib/whenabouts_edge/board/config.mpy").unlink()
    made = provision(config.read_text(), kind("simulated"), {}, lambda path: b"")
    said = []
    with pytest.raises(
        FlashError, match=r"config\.mpy: found 4 bytes with hash .*; run it again, it copies what differs"
    ):
        Job(board.port, kind("simulated"), made, None, said.append).flash()
    assert said[-1].startswith("verify")
    assert not (board.flash / "main.py").exists()


def test_a_main_program_that_ends_is_reported_with_its_error(board, config, tmp_path):
    """A folder for readings that cannot be made: the error quotes what the board printed."""
    provisioned = tmp_path / "board.json"
    words_given = ["--config", str(config), "--board", "simulated", "--out", str(provisioned)]
    done = CliRunner().invoke(provision_command, words_given, catch_exceptions=False)
    assert "bench/gw" in done.stdout
    values = json.loads(provisioned.read_text())
    values["flash_log"]["folder"] = "/no/such/folder"
    provisioned.write_text(json.dumps(values))
    done = CliRunner().invoke(flash_command, words(board, provisioned))
    assert done.exit_code == 1
    assert f"{board.port}: found the board's program ended" in done.stderr
    assert "OSError" in done.stderr


def test_a_port_without_a_board_is_reported(monkeypatch):
    """A terminal that nobody answers on, and one that another program has."""
    monkeypatch.setattr(mpremote, "SILENCE_S", 3)
    monkeypatch.setattr(mpremote, "BUSY_S", 1)
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


def test_a_missing_heartbeat_is_reported_with_what_to_check(board, broker):
    """A board that was not flashed."""
    values = {"site": "bench", "gateway": "gw", "build": "b", "broker": {"host": "127.0.0.1", "port": broker.port}}
    with (
        FirstHeartbeatWatch(values) as arrival,
        pytest.raises(FlashError, match=r"found nothing within 1 s, expected a heartbeat of bench/gw; check"),
    ):
        arrival.wait(board.port, arrival.before(), 1)


def needed_by_one_reader():
    """The package of this checkout without the modules that this reader does not need."""
    package = json.loads((REPOSITORY / "package.json").read_text())
    places = {
        place(name, path, ".py") for name, path in needed(["whenabouts_edge.readers.session"], ["pn532"], []).items()
    }
    return {**package, "urls": [url for url in package["urls"] if url[0] in places]}


@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.deep)], ids=["one reader", "whole"])
def test_the_package_for_mip_installs_and_loads(tmp_path, whole):
    """MicroPython's own installer, from this checkout: the modules are found and imported on the board."""
    for name in ("edge", "hardware", "protocol"):
        (tmp_path / name).symlink_to(REPOSITORY / name)
    package = json.loads((REPOSITORY / "package.json").read_text()) if whole else needed_by_one_reader()
    (tmp_path / "package.json").write_text(json.dumps(package))
    with NodeBoard(tmp_path / "flash") as board:
        install_by_mip(board, tmp_path)


def install_by_mip(board, folder):
    mpremote = [sys.executable, "-m", "mpremote", "connect", board.port]
    subprocess.run(
        [*mpremote, "mip", "install", "./package.json"], cwd=folder, check=True, timeout=180, capture_output=True
    )
    code = "from whenabouts_edge.readers.session import ReaderSession as R\n"
    code += "print(R({'kind': 'pn532', 'stream': 's'}, 0).baud)"
    done = subprocess.run([*mpremote, "exec", code], capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout.strip() == "115200", done.stderr
