"""Deletes old hours of a landing: readings, side output, frontiers and health records.

Never the last hour of a part, nor hours whose readings its ledger's snapshot does not cover: a restart of the ingest reads
them; it reads no health records. The local folders of an hour get hidden names before files are deleted, so that it goes as
a whole: a check misses nothing of an hour of which a folder is hidden. What a kill leaves is deleted by the next run.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from whenabouts_cloud.durable import sync
from whenabouts_cloud.landing.layout import AHEAD, DATA, FRONTIER, HEALTH, HOUR, SNAPSHOT, parts_of
from whenabouts_cloud.landing.sealing import unsealed
from whenabouts_cloud.landing.store import Store

DAMAGED = (
    "is damaged, so which hours the ingest needs for a restart is not known; delete it: the ingest reads the files then"
)
GONE = ".gone-"  # prefix of the hidden name
INGESTS = ("lock", "lease")  # what an ingest has in its folder, in a local one or in an object store


class UnknownNeedError(ValueError):
    """The snapshot of a part's ledger is damaged, so nobody knows which hours its ingest needs; they stayed. deleted: the
    hours of other parts.
    """

    def __init__(self, problems: Sequence[str], deleted: Sequence[str]) -> None:
        super().__init__("; ".join(problems))
        self.deleted = list(deleted)


def retain(landing: Store, now: datetime, days: int) -> list[str]:
    """Delete hours that ended more than so many days ago; returns their paths below the landing.

    Raises:
        UnknownNeedError: see there.
    """
    oldest = (now.astimezone(UTC) - timedelta(days=days, hours=1)).strftime("%Y-%m-%dT%H")
    deleted, problems = list[str](), list[str]()
    for part in parts_of(landing):
        store = landing.at_folder(part)
        hours = {kind: [one.name for one in store.entries(kind)] for kind in (FRONTIER, AHEAD, DATA)}
        last = max((name for names in hours.values() for name in names if name.startswith(HOUR)), default="")
        since = _since(store)
        if since is None:
            problems.append(f"{'/'.join(filter(None, (part, SNAPSHOT)))} {DAMAGED}")
            continue
        end = min(f"{HOUR}{oldest}", last, f"{HOUR}{since}")
        ends = dict.fromkeys(hours, end) | {HEALTH: f"{HOUR}{oldest}"}
        hours[HEALTH] = [one.name for one in store.entries(HEALTH)]
        for name in sorted({name for names in hours.values() for name in names if name.startswith(HOUR)}):
            for kind in (kind for kind, names in hours.items() if name in names and name < ends[kind]):
                _hide(store, kind, name)
                deleted.append("/".join(filter(None, (part, kind, name))))
        for kind in hours:
            for name in (one.name for one in store.entries(kind) if one.name.startswith(GONE)):
                store.remove_folder(f"{kind}/{name}" if kind else name)
    if problems:
        raise UnknownNeedError(problems, deleted)
    return deleted


def _hide(store: Store, kind: str, name: str) -> None:
    """Rename a local folder; delete that of an object store, where nothing can be renamed."""
    if store.local is None:
        store.remove_folder(f"{kind}/{name}" if kind else name)
        return
    folder = store.local / kind
    (folder / name).rename(folder / f"{GONE}{name}")
    sync(folder)


def _since(store: Store) -> str | None:
    """The hour from which on the ingest's ledger needs the files; without an ingest none of them. None: it is not known."""
    try:
        since = unsealed(store.read(SNAPSHOT))["since"]
    except FileNotFoundError:
        return "" if any(one.name in INGESTS for one in store.entries("_ingest")) else "~"
    except (ValueError, KeyError):
        return None
    return since if isinstance(since, str) else None
