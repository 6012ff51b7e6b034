"""A simulated board: the real mpremote on its console; its agent with simulated readers, a real broker and power cuts."""

import hashlib
import json
import os
import random
import signal
import subprocess
import sys

import pytest

from support.board.node_board import Console, install
from support.board.site import check_landed
from support.edge.agent import badges, passed, witness
from support.waiting import until
from whenabouts_edge.board.flash_log import FlashLog
from whenabouts_edge.board.machine.flash import Flash
from whenabouts_hardware import DECODERS
from whenabouts_sim.boards import command
from whenabouts_sim.boards.node_board import NodeBoard
from whenabouts_sim.world.world import Sighting

COUNTER = """
import time
def steps():
    n = 0
    while True:
        n += 1
        junk = bytearray(2000)
        with open("/count", "w") as file:
            file.write(str(n))
        time.sleep_ms(1)
        yield
program = steps()
"""


HEAR = """
import machine, time
uart, heard = machine.UART(0, 9600), b""
while len(heard) < 14:
    heard += uart.read() or b""
    time.sleep_ms(10)
print(heard[0] == 2)
"""


def mpremote(board, *words):
    """Output of one run of mpremote."""
    done = subprocess.run(
        [sys.executable, "-m", "mpremote", "connect", board.port, *words],
        capture_output=True, text=True, timeout=90, check=False,
    )  # fmt: skip
    assert done.returncode == 0, (words, done.stdout, done.stderr, board.complaint)
    return done.stdout


def await_file(path, is_complete, timeout_s=30):
    """Wait until the text of a file of the flash satisfies `is_complete`."""
    until(lambda: path.exists() and is_complete(path.read_text()), path.name, timeout_s)


def test_mpremote_finds_a_board(tmp_path):
    """Code runs, folders are copied byte for byte and hashed, errors have a board's numbers, flash outlives the power."""
    source = tmp_path / "package"
    (source / "inner").mkdir(parents=True)
    (source / "one.py").write_bytes(b"ONE = 1\n" * 300)
    (source / "inner" / "two.bin").write_bytes(bytes(range(256)) * 9)
    flash = tmp_path / "flash"
    with NodeBoard(flash) as board:
        assert mpremote(board, "exec", "import sys; print(sys.implementation.name, 6 * 7)") == "micropython 42\n"
        mpremote(board, "cp", "-r", str(source), ":")
        assert (flash / "package/inner/two.bin").read_bytes() == (source / "inner/two.bin").read_bytes()
        digest = hashlib.sha256((source / "one.py").read_bytes()).hexdigest()
        assert digest in mpremote(board, "sha256sum", ":package/one.py")
        assert mpremote(board, "exec", "from package import one; print(one.ONE)") == "1\n"
        raised = "\ntry: {}\nexcept OSError as e: print(e.errno)"
        assert mpremote(board, "exec", raised.format("open('/nothing')")) == "2\n"
        assert mpremote(board, "exec", "import os" + raised.format("os.mkdir('/package')")) == "17\n"
        board.power_off()
        board.power_on()
        assert "one.py" in mpremote(board, "ls", ":package")
        mpremote(board, "rm", "-r", ":package")
    assert list(flash.iterdir()) == []


def test_a_program_that_never_returns_is_interrupted_and_started_again(tmp_path):
    """
    main.py   |~~~~~~~~~~ mpremote exec ........ reset |~~~~~~~~~~ soft reset by mpremote ........ Ctrl-D at the prompt |~~~~
    The program allocates without end in a small heap; a raw REPL keeps it from starting, as on any board.
    """
    flash = tmp_path / "flash"
    flash.mkdir()
    (flash / "boot.py").write_text("open('/boots', 'a').write('.')\n")
    (flash / "main.py").write_text(COUNTER)
    count = flash / "count"
    with NodeBoard(flash, heap_kb=48) as board:
        await_file(count, lambda text: text and int(text) > 100)
        assert mpremote(board, "exec", "print('in')") == "in\n"
        count.unlink()
        boots = len((flash / "boots").read_text())
        mpremote(board, "reset")
        await_file(count, lambda text: text and int(text) > 10)
        mpremote(board, "soft-reset")
        count.unlink(missing_ok=True)
        assert len((flash / "boots").read_text()) == boots + 3  # mpremote resets when it enters the raw REPL
        console = Console(board)
        console.type("\r\x04")
        console.wait("a soft reset", lambda text: "soft reboot" in text)
        await_file(count, lambda text: text and int(text) > 10)
        console.type("\x03")
        console.wait("an interrupt", lambda text: "KeyboardInterrupt" in text and text.endswith(">>> "))
        console.close()


