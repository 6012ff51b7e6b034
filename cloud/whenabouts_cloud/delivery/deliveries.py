"""All deliveries of one output folder: to the targets of a command, and to those that its rules name."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from whenabouts_cloud.delivery.courier import Courier, Progress
from whenabouts_cloud.delivery.cursor import cursor_of, series_of
from whenabouts_cloud.delivery.published import content_of, folder_of
from whenabouts_cloud.delivery.target import Target
from whenabouts_cloud.delivery.targets import TABLES, UNIT, kind_of, open_target
from whenabouts_cloud.delivery.uri import TargetError, identity, shown
from whenabouts_cloud.landing.store import Store

GIVEN_UP_S = 60.0  # a target that has failed for this long is not waited for at the end of --once


class Deliveries:
    """Delivers what is published in `out`: to the URIs of `to` all results, to those of `into` those of a rule.

    Raises:
        TargetError: a target cannot be used.
    """

    def __init__(self, out: Path | Store, unit: str, to: Sequence[str], into: Mapping[str, Sequence[str]]) -> None:
        self._out = Store.at(out)
        rules: dict[str, frozenset[str] | None] = {}
        for name, uris in into.items():
            for uri in uris:
                mine = uri.replace(UNIT, unit)
                rules[mine] = (rules.get(mine) or frozenset()) | {name}
        rules.update({uri.replace(UNIT, unit): None for uri in to})
        _check_distinct(rules)
        self.rules = rules
        self._targets: dict[str, Target] = {uri: open_target(uri, unit) for uri in rules}
        self._couriers: list[Courier] = []

    def start(self, complete: bool = False) -> None:
        """Begin, with the batches that are not delivered yet. complete: of a result that replaces earlier ones.

        Raises:
            DamagedCursorError: a file in `_delivered` cannot be read.
        """
        if self._couriers or not self._targets:
            return
        series = cursors = series_of(self._out)
        if complete:  # its number is always 0, so its content tells it from an earlier one
            series = f"{series}-{content_of(self._out.at_folder(folder_of(0)))}"
        for uri, target in self._targets.items():
            cursor = cursor_of(self._out, cursors, uri, shown(uri))
            self._couriers.append(Courier(self._out, series, target, cursor, self.rules[uri]))
        for courier in self._couriers:
            courier.start()

    def published(self, number: int) -> None:
        """Tell of a published batch; returns at once."""
        for courier in self._couriers:
            courier.published(number)

    def finish(self, deadline_s: float | None, stopped: Callable[[], bool] = lambda: False) -> list[str]:
        """Wait until all is delivered, then end; return a sentence for each target that lacks results.

        deadline_s: on the monotonic clock; None waits as long as a target takes results.
        """
        problems = []
        for courier in self._couriers:
            late = (lambda: stopped() or time.monotonic() > deadline_s) if deadline_s is not None else stopped
            if not courier.wait(late, GIVEN_UP_S):
                why = f" ({courier.last_error})" if courier.last_error else ""
                problems.append(
                    f"{courier.progress.target}: found {courier.progress.waiting} batches of {self._out.uri} not delivered"
                    f"{why}; they stay there, and the next run with this --out and target delivers them"
                )
        for courier in self._couriers:
            courier.end()
        return problems

    def progress(self) -> list[Progress]:
        """What each target was given, and what waits for it."""
        return [courier.progress for courier in self._couriers]


def check_tables(deliveries: Iterable[tuple[str, Deliveries]]) -> None:
    """Refuse one table for results of two units, whose columns differ.

    Raises:
        TargetError: names the table and the units.
    """
    units: dict[str, str] = {}
    for unit, one in deliveries:
        for uri in one.rules:
            named = kind_of(uri) == "delta" or "table=" in uri  # else the name of the table has the unit in it
            if kind_of(uri) in TABLES and named and units.setdefault(uri, unit) != unit:
                raise TargetError(
                    f"{shown(uri)}: found it for {units[uri]} and {unit}, whose columns differ, expected {UNIT} in its name"
                )


def _check_distinct(uris: Iterable[str]) -> None:
    known: dict[str, str] = {}
    for uri in uris:
        if known.setdefault(identity(uri), uri) != uri:
            raise TargetError(f"{shown(uri)}: found it twice with different secrets, expected one")
