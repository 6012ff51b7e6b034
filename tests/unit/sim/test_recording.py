"""`whenabouts-sim record`: the recording that an agent would make of a simulated reader, equal for equal seeds."""

import io
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from support.files.own_captures import FOLDER, TRACE
from whenabouts_edge.cli import main as edge
from whenabouts_edge.trace import open_trace
from whenabouts_hardware import READERS, decoder
from whenabouts_hardware.readers.m6e_frames import START_CONTINUOUS
from whenabouts_sim.cli import main as sim
from whenabouts_sim.readers.reader_run import KINDS
from whenabouts_sim.readers.recording import record_reader

PROGRAMS = {"whenabouts-edge": edge, "whenabouts-sim": sim}
SPEAK_FIRST = ("id12la", "line", "rdm6300")


def run(line: str) -> None:
    """One line of a shell: one of our programs, its output to a file if it is redirected."""
    words = shlex.split(line, comments=True)
    target = words[words.index(">") + 1] if ">" in words else None
    arguments = words[1 : words.index(">")] if target else words[1:]
    done = CliRunner().invoke(PROGRAMS[words[0]], arguments)
    assert done.exit_code == 0, done.output
    if target:
        Path(target).write_text(done.stdout)


def test_the_captures_of_the_project_are_what_the_commands_beside_them_make(tmp_path, monkeypatch):
    """Byte for byte, every file; nothing lies there that nobody can make again."""
    monkeypatch.chdir(tmp_path)
    for line in re.findall(r"^\$ (whenabouts-.*)$", (FOLDER / "README.md").read_text(), re.M):
        run(line)
    made = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert made == {path.name: path.read_bytes() for path in FOLDER.iterdir() if path.name != "README.md"}


def test_the_capture_of_the_project_holds_a_start_its_answers_and_tags():
    """The recording fits tests of replay and capture: commands with answers, keep-alives, some tags more than once."""
    records = list(open_trace(TRACE).records())
    commands = [record.data for record in records if record.direction == "tx"]
    lines = decoder("m6e", mode="reader")
    frames = [frame for record in records if record.direction == "rx" for frame in lines.feed(record.data)]
    keys = [s.key for frame in frames for s in READERS["m6e"].sightings(frame)]
    assert tuple(commands) == READERS["m6e"].start
    assert commands[-1] == START_CONTINUOUS
    assert sum(frame.kind == "keepalive" for frame in frames) == 8
    assert 10 <= len(set(keys)) <= 12 < len(keys) <= 30


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_reader_can_be_recorded(tmp_path, kind):
    """Whole frames with several tags come, from a reader that is driven as it needs; the seed decides the file."""
    path, again = tmp_path / "x.trace", io.BytesIO()
    done = CliRunner().invoke(sim, ["record", kind, str(path), "--seed", "3", "--tags", "5"])
    assert done.exit_code == 0, done.output
    record_reader(kind, seed=3, rate=2.0, tags=5, seconds=10.0, sink=again)
    assert path.read_bytes() == again.getvalue()
    trace = open_trace(path)
    records = list(trace.records())
    assert (trace.head.port, trace.head.baud) == (f"simulated {kind}, seed 3", READERS[kind].baud)
    assert {record.direction for record in records} == ({"rx"} if kind in SPEAK_FIRST else {"rx", "tx"})
    assert all(record.entry_ns <= record.return_ns < 10_000_000_000 for record in records)
    assert [r.return_ns for r in records] == sorted(r.return_ns for r in records)
    lines = READERS[kind].new_decoder()
    frames = [frame for record in records if record.direction == "rx" for frame in lines.feed(record.data)]
    assert all(frame.ok for frame in frames)
    if kind != "line":
        assert 1 < len({s.key for frame in frames for s in READERS[kind].sightings(frame)}) <= 5
    assert f"seed 3, {len(frames)} frames" in done.output


def test_a_file_that_exists_stays_unless_forced(tmp_path):
    """Wrong use is reported; so is a missing folder."""
    path = tmp_path / "a.trace"
    path.write_text("precious")
    done = CliRunner().invoke(sim, ["record", "m6e", str(path)])
    assert (done.exit_code, path.read_text()) == (2, "precious")
    assert "--force" in done.output
    assert CliRunner().invoke(sim, ["record", "m6e", str(path), "--force", "--seconds", "1"]).exit_code == 0
    assert open_trace(path).format == "whenabouts"
    done = CliRunner().invoke(sim, ["record", "m6e", str(tmp_path / "no" / "a.trace")])
    assert done.exit_code == 1
    assert "cannot be written" in done.output