ENDS = """
import sys, time
with open("/lives", "a") as file:
    file.write(".")
if len(open("/lives").read()) < 3:
    sys.exit()
def steps():
    try:
        while True:
            print("step")
            time.sleep_ms(10)
            yield
    except KeyboardInterrupt:
        print("interrupted")
        yield
        print("in order")
program = steps()
"""


def test_the_steps_that_a_program_leaves_end_in_order(tmp_path):
    """
    main.py   sys.exit() | sys.exit() | step step step Ctrl-C: its handler, and the steps behind it | prompt
    """
    flash = tmp_path / "flash"
    flash.mkdir()
    (flash / "main.py").write_text(ENDS)
    with NodeBoard(flash) as board:
        console = Console(board)
        console.wait("a step", lambda text: "step" in text)
        console.type("\x03")
        text = console.wait("the prompt", lambda text: text.endswith(">>> "))
        console.close()
    assert (flash / "lives").read_text() == "..."
    assert "step\ninterrupted\nin order\n" in text.replace("\r", "")
    assert "Traceback" not in text


def test_the_heap_has_its_end(tmp_path):
    """A board with a heap of 64 kB holds less than that, and goes on after the MemoryError."""
    flash = tmp_path / "flash"
    flash.mkdir()
    (flash / "main.py").write_text(
        "kept = []\ntry:\n    while True: kept.append(bytearray(1000))\n"
        "except MemoryError: print('held', len(kept))\nkept = None\n"
    )
    with NodeBoard(flash, heap_kb=64) as board:
        console = Console(board)
        text = console.wait("the prompt", lambda text: text.endswith(">>> "))
        console.close()
        held = int(text.split("held ")[1].split()[0])
        assert 40 < held < 64
        assert mpremote(board, "exec", "print(len(bytearray(40000)))") == "40000\n"


def test_readings_land_once_through_power_cuts(bench, gate, ntp):
    """
    power    |----------------------- off |---------------------------|
    broker   |------------------------------- killed |----------------|  (state lost)
    badges       =====    =====                =====      =====
    What lands is what the reader reported, once, and the true time is in every stamp.
    """
    flash = bench.folder / "flash"
    config = {
        "site": "bench", "gateway": "gw", "broker": {"host": "127.0.0.1", "port": bench.broker.port, "keepalive_s": 4},
        "ntp": {"host": "127.0.0.1", "port": ntp.port},
        "readers": [{"port": {"id": 0}, "kind": "rdm6300", "stream": "gate/tags"}],
        "flash_log": {"folder": "/spool", "segments": 3, "segment_bytes": 4096},
        "heartbeat_ms": 200, "commit_ms": 100, "resend_s": 2,
    }  # fmt: skip
    install(flash, config)
    bench.broker.start()
    bench.start_ingest()
    with NodeBoard(flash, uarts={0: gate.path}) as board, witness(bench.broker.port) as seen:
        seen.wait("a watermark", lambda: any(b.frontier_us for b in seen.heartbeats()))
        expected = passed(bench, gate, badges(bench, 6, 0))
        seen.wait("first badges", lambda: seen.keys() >= expected)
        bench.wait(
            "first landed", lambda: {row.key for row in bench.landed()} >= expected, 30
        )  # the ingest is there too
        board.power_off()
        seen.wait("the last will", lambda: seen.conditions()[-1:] == ["offline"], 60)
        board.power_on()
        seen.wait("a second boot", lambda: len({b.boot for b in seen.heartbeats() if b.frontier_us}) == 2)
        expected |= passed(bench, gate, badges(bench, 6, 100))
        bench.broker.kill()
        for path in bench.broker.directory.glob("*.db*"):
            path.unlink()
        expected |= passed(bench, gate, badges(bench, 6, 200))
        bench.broker.start()
        expected |= passed(bench, gate, badges(bench, 6, 300))
        bench.wait("landed", lambda: {row.key for row in bench.landed()} >= expected, 60)
        assert board.complaint == ""
    check_landed(bench, gate)


