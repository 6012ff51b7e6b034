"""Makes a board into a gateway: its configuration from an agent's TOML file (`provision`), and its files (`flash`).

`boards` knows the boards, `modules` what a board imports, `provision` what of a configuration a board can have, `plan` what
to copy: values in, values out. `compiler`, `device` and `arrival` are the drivers: cross compiler, serial port, broker.
"""
