"""The outputs of jobs below the places that `--results` names, and the batches of each that are new.

A place is what a job has as --out (`pairs/RULE`, `matches`, `counts`, `verdicts/RULE` below it), or a folder of such. An
output that was replaced as a whole (by `--once`, or because its folder was deleted) is told as anew.
"""

from collections.abc import Iterator
from typing import NamedTuple

from whenabouts_cloud.dashboard.results.result_rows import KINDS
from whenabouts_cloud.delivery.published import FOLDER, INPUT, folder_of, numbers_after
from whenabouts_cloud.landing.index import is_settled
from whenabouts_cloud.landing.store import Store

MAX_OUTPUTS = 500
BY_RULE = ("pairs", "verdicts")
LATE = "_late"


class Output(NamedTuple):
    """An output of a job. name: its path below the place, as `pairs/handover`; kind: a value of KINDS."""

    store: Store
    name: str
    kind: str


def outputs_in(places: list[Store]) -> list[Output]:
    """The outputs of these places, at most MAX_OUTPUTS."""
    found: dict[str, Output] = {}
    for place in places:
        for store in (place, *(place.at_folder(one.name) for one in place.entries() if _may_be_place(one.name))):
            for output in _of_job(store):
                if len(found) < MAX_OUTPUTS:
                    found.setdefault(output.store.uri, output)
    return list(found.values())


def _may_be_place(name: str) -> bool:
    return name[:1] not in "._" and name not in KINDS and not name.startswith(FOLDER)


def _of_job(store: Store) -> Iterator[Output]:
    for unit in sorted({one.name for one in store.entries()} & set(KINDS)):
        base = store.at_folder(unit)
        names = {one.name for one in base.entries()}
        if any(name.startswith(FOLDER) for name in names) or "_progress.json" in names or unit not in BY_RULE:
            yield Output(base, unit, KINDS[unit])
        if unit in BY_RULE:
            for name in sorted(names):
                if name[:1] not in "._" and not name.startswith(FOLDER):
                    yield Output(base.at_folder(name), f"{unit}/{name}", KINDS[unit])


class Batches:
    """The batches of an output that are new: `since` the last call."""

    def __init__(self, output: Output) -> None:
        self.output = output
        self._begin()

    def _begin(self) -> None:
        self._last = {"": -1, LATE: -1}
        self._read = b""  # what the last batch said of its input: something else there means that all was replaced
        self._changed: dict[str, int | None] = {"": -1, LATE: -1}

    def replaced(self) -> bool:
        """True if the output is another one than before; its batches are new again."""
        if self._last[""] < 0 or self._input() == self._read:
            return False
        self._begin()
        return True

    def new(self) -> list[tuple[str, Store, int]]:
        """("" or LATE, folder, number) of each batch since the last call."""
        found = []
        for side in ("", LATE):
            store = self.output.store.at_folder(side)
            changed = store.changed_ns("")
            if changed is not None and changed == self._changed[side]:
                continue
            settled_ns = changed if is_settled(changed) else None
            numbers = numbers_after(store, self._last[side])
            found += [(side, store.at_folder(folder_of(number)), number) for number in numbers]
            self._last[side] = max(numbers, default=self._last[side])
            if numbers and not side:
                self._read = self._input()
            self._changed[side] = settled_ns
        return found

    def _input(self) -> bytes:
        """What the last batch says of its input, and when it was published; nothing if it is not there."""
        try:
            return self.output.store.read(f"{folder_of(self._last[''])}/{INPUT}")
        except FileNotFoundError:
            return b""
