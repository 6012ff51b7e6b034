"""The parts of a board's agent on a real MicroPython VM with a board's heap."""

import json
import random
import struct
from pathlib import Path

from support.board.micropython import run_on_board
from support.board.scripts import as_module

HERE = Path(__file__).parent


def exchanges(chance):
    """Packets of servers good and bad, times of a long uptime."""
    packets, now = [], 10 * 365 * 86400 * 1_000_000
    for _ in range(6):
        now += chance.randint(0, 200_000_000)
        trip = chance.randint(0, 400_000)
        utc = 1_790_000_000_000_000 + now + chance.randint(-30_000, 30_000)
        stamps = [divmod(utc + part, 1_000_000) for part in (0, chance.randint(0, 1000))]
        fields = [struct.pack(">II", (s + 2_208_988_800) % (1 << 32), (f << 32) // 1_000_000) for s, f in stamps]
        first, stratum, precision = (
            chance.choice(of) for of in ([0x24, 0x24, 0xE4, 0x1C], [1, 2, 2, 0, 16], [-20, -6, 3])
        )
        says = chance.randint(0, 5000), chance.randint(0, 5000)
        head = struct.pack(">BBbbII4s", first, stratum, 6, precision, *says, b"DENY")
        cookie = chance.randbytes(8)
        packet = (head + bytes(8) + cookie + fields[0] + fields[1])[: chance.choice([48, 48, 48, 47])]
        packets.append([packet.hex(), cookie.hex(), now, now + trip])
    return ["sntp", packets, [now - 10**9, now, now + 10**9]]


def test_the_clock_of_a_board_counts_there_as_here(tmp_path, run_on_vm):
    """Ticks across their wrap and SNTP with big integers: every result is the same on the VM."""
    chance = random.Random(5)
    cases = [exchanges(chance) for _ in range(100)]
    for _ in range(20):
        raw, looks = chance.randrange(1 << 30), []
        for _ in range(30):
            raw += chance.randint(-1000, (1 << 29) - 1)
            looks.append(raw % (1 << 30))
        cases.append(["ticks", 1 << 30, looks])
    path = tmp_path / "cases.jsonl"
    path.write_text("".join(json.dumps(case) + "\n" for case in cases))
    here = as_module(HERE / "board_clock.py")
    expected = [here.replay(case) for case in cases]
    lines = run_on_vm(HERE / "board_clock.py", str(path)).splitlines()
    assert [json.loads(line) for line in lines] == expected
    assert sum(type(result) is str for results in expected for result in results) > 50
    assert sum(type(result) is list for results in expected for result in results) > 300


def test_the_flash_log_on_littlefs_survives_a_cut_at_every_block_operation():
    """littlefs itself, on blocks that lose power between or within any operations: nothing durable is lost."""
    lines = run_on_board(HERE / "board_flash_log.py", heap="256k").splitlines()
    reported = [line for line in lines if not line.startswith("OSError: ")]
    assert reported[:-1] == ["without a cut well"]
    assert int(reported[-1].removeprefix("cuts tried ")) > 100


def test_the_flash_log_needs_no_memory_once_a_message_is_stored():
    """
    segment of 4096     two messages of 1500 bytes, all memory in use at the end of each write     landed, and the next
    """
    lines = run_on_board(HERE / "board_flash_memory.py").splitlines()
    assert lines == ["(0, 5) 6", "(6, 11) 6", "(12, 17) 6", "failed 0"]
