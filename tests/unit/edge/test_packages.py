"""Readers of other packages, installed for real beside ours: used by the agent, or reported with their fault."""

import json
import os
import subprocess
import sys

import pytest

from whenabouts_edge.config.packages import GROUP
from whenabouts_edge.trace import Head, Record, encode_head, encode_record

MODULE = '''
"""A reader that sends A5, four bytes of a tag, and their sum."""
from whenabouts_hardware import Decoder, Frame, Reader, Sighting


class AcmeDecoder(Decoder):
    START, FRAME_BYTES_MAX = 0xA5, 6

    def _decode(self, held, at, final):
        if len(held) - at < 6:
            return (None, False) if final else None
        raw = bytes(held[at : at + 6])
        if sum(raw[1:5]) & 255 != raw[5]:
            return Frame("damaged", {}, raw, self._offset + at, "sum", "bad_checksum"), False
        return Frame("tag", {"id": raw[1:5].hex()}, raw, self._offset + at), True


def tags(frame):
    return [Sighting(frame.fields["id"], {"rssi": -50}, None, 1)]


class Other:
    OPTIONS = ()


READER = Reader(AcmeDecoder, 19200, 5000, "its data sheet", tags)
WITH_KEY = Reader(
    AcmeDecoder, 19200, 5000, "its data sheet", tags, own_keys={"gain_db": (0, 30, "gain of the receiver in dB.", 12)},
    settings=lambda config: (b"G%d" % config.get("gain_db", 12),), start=(b"S",), reports_once=True,
)
COMMON_KEY = Reader(AcmeDecoder, 19200, 5000, "its data sheet", tags, own_keys={"port": (0, 1, "port.", 1)})
SHORT_KEY = Reader(AcmeDecoder, 19200, 5000, "its data sheet", tags, own_keys={"gain_db": (0, 30)})
WITHOUT = Reader(AcmeDecoder, 19200, 5000, "its data sheet")
WRONG_DECODER = Reader(Other, 19200, 5000, "its data sheet", tags)
NUMBER = 7
'''
CONFIG = """\
site = "s"
gateway = "g"
state_dir = "state"
[broker]
host = "127.0.0.1"
port = 1
[clock]
source = "fixed"
bound_us = 1000
[[reader]]
name = "dock"
kind = "acme"
port = "/dev/nowhere"
"""


def install(folder, name, *points, module=MODULE):
    """The files that pip leaves: the module, and its dist-info with entry points."""
    folder.mkdir(exist_ok=True)
    (folder / "acme_reader.py").write_text(module)
    info = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{GROUP}]\n" + "".join(f"{point}\n" for point in points))
    (info / "RECORD").write_text("")


def edge(tmp_path, *args, more=""):
    (tmp_path / "edge.toml").write_text(CONFIG + more)
    return subprocess.run(
        [sys.executable, "-m", "whenabouts_edge.cli", *args],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(tmp_path / "site"), *sys.path]))},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_reader_of_another_package_is_read_by_the_agent(tmp_path):
    """Its frames are decoded, stamped and stored; its line speed is the default."""
    install(tmp_path / "site", "acme-reader", "acme = acme_reader:READER")
    done = edge(tmp_path, "check", "--config", "edge.toml")
    assert (done.returncode, "reader dock: acme on /dev/nowhere" in done.stdout) == (0, True), done.stderr
    frames = bytes.fromhex("a5 01020304 0a a5 01020304 0b a5 00000001 01".replace(" ", ""))
    records = [Record("rx", i * 10**6, i * 10**6, frames[i : i + 4]) for i in range(0, len(frames), 4)]
    (tmp_path / "t.trace").write_bytes(encode_head(Head("x")) + b"".join(map(encode_record, records)))
    done = edge(tmp_path, "replay", "t.trace", "--config", "edge.toml", "--json")
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert (summary["frames"], summary["readings"], summary["ended"]) == (2, 2, "end of trace")


@pytest.mark.parametrize(
    ("more", "mistakes"),
    [
        ("gain_db = 12\n", ""),
        ("gain_db = 31\n", "edge.toml:14: [reader] gain_db: found 31, expected a whole number from 0 to 30\n"),
        ("gain = 12\n", "edge.toml:14: [reader] unknown key gain; did you mean gain_db?\n"),
        ("region = 8\n", "edge.toml:14: [reader] region belongs to readers of kind m6e, found acme\n"),
        (
            "leave_ms = 900\n",
            "edge.toml:14: [reader] leave_ms: found a reader of kind acme, which reports a tag only once; expected one "
            "that repeats tags while they stay\n",
        ),
    ],
)
def test_a_reader_of_another_package_has_keys_of_its_own(tmp_path, more, mistakes):
    """`check` knows their limits, hints at them, and knows that the reader reports a tag once."""
    install(tmp_path / "site", "acme-reader", "acme = acme_reader:WITH_KEY")
    done = edge(tmp_path, "check", "--config", "edge.toml", more=more)
    assert (done.returncode, done.stderr) == (2 if mistakes else 0, mistakes)


@pytest.mark.parametrize(
    ("points", "says"),
    [
        ([], "found 'acme', expected one of id12la, impinj,"),
        (["acme = acme_reader:MISSING"], "acme-0 1.0 cannot be used (acme_reader:MISSING: AttributeError: module"),
        (["acme = no_such_module:READER"], "cannot be used (no_such_module:READER: ModuleNotFoundError"),
        (["acme = acme_reader:NUMBER"], "found int, expected whenabouts_hardware.Reader"),
        (["acme = acme_reader:WITHOUT"], "found a Reader without tags, expected a function for the tags of a frame"),
        (["acme = acme_reader:COMMON_KEY"], "found own key 'port', expected a name that not every reader has"),
        (
            ["acme = acme_reader:SHORT_KEY"],
            "found own key 'gain_db' with (0, 30), expected (least, most, description, ex",
        ),
        (["acme = acme_reader:WRONG_DECODER"], "decoder gave Other, expected a whenabouts_hardware.Decoder"),
        (
            ["acme = acme_reader:READER", "acme = acme_reader:WITHOUT"],
            "which packages acme-0 1.0, acme-1 1.0 bring both",
        ),
    ],
)
def test_a_kind_that_cannot_be_used_is_reported_with_its_line(tmp_path, points, says):
    """And nothing but a mistake in the configuration."""
    (tmp_path / "site").mkdir()
    for number, point in enumerate(points):
        install(tmp_path / "site", f"acme-{number}", point)
    done = edge(tmp_path, "check", "--config", "edge.toml")
    assert done.returncode == 2
    assert done.stderr.startswith("edge.toml:12: [reader] kind: found 'acme', ")
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_a_broken_package_takes_nothing_else_with_it(tmp_path):
    """One that ends the program when it is imported, and one that wants a built-in kind; ours works."""
    install(tmp_path / "site", "acme-reader", "acme = acme_reader:READER", "m6e = acme_reader:READER")
    (tmp_path / "site" / "broken.py").write_text("raise RuntimeError('no licence')")
    install(tmp_path / "site", "broken", "broken = broken:READER")
    done = edge(tmp_path, "check", "--config", "edge.toml")
    assert done.returncode == 0, done.stderr
    program = "import json; from whenabouts_edge.config.packages import register_readers\n"
    program += "print(json.dumps(register_readers()))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(tmp_path / "site"), *sys.path]))},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert json.loads(done.stdout) == {
        "m6e": "which is built in and not taken from package acme-reader 1.0",
        "broken": "whose package broken 1.0 cannot be used (broken:READER: RuntimeError: no licence)",
    }