# Appends messages of drawn sizes for ever, confirms some, and prints each that is durable at once.
LIFE = """
import random, sys
from whenabouts_edge.board.machine.flash import Flash
from whenabouts_edge.board.flash_log import FlashLog
try:
    import os
    os.mkdir("/spool")
except OSError:
    pass
flash_log = FlashLog(Flash("/spool"), 3, 4096, 7)
print("boot", flash_log.boot)
random.seed(flash_log.boot)
def steps():
    while True:
        yield
        first = flash_log.next_seq
        payload = bytes([first & 255]) * random.randrange(1, 400)
        if flash_log.append(1, payload) is None:
            numbers = flash_log.numbers()
            boot = min(numbers)
            seq = (numbers[boot][0] + numbers[boot][1]) // 2
            flash_log.landed(boot, seq)
            flash_log.save()
            print("landed", boot, seq)
            continue
        print("durable", flash_log.boot, first, len(payload))
program = steps()
"""


def stored(flash):
    """Messages of the flash log in this flash, read on this Python: (boot, number, payload)."""
    flash_log = FlashLog(Flash(str(flash / "spool")), 3, 4096, 7)
    messages, message = [], flash_log.after(None)
    while message is not None:
        messages.append((message.boot, message.first_seq, message.payload))
        message = flash_log.after(message.next)
    return messages


def test_the_flash_log_survives_cuts_within_any_write(tmp_path):
    """
    flash   ====|====|===/ cut after a drawn number of bytes; what was durable, and has not landed, is there afterwards
    Twelve lives on one flash; each ends within a write, and the next one numbers its boot higher.
    """
    flash = tmp_path / "flash"
    install(flash, {"readers": [{"kind": "rdm6300"}]}, LIFE)
    chance = random.Random(11)
    durable, landed, boots = {}, {}, []
    with NodeBoard(flash, patience_s=30) as board:
        board.power_off()
        for _ in range(12):
            board.power_on(cut_after_bytes=chance.randrange(0, 6000))
            console = Console(board)
            with pytest.raises(AssertionError, match="the board ended"):
                console.wait("no end", lambda text: False, 60)
            console.close()
            assert board.complaint == ""
            board.power_off()
            for word, *numbers in [line.split() for line in console.text.splitlines() if line.count(" ")]:
                values = [int(number) for number in numbers]
                if word == "boot":
                    boots.append(values[0])
                elif word == "landed":
                    landed[values[0]] = values[1]
                elif word == "durable" and len(values) == 3:
                    durable[values[0], values[1]] = values[2]
            messages = stored(tmp_path / "flash")
            assert all(payload == bytes([number & 255]) * len(payload) for _, number, payload in messages)
            held = {(boot, number): len(payload) for boot, number, payload in messages}
            wanted = {key: size for key, size in durable.items() if landed.get(key[0], -1) < key[1]}
            assert {key: held.get(key) for key in wanted} == wanted
    assert boots == sorted(set(boots))
    assert len(boots) >= 8
    assert len(durable) > 60
    assert landed


def test_the_command_offers_kinds_that_agents_support():
    """The kinds have the agent's names, and their simulated firmware takes the given tags."""
    assert set(command.READERS) == set(DECODERS)
    for kind, made in command.READERS.items():
        core = made(kind, 0)
        core.power_on(0)
        core.load([Sighting(1000, kind, 1, command.KEYS.get(kind, command.EPC).format(1))], 0)
        core.due(1_000_000)
        assert core.unseen == (not core._searching())
    measured = command.READERS["line"]("line", 0)
    measured.power_on(0)
    measured.load([Sighting(1000, "line", 1, command.KEYS["line"].format(1))], 0)
    assert json.loads(measured.due(1_000_000)[-1].data).keys() == {"probe", "temperature"}


def test_the_command_starts_a_board_and_ends_it_cleanly(tmp_path):
    """It prints where the board is, a reader sends on its UART, and Ctrl-C leaves no process behind."""
    process = subprocess.Popen(
        [sys.executable, "-m", "whenabouts_sim.cli", "board", "--json", "--reader", "rdm6300", "--heap-kb", "64"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": str(tmp_path)},
    )  # fmt: skip
    reported = json.loads(process.stdout.readline())
    done = subprocess.run(
        [sys.executable, "-m", "mpremote", "connect", reported["port"], "exec", HEAR],
        capture_output=True, text=True, timeout=90, check=False,
    )  # fmt: skip
    assert done.stdout.strip() == "True", done.stderr
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=30) == ("", "stopped\n")
    assert process.returncode == 0
    assert list(tmp_path.iterdir()) == []
