"""The spool on a real disk: numbers, limits, kill -9, a full disk, damage, other people's files."""

import random
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from support.child import environment, ran
from support.edge.pending import pending, several
from whenabouts_edge.store.checksum import checksum
from whenabouts_edge.store.gaps import Gap
from whenabouts_edge.store.spool import APPLICATION_ID, BOOT_RANDOM_BITS, Message, Spool, SpoolError, SpoolFull
from whenabouts_protocol import Reading, WireError, decode_batch

LIMIT = 1 << 24


def opened(path: Path, limit: int = LIMIT) -> Spool:
    return Spool(path / "spool.sqlite", limit)


def readings(messages: list[Message]) -> list[Reading]:
    return [r for message in messages for r in decode_batch(message.payload)]


def everything(spool: Spool) -> list[Message]:
    return spool.after(None, 10**6)


def test_numbers_have_no_gap_and_are_not_reused_after_reopening(tmp_path):
    """Three boots of three messages each: numbers from 0 without gaps, boots grow, all is there in order."""
    boots = []
    for _ in range(3):
        spool = opened(tmp_path)
        boots.append(spool.boot)
        for n in (1, 3, 2):
            spool.append(several([f"k{n}"] * n))
        assert spool.state.next_seq == 6
        spool.close()
    assert boots == sorted(set(boots))
    spool = opened(tmp_path)
    assert [(r.boot, r.seq) for r in readings(everything(spool))] == [(boot, seq) for boot in boots for seq in range(6)]
    assert spool.state.readings == 18
    assert spool.state.payload_bytes == sum(len(m.payload) for m in everything(spool))
    assert spool.numbers() == dict.fromkeys(boots, (0, 5))
    spool.close()


def test_lost_file_does_not_bring_old_identities_back(tmp_path):
    """The counter starts again with the file, its random half does not."""
    boots = set()
    for _ in range(5):
        spool = opened(tmp_path)
        boots.add(spool.boot)
        assert spool.boot >> BOOT_RANDOM_BITS == 1
        spool.close()
        for path in tmp_path.iterdir():
            path.unlink()
    assert len(boots) == 5


@pytest.mark.parametrize("damage", ["UPDATE counter SET value = 0", "DELETE FROM counter"])
def test_a_start_is_above_all_messages_also_if_the_counter_was_set_back(tmp_path, damage):
    """Messages go out by boot: those of a lower one would wait behind what was sent before."""
    for _ in range(3):
        spool = opened(tmp_path)
        spool.append(several(["k"]))
        spool.close()
    with sqlite3.connect(tmp_path / "spool.sqlite") as database:
        database.execute(damage)
    database.close()
    spool = opened(tmp_path)
    assert spool.boot >> BOOT_RANDOM_BITS == 4
    spool.close()
    assert opened(tmp_path).boot >> BOOT_RANDOM_BITS == 5


def test_reading_that_cannot_be_sent_uses_no_number(tmp_path):
    """One of another origin, which no message holds beside others, leaves the spool as it was."""
    spool = opened(tmp_path)
    spool.append(several(["a"]))
    with pytest.raises(WireError):
        spool.append([pending("b"), pending("b", origin=("x", "y"))])
    with pytest.raises(ValueError, match="reading key"):
        spool.append([pending("b"), pending("")])
    assert spool.append(several(["c"])).first_seq == 1
    assert spool.state.readings == 2
    spool.close()


def test_limit_refuses_the_new_and_keeps_the_old(tmp_path):
    """At the limit nothing is stored and no number used; what landed makes room."""
    spool = opened(tmp_path, limit=3000)
    stored = []
    for _ in range(3):
        stored.append(spool.append(several(["k"], 700)))
    with pytest.raises(SpoolFull, match=r"found \d+ bytes of readings waiting, limit 3000; see why the cloud"):
        spool.append(several(["k"], 700))
    assert everything(spool) == stored
    assert spool.state.next_seq == 3
    assert spool.landed(spool.boot, 0) == 1
    assert spool.append(several(["k"], 700)).first_seq == 3
    spool.close()


