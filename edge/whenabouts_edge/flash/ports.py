"""Ports of a board by name: `uart0`, or `uart0:tx=12,rx=13` with non-default pins."""

import re
from typing import Any

from whenabouts_edge.flash.boards import BoardFacts, UartFacts

_PORT = re.compile(r"(\w+)(?::tx=(\d+),rx=(\d+))?")


class Ports:
    """The ports of one board, each assigned to one reader. If ports are terminals, any path is valid."""

    def __init__(self, board: BoardFacts) -> None:
        self._board = board
        self._taken: dict[str, str] = {}  # UART or pin -> reader

    def take(self, text: str, reader: str) -> tuple[Any, list[str]]:
        """(arguments of `machine.UART`, or the path of a terminal; mistakes in the text)."""
        if self._board.terminals:
            return text, []
        match = _PORT.fullmatch(text)
        uart = self._board.uarts.get(match[1]) if match else None
        if match is None or uart is None:
            return None, [f"port: found {text}, expected {self._expected()}"]
        tx, rx = (int(match[2]), int(match[3])) if match[2] else (uart.tx[0], uart.rx[0])
        mistakes = [
            f"port: found {what}={pin}, expected a pin of {match[1]}: {', '.join(map(str, pins))}"
            for what, pin, pins in (("tx", tx, uart.tx), ("rx", rx, uart.rx))
            if pin not in pins
        ]
        uses = match[1], f"pin {tx}", f"pin {rx}"
        again = next((what for what in uses if what in self._taken), None)
        if again is not None:
            mistakes.append(f"port: found {again} again, expected one that reader {self._taken[again]} does not use")
        self._taken |= dict.fromkeys(uses, reader)
        return {"id": uart.id, "tx": tx, "rx": rx, "rxbuf": uart.rxbuf}, mistakes

    def _expected(self) -> str:
        names = sorted(self._board.uarts)
        pins = _other_pins(self._board.uarts[names[0]])
        return f"{' or '.join(names)} of {self._board.name}, such as {names[0]}, or {names[0]}:{pins} with other pins"


def _other_pins(uart: UartFacts) -> str:
    """Non-default pins, as an example."""
    return f"tx={uart.tx[min(1, len(uart.tx) - 1)]},rx={uart.rx[min(1, len(uart.rx) - 1)]}"
