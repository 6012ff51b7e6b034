"""Turns a board into a gateway: its configuration from an agent's TOML file (`provision`), and its files (`flash`).

Pure parts: `boards` describes the boards, `modules` finds the modules that a board imports, `provision` converts a
configuration for a board, `plan` computes the files to copy. `program` compiles the modules. Drivers: `compiler` (cross
compiler), `mpremote` (serial port), `first_heartbeat` (broker).
"""


class FlashError(Exception):
    """A board cannot be flashed; the text names what was found, what was expected and what to do next."""
