"""The supported boards: their facts, one TOML file each in the folder `boards` next to this module.

A file has these keys; those with a default may be left out.

    title                 for people
    platform              `sys.platform` of its firmware
    machine               end of `sys.implementation._machine`, which distinguishes boards
    modules               imported by its main program
    wifi                  true: it needs the name of a Wi-Fi network
    flash_bytes           of its file system
    block_bytes           of its file system: a file takes at least one block
    flash_log_segments    of 32 KiB, for waiting readings
    led                   pin of its light; none
    watchdog_s_max        longest time its watchdog can wait; none
    terminals, loopback   false: a port is the path of a terminal; its localhost is this computer
    uart.NAME             {id, tx, rx: pins, the usual one first; rxbuf: bytes}
"""

import tomllib
from dataclasses import dataclass, field
from importlib.resources import files
from importlib.resources.abc import Traversable


@dataclass(frozen=True, slots=True)
class UartFacts:
    """One UART: its number, its possible pins with the usual one first, and the buffer of its driver in bytes."""

    id: int
    tx: tuple[int, ...]
    rx: tuple[int, ...]
    rxbuf: int


@dataclass(frozen=True, slots=True)
class BoardFacts:
    """A kind of board; the module's head explains each field."""

    name: str
    title: str
    platform: str
    machine: str
    modules: tuple[str, ...]
    wifi: bool
    flash_bytes: int
    block_bytes: int
    flash_log_segments: int
    led: str | int | None = None
    watchdog_s_max: int | None = None
    terminals: bool = False
    loopback: bool = False
    uarts: dict[str, UartFacts] = field(default_factory=dict)


class UnknownBoard(ValueError):
    """There is no such board; the text lists the known ones."""


def known() -> list[str]:
    """Names of the boards, sorted."""
    return sorted(path.name.removesuffix(".toml") for path in _folder().iterdir() if path.name.endswith(".toml"))


def board(name: str) -> BoardFacts:
    """The facts of a board.

    Raises:
        UnknownBoard: there is none of this name.
    """
    if name not in known():
        raise UnknownBoard(f"board: found {name!r}, expected one of {', '.join(known())}")
    table = tomllib.loads((_folder() / f"{name}.toml").read_text(encoding="utf-8"))
    uarts = {
        one: UartFacts(facts["id"], tuple(facts["tx"]), tuple(facts["rx"]), facts["rxbuf"])
        for one, facts in table.pop("uart", {}).items()
    }
    return BoardFacts(name=name, uarts=uarts, **{**table, "modules": tuple(table["modules"])})


def _folder() -> Traversable:
    return files("whenabouts_edge.flash") / "boards"
