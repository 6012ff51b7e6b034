"""Holds a part of a landing for one writer, and writes its files: a lock in a local folder, a lease in an object store.

A lock dies with its process. A lease can be lost by a process that is only paused, between any two instructions; what it
writes when it wakes up must do no harm, and no clock can prevent that it writes. So every file is created under a name that
nothing has yet, and a successor first occupies all names that the next file of the holder before can get: its number is
known from the files, its hour from the lease, and there are three kinds. The paused one then finds its name taken, and ends.
If its file came first, it is a file like any other, and the successor tries with the next number.
"""

import contextlib
import fcntl
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Protocol

from whenabouts_cloud.durable import make_folder, sync
from whenabouts_cloud.ingest import conditional
from whenabouts_cloud.ingest.conditional import Conflict
from whenabouts_cloud.ingest.lease import Lease, LeaseHeld, LeaseLost, acquire
from whenabouts_cloud.landing.layout import FRONTIER, HOUR, KINDS, numbers_of
from whenabouts_cloud.landing.running_mark import RunningMark
from whenabouts_cloud.landing.store import Store

CONDITIONAL = ("s3", "gs", "abfs", "abfss")  # schemes of stores that write under conditions


class LandingError(Exception):
    """The landing cannot be used. The text names the cause and what to do."""


class LandingLost(LandingError):
    """Another ingest has taken the landing over. What was not confirmed goes to that one."""


class Holding(Protocol):
    """A part that is held.

    Raises:
        LandingLost: from each method but close: another one holds it.
        OSError: from each method but close: the store cannot be written now.
    """

    holder: str  # unique, "" for a lock
    taken_over: bool  # the holder before may still write; set to False once all its names are occupied
    interrupted: bool  # the holder before was killed; set to False once an empty file has used up the next number

    @property
    def hour(self) -> str:
        """The last that was entered, by this holder or those before; "" if it is not known."""

    def keep(self) -> None:
        """Keep the part; at least once a second."""

    def enter(self, hour: str) -> None:
        """Files to come are of this hour; hours never go back."""

    def occupy(self, path: str, data: bytes) -> bool:
        """Create a file; False if another one has this name."""

    def create(self, path: str, data: bytes) -> None:
        """Create a file with a new name; durable when this returns."""

    def settle(self) -> bool:
        """Learn what became of a file whose creation failed: True if it exists now."""

    def confirm(self) -> None:
        """Make sure that the part is still held, before a file without a number is replaced."""

    def close(self) -> None:
        """Release the part."""


def hold(store: Store, lease_s: float) -> Holding:
    """Hold a part. lease_s: duration of a lease.

    Raises:
        LandingError: another one holds it, or it cannot be held.
    """
    if store.local is not None:
        return _Locked(store, store.local)
    if store.uri.partition("://")[0] not in CONDITIONAL:
        raise LandingError(
            f"landing {store.uri}: an ingest needs a store that writes under a condition (s3, gs, abfs), or a local folder: "
            "without one, two ingests could overwrite each other's files"
        )
    try:
        return _Leased(store, acquire(store, lease_s))
    except LeaseHeld as error:
        raise LandingError(f"landing {store.uri}: {error}; stop it, or give this one another --name") from None
    except (ValueError, OSError) as error:
        raise LandingError(f"landing {store.uri}: cannot be used ({error})") from None


class _Locked:
    """A local folder under a lock of the file system."""

    def __init__(self, store: Store, folder: Path) -> None:
        self._store, self.holder, self.taken_over = store, "", False
        self._folder, self._unsure = folder, ""
        try:
            for name in (FRONTIER, "_ingest", "_dead"):
                make_folder(folder / name)
            self._lock: IO[str] = (folder / "_ingest" / "lock").open("w")
        except OSError as error:
            raise LandingError(f"landing {folder}: cannot be written ({error}); name a folder that can") from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._mark = RunningMark(folder)
            self.interrupted = self._mark.interrupted
            _remove_leftovers(self._store)
        except BlockingIOError:
            self._lock.close()
            raise LandingError(
                f"landing {folder}: another ingest writes here; stop it or name another folder"
            ) from None
        except OSError as error:
            self._lock.close()
            raise LandingError(f"landing {folder}: cannot be used ({error}); name another folder") from None

    @property
    def hour(self) -> str:
        return self._mark.hour

    def keep(self) -> None:
        pass

    def enter(self, hour: str) -> None:
        self._mark.enter(hour)

    def occupy(self, path: str, data: bytes) -> bool:
        self._store.write(path, data)
        return True

    def create(self, path: str, data: bytes) -> None:
        self._unsure = path  # its folder may be what cannot be synced: then it is there, and jobs read it
        self._store.write(path, data)
        self._unsure = ""

    def settle(self) -> bool:
        path = self._folder / self._unsure
        is_there = bool(self._unsure) and path.exists()
        if is_there:
            sync(path.parent)  # else a loss of power could take this file and leave a later one
        self._unsure = ""
        return is_there

    def confirm(self) -> None:
        pass

    def close(self) -> None:
        if not self.interrupted and not self._unsure:
            self._mark.remove()
        self._lock.close()


def _remove_leftovers(part: Store) -> None:
    """Remove the half files of an ingest that was killed; those of merged files are of `compact`, which may be running.

    Hours may be deleted meanwhile.
    """
    for kind in KINDS:
        for hour in (one.name for one in part.entries(kind) if one.name.startswith(HOUR)):
            folder = f"{kind}/{hour}" if kind else hour
            for name in (one.name for one in part.entries(folder) if one.name.startswith(".")):
                numbers = numbers_of(name.removeprefix("."))
                if numbers is not None and numbers.first == numbers.last:
                    part.remove(f"{folder}/{name}")


class _Leased:
    """A place in an object store under a lease."""

    def __init__(self, store: Store, lease: Lease) -> None:
        self._store, self._lease = store, lease
        self.holder, self.taken_over, self.interrupted = lease.holder, lease.taken_over, False
        self._unsure: tuple[str, bytes] | None = None  # a file that may or may not exist
        self._lost = False

    @property
    def hour(self) -> str:
        return self._lease.hour

    def keep(self) -> None:
        with self._held():
            self._lease.keep()

    def enter(self, hour: str) -> None:
        if hour != self._lease.hour:
            with self._held():
                self._lease.enter(hour)

    def occupy(self, path: str, data: bytes) -> bool:
        with self._held():
            self._lease.confirm()
            self._unsure = path, data
            try:
                conditional.create(self._store, path, data)
            except Conflict:
                self._unsure = None
                self._lease.keep(0.0)  # tells if another ingest has made that file
                return False
        self._unsure = None
        return True

    def create(self, path: str, data: bytes) -> None:
        if not self.occupy(path, data):
            raise LandingError(
                f"landing {self._store.uri}: found another file at {path}, whose number is the next of this ingest; does "
                "another program write files here? Start the ingest again: it goes on after that file"
            )

    def settle(self) -> bool:
        if self._unsure is None:
            return False
        self.create(*self._unsure)
        return True

    def confirm(self) -> None:
        with self._held():
            self._lease.confirm()

    def close(self) -> None:
        if self._unsure is None and not self._lost and not self.taken_over:
            with contextlib.suppress(LeaseLost, OSError):  # the successor waits for the end of the lease
                self._lease.give_back()

    @contextlib.contextmanager
    def _held(self) -> Iterator[None]:
        try:
            yield
        except LeaseLost as error:
            self._lost = True
            raise LandingLost(f"landing {self._store.uri}: {error}") from None