def test_second_agent_on_the_same_folder_is_refused(tmp_path):
    """While one process holds the spool another gets a clear error and harms nothing."""
    spool = opened(tmp_path)
    spool.append(several(["a"]))
    with pytest.raises(SpoolError, match="another agent is running with this state_dir"):
        opened(tmp_path)
    assert spool.append(several(["b"])).first_seq == 1
    assert spool.quarantined is None
    spool.close()
    assert sorted(p.name for p in tmp_path.iterdir() if "damaged" in p.name) == []


def _appender(path: Path, limit: int = LIMIT, file_bytes: int = 0) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-m", "support.edge.appender", str(path / "spool.sqlite"), str(limit), str(file_bytes)],
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def _committed(lines: list[str]) -> list[tuple[int, int, str]]:
    """(boot, seq, key) of all readings that the child reported as committed."""
    result = []
    for line in lines:
        if not line.endswith("\n"):
            continue  # killed while it spoke
        boot, first, last, count = map(int, line.split())
        result += [(boot, seq, f"{count}-{seq - first}") for seq in range(first, last + 1)]
    return result


def test_kill_at_any_moment_loses_nothing_that_was_committed(tmp_path):
    """A process that appends in a loop dies by SIGKILL twelve times: all it reported is there, in order, and whole."""
    chance = random.Random(5)
    reported: list[tuple[int, int, str]] = []
    for _ in range(12):
        child = _appender(tmp_path)
        lines = [child.stdout.readline() for _ in range(chance.randint(1, 60))]
        # The child works on while this waits for a random part of a commit.
        busy = chance.randrange(20_000)
        while busy:
            busy -= 1
        child.kill()
        lines += child.stdout.readlines()
        child.wait()
        child.stdin.close()
        child.stdout.close()
        reported += _committed(lines)
    spool = opened(tmp_path)
    assert spool.quarantined is None
    stored = [(r.boot, r.seq, r.key) for r in readings(everything(spool))]
    assert stored == sorted(stored, key=lambda r: r[:2])
    assert set(reported) <= set(stored)
    per_boot: dict[int, list[int]] = {}
    for boot, seq, _ in stored:
        per_boot.setdefault(boot, []).append(seq)
    assert len(per_boot) == 12
    assert all(numbers == list(range(len(numbers))) for numbers in per_boot.values())
    # Committed but not reported: at most the one commit that the kill hit, of up to seven readings.
    unreported = set(stored) - set(reported)
    assert all(len([u for u in unreported if u[0] == boot]) <= 7 for boot in per_boot)
    assert spool.state.readings == len(stored)
    spool.close()


def test_full_disk_refuses_loses_nothing_and_goes_on(tmp_path):
    """The kernel refuses to write more (a file size limit): SpoolFull, landed ones can go, later ones are stored again."""
    child = _appender(tmp_path, file_bytes=300_000)
    lines = []
    while not (line := child.stdout.readline()).startswith("full"):
        assert line
        lines.append(line)
    assert "cannot write" in line
    assert "free space on its disk" in line
    child.stdin.write("go on\n")
    child.stdin.flush()
    landed = []
    while (line := child.stdout.readline()).startswith("landed"):
        landed.append(tuple(map(int, line.split()[1:])))
    lines.append(line)
    lines += [child.stdout.readline() for _ in range(20)]
    child.kill()
    child.wait()
    child.stdin.close()
    lines += child.stdout.readlines()
    child.stdout.close()
    spool = opened(tmp_path)
    stored = {(r.boot, r.seq, r.key) for r in readings(everything(spool))}
    gone = max(seq for _, seq in landed)
    reported = _committed(lines)
    assert {r for r in reported if r[1] > gone} <= stored
    numbers = sorted(seq for _, seq, _ in reported)
    assert numbers == list(range(len(numbers)))  # the refused ones used no number
    spool.close()


def test_full_disk_lets_go_of_what_has_landed(tmp_path):
    """A deletion needs room in the journal: when there is none the journal is emptied first."""
    program = (
        "import resource, signal, sys, os\n"
        "from pathlib import Path\n"
        "from support.edge.pending import several\n"
        "from whenabouts_edge.store.spool import Spool, SpoolFull\n"
        "spool = Spool(Path(sys.argv[1]), 1 << 30)\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "for i in range(100): spool.append(several(['k'], 3000))\n"
        "wal = os.stat(sys.argv[1] + '-wal').st_size\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (wal, wal))\n"
        "try:\n"
        "    while True: spool.append(several(['k'], 3000))\n"
        "except SpoolFull: pass\n"
        "for n in range(90): spool.landed(spool.boot, n)\n"
        "print(spool.state.readings, spool.append(several(['new'])).first_seq)\n"
    )
    done = ran(program, tmp_path / "spool.sqlite")
    assert done.returncode == 0, done.stderr
    left, first_seq = map(int, done.stdout.split())
    assert left == first_seq - 90
    spool = opened(tmp_path)
    assert [r.seq for r in readings(everything(spool))] == list(range(90, first_seq + 1))
    spool.close()


