"""Makes a board into a gateway: its configuration from an agent's TOML file (`provision`), and its files (`flash`).

`boards` knows the boards, `modules` which modules a board imports, `provision` which part of a configuration a board can
have, `plan` what to copy: values in, values out. `program` makes the files of the modules. `compiler`, `device` and
`arrival` are the drivers: cross compiler, serial port, broker.
"""


class FlashError(Exception):
    """A board that cannot be flashed; the text says what was found, what was expected and what to do next."""
