"""Dead letters with their content."""

import base64
import json

from whenabouts_cloud.dashboard.results.letters import SHOWN_BYTES, newest_letters
from whenabouts_cloud.landing.store import Store


def letter(at_us, payload):
    return json.dumps(
        {"landed_us": at_us, "topic": "t", "reason": "r", "text": "x", "bytes": len(payload),
         "payload": base64.b64encode(payload).decode()}
    )  # fmt: skip


def test_the_newest_of_all_parts_come_first(tmp_path):
    """Text as text, all else in hexadecimal digits, long content cut."""
    for folder, lines in (
        ("_dead", [letter(1, b"old"), "torn"]),
        ("ingest=a/_dead", [letter(3, b"\x00\x01"), letter(2, b"x" * 9999)]),
    ):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "letters-0001.jsonl").write_text("\n".join(lines) + "\n")
    found = newest_letters(Store.at(tmp_path))
    assert [one["at_us"] for one in found] == [3, 2, 1]
    assert (found[0]["content"], found[0]["binary"]) == ("00 01", True)
    assert (len(found[1]["content"]), found[1]["size"]) == (SHOWN_BYTES, 9999)
    assert found[2]["content"] == "old"
    assert len(newest_letters(Store.at(tmp_path), 2)) == 2


def test_lines_that_are_no_letters_are_left_out(tmp_path):
    """Whatever they are."""
    (tmp_path / "_dead").mkdir()
    (tmp_path / "_dead" / "letters-0001.jsonl").write_bytes(b'{"payload": 1}\n[]\n' + b"[" * 100_000 + b"\n\xff\n")
    assert newest_letters(Store.at(tmp_path)) == []