def _filled(path: Path) -> tuple[Path, int]:
    spool = opened(path)
    for i in range(60):
        spool.append(several([f"k{i}"], 900))
    spool.close()
    return path / "spool.sqlite", spool.boot


def _zero_page(data: bytearray, chance: random.Random) -> None:
    page = chance.randrange(1, len(data) // 4096)
    data[page * 4096 : (page + 1) * 4096] = bytes(4096)


def _noise_over_page(data: bytearray, chance: random.Random) -> None:
    page = chance.randrange(1, len(data) // 4096)
    data[page * 4096 : page * 4096 + 200] = chance.randbytes(200)


def _noise_over_head(data: bytearray, chance: random.Random) -> None:
    data[0:100] = chance.randbytes(100)


def _write_version(data: bytearray, chance: random.Random) -> None:
    data[18] = 7  # SQLite opens such a file for reading only


def _schema_format(data: bytearray, chance: random.Random) -> None:
    data[47] = 99


def _cut(data: bytearray, chance: random.Random) -> None:
    del data[len(data) // 2 + chance.randrange(100) :]


def _another_format(data: bytearray, chance: random.Random) -> None:
    data[:] = b"no database at all, but longer than a head of one\n" * 100


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "damage",
    [_zero_page, _noise_over_page, _noise_over_head, _write_version, _schema_format, _cut, _another_format],
    ids=lambda damage: damage.__name__.strip("_"),
)
def test_damaged_file_is_quarantined_and_reported(tmp_path, damage, seed):
    """For any bytes the agent starts: with the file as it is, or with a new one beside the damaged one."""
    path, old_boot = _filled(tmp_path)
    data = bytearray(path.read_bytes())
    damage(data, random.Random(seed))
    path.write_bytes(data)
    spool = opened(tmp_path)
    assert spool.quarantined == tmp_path / "spool.sqlite.damaged-1"
    assert spool.quarantined.stat().st_size >= len(data) // 2
    assert spool.boot != old_boot
    assert spool.append(several(["new"])).first_seq == 0
    assert [r.key for r in readings(everything(spool))] == ["new"]
    spool.close()
    path.write_bytes(b"damaged again" * 100)
    for journal in tmp_path.glob("spool.sqlite-*"):
        journal.unlink()
    again = opened(tmp_path)
    assert again.quarantined == tmp_path / "spool.sqlite.damaged-2"
    again.close()


def test_a_changed_bit_of_a_message_puts_the_file_aside_at_the_start(tmp_path):
    """SQLite's own check finds nothing: the structure is whole."""
    path, _ = _filled(tmp_path)
    changed(path)
    with sqlite3.connect(path) as db:
        assert db.execute("PRAGMA quick_check").fetchone() == ("ok",)
    db.close()
    spool = opened(tmp_path)
    assert spool.quarantined == tmp_path / "spool.sqlite.damaged-1"
    assert everything(spool) == []
    spool.close()


def test_a_checksum_changes_with_each_value_and_with_the_type_of_the_payload():
    whole = checksum((1, "a"), b"payload")
    assert whole == checksum([1, "a"], b"payload")
    assert {checksum((2, "a"), b"payload"), checksum((1, "b"), b"payload"), checksum((1, "a"), b"Payload")}.isdisjoint(
        {whole}
    )
    assert checksum((1, "a"), "payload") == checksum((1, "a"), None) == -1


def test_a_message_that_is_damaged_while_the_agent_runs_is_not_sent(tmp_path):
    spool = opened(tmp_path)
    spool.append(several(["a"]))
    with spool._db as db:
        db.execute("UPDATE message SET payload = payload || x'00'")
    with pytest.raises(SpoolError, match="is damaged: its checksum differs; the next start puts this file aside"):
        spool.after(None, 1)
    spool.close()


@pytest.mark.parametrize(("table", "damage"), [
    ("waiting", "UPDATE waiting SET latest_us = latest_us + 1"),
    ("gap", "UPDATE gap SET count = count + 1"),
    ("clock_known", "UPDATE clock_known SET utc_us = utc_us + 1"),
])  # fmt: skip
def test_a_damaged_row_of_another_table_is_left_out_and_told(tmp_path, table, damage, caplog):
    spool = opened(tmp_path)
    one = pending("a")
    spool.waiting.numbered([one])
    spool.waiting.write([one])
    spool.waiting.know(5)
    spool.keep_gaps([Gap("hall", "gw", "dock/tags", 1, 0, 9, "bounded")])
    spool._db.execute(damage)
    spool._db.commit()
    spool.close()
    again = Spool(tmp_path / "spool.sqlite", LIMIT, "another run")
    found = {"waiting": again.waiting.read("hall", "gw"), "gap": again.gaps.read("hall", "gw")}
    assert {name for name, rows in found.items() if not rows} == {table} & found.keys()
    assert (again.waiting._since_us is None) == (table == "clock_known")
    assert "is unreadable" in caplog.text
    again.close()


@pytest.mark.parametrize("table", ["waiting", "gap"])
@pytest.mark.parametrize("text", [b"\xcc\xcc", b"other name "])
def test_a_damaged_description_of_a_table_puts_the_file_aside(tmp_path, table, text):
    """Found by bits that were changed at random: the agent ended with SQLite's error at each start."""
    path, _ = _filled(tmp_path)
    data = path.read_bytes()
    at = data.index(b"INTEGER", data.index(f"TABLE {table}".encode())) - 2
    path.write_bytes(data[:at] + text + data[at + len(text) :])
    spool = opened(tmp_path)
    assert spool.quarantined is not None
    spool.append(several(["a"]))
    spool.close()


def changed(path):
    """Change a bit in the payload of a message."""
    with sqlite3.connect(path) as db:
        boot, first_seq, payload = db.execute(
            "SELECT boot, first_seq, payload FROM message LIMIT 1 OFFSET 3"
        ).fetchone()
        damaged = bytes([*payload[:-1], payload[-1] ^ 1])
        db.execute("UPDATE message SET payload = ? WHERE boot = ? AND first_seq = ?", (damaged, boot, first_seq))
    db.close()


def test_damaged_boot_counter_is_quarantined(tmp_path):
    """A counter that no boot number can come from does not stop the agent."""
    path, _ = _filled(tmp_path)
    with sqlite3.connect(path) as db:
        db.execute("UPDATE counter SET value = 9223372036854775807")
    db.close()
    spool = opened(tmp_path)
    assert spool.quarantined is not None
    spool.append(several(["a"]))
    spool.close()


@pytest.mark.parametrize(("version", "application"), [(0, 0), (1, 0), (3, APPLICATION_ID), (3, 0x1234)])
def test_database_of_another_program_is_not_touched(tmp_path, version, application):
    """Somebody's notes, or a spool of a later version: an error, and not one byte is changed."""
    path = tmp_path / "spool.sqlite"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE notes (text)")
        db.execute(f"PRAGMA user_version={version}")
        db.execute(f"PRAGMA application_id={application}")
    db.close()
    with pytest.raises(SpoolError, match=r"another program or version.*move it away"):
        opened(tmp_path)
    with sqlite3.connect(path) as db:
        assert db.execute("SELECT name FROM sqlite_master").fetchall() == [("notes",)]
    db.close()


def test_folder_that_cannot_be_made_is_reported(tmp_path):
    """A file where the folder should be: an error that names the option to change."""
    (tmp_path / "state").write_text("")
    with pytest.raises(SpoolError, match=r"cannot make its folder .* set state_dir"):
        Spool(tmp_path / "state" / "deeper" / "spool.sqlite", LIMIT)


def test_folder_in_place_of_the_file_is_reported(tmp_path):
    """A file that cannot be opened does not count as damaged."""
    (tmp_path / "spool.sqlite").mkdir()
    with pytest.raises(SpoolError, match=r"cannot open .* writable"):
        opened(tmp_path)
