"""Durable memory of a folder about what it has delivered: the name of its series, and a cursor for each target."""

import hashlib
import uuid
from dataclasses import dataclass
from pathlib import Path

from whenabouts_cloud.delivery.uri import identity
from whenabouts_cloud.landing.sealing import sealed, unsealed
from whenabouts_cloud.landing.store import Store

DELIVERED, SERIES = "_delivered", "series.json"
NOTHING = -1  # cursor of a target that has no batch yet


class DamagedCursorError(ValueError):
    """A file in `_delivered` cannot be read; the text says which and what to do."""


@dataclass(frozen=True)
class Cursor:
    """The newest batch of a series that a target has; `shown` is the target without its secrets."""

    out: Store
    file: str
    shown: str

    def read(self, series: str) -> int:
        """The number of the batch, NOTHING before the first one of this series.

        Raises:
            DamagedCursorError: the file is damaged.
        """
        stored = _stored(self.out, self.file)
        return int(stored["batch"]) if stored and stored["series"] == series else NOTHING

    def write(self, series: str, number: int) -> None:
        """Store durably that the target has all batches up to this one."""
        values = {"target": self.shown, "series": series, "batch": number}
        self.out.write(self.file, sealed(values))


def cursor_of(out: Path | Store, series: str, uri: str, shown: str) -> Cursor:
    """Return the cursor of a target. Its file name is a digest, so that it reveals nothing about the URI."""
    digest = hashlib.blake2b(f"{series} {identity(uri)}".encode(), digest_size=8).hexdigest()
    return Cursor(Store.at(out), f"{DELIVERED}/{digest}.json", shown)


def series_of(out: Path | Store) -> str:
    """Return the name of the series of this folder; given at the first call, for ever.

    Raises:
        DamagedCursorError: the file is damaged.
    """
    place, file = Store.at(out), f"{DELIVERED}/{SERIES}"
    stored = _stored(place, file)
    if stored is None:
        stored = {"series": uuid.uuid4().hex}
        place.write(file, sealed(stored))
    return str(stored["series"])


def _stored(out: Store, file: str) -> dict[str, str] | None:
    try:
        text = out.read(file)
    except FileNotFoundError:
        return None
    try:
        stored = unsealed(text)
        int(stored.get("batch", 0)), stored["series"]
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedCursorError(
            f"{out.uri}/{file}: found {error!r}, expected what was delivered; delete it to deliver all batches of the "
            "folder again"
        ) from None
    return dict(stored)
