"""Readings that one kind of reader's frames become on a board that has only the modules flashed for it: KIND HEX..."""

import sys

import whenabouts_edge.board.run  # noqa: F401  # what the main program imports
from whenabouts_edge.readers.session import ReaderSession

config = {"kind": sys.argv[1], "stream": "s"}
if config["kind"] == "m6e":
    config["read_power_cdbm"] = 2000
reader = ReaderSession(config, 0)
now_us = 1_000_000
for text in sys.argv[2:]:
    data = bytes.fromhex(text)
    reader.dialogue.due(now_us)
    reader.took(data, now_us, now_us + 50_000)
    now_us += 1_000_000
    reader.silent(now_us)
print("readings", reader.readings)
