"""The lease of a part of a landing in an object store: an object that says who writes there, renewed by conditional writes.

Two ingests never hold it at once as the store sees it: each write names the version it replaces. No clock of another machine
is believed: a lease is taken over when its version has not changed for its whole duration by one's own clock. A holder that
was paused meanwhile finds another version, and has lost it.

The lease also names the hour in whose folders its holder may create files. So a successor knows every name that a file of a
paused holder can still get (`holding`).
"""

import contextlib
import json
import socket
import time
import uuid
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING

from whenabouts_cloud.ingest import conditional
from whenabouts_cloud.ingest.conditional import Conflict
from whenabouts_cloud.landing.store import Store
from whenabouts_protocol.logs import Log

if TYPE_CHECKING:
    from obstore import UpdateVersion

PATH = "_ingest/lease"
LEASE_S = 30.0
POLLS = 20  # looks at a foreign lease during its duration

log = Log(__name__)


class LeaseHeld(Exception):
    """Another ingest is alive and holds the lease; the text says where."""


class LeaseLost(Exception):
    """Another ingest has taken the lease over; the text says where."""


@dataclass(frozen=True)
class Value:
    """What the lease says. holder: "" after an orderly end; hour: of files, "" before the first; count: of renewals."""

    holder: str
    host: str
    duration_s: float
    hour: str = ""
    count: int = 0

    def encode(self) -> bytes:
        """As JSON."""
        return json.dumps(asdict(self)).encode()

    @staticmethod
    def decode(data: bytes) -> "Value":
        """The inverse.

        Raises:
            ValueError: these are other bytes.
        """
        try:
            value = Value(**json.loads(data))
        except TypeError as error:
            raise ValueError(str(error)) from None
        if [type(one) for one in asdict(value).values()] != [str, str, float, str, int]:
            raise ValueError(f"found {data[:200]!r}")
        return value


class Decision(Enum):
    """What to do about a lease."""

    TAKE = 1
    WAIT = 2
    REFUSE = 3


class Watch:
    """Decides about a lease from what was seen of it, and when by the own clock. Pure."""

    def __init__(self) -> None:
        self._version: object = None
        self._since_s = 0.0

    def decide(self, value: Value | None, version: object, now_s: float) -> Decision:
        """Take a lease that is absent, given back, or unchanged for its whole duration; refuse one that is renewed."""
        if value is None or not value.holder:
            return Decision.TAKE
        if self._version is None:
            self._version, self._since_s = version, now_s
        if version != self._version:
            return Decision.REFUSE
        return Decision.TAKE if now_s - self._since_s >= value.duration_s else Decision.WAIT


def now_s() -> float:
    """Seconds on a clock that never goes back, and counts while the machine sleeps where the system has such a clock."""
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return time.clock_gettime(clock)


class Lease:
    """A lease that is held. taken_over: the holder before has not given it back, and may still write."""

    def __init__(self, store: Store, value: Value, version: "UpdateVersion", taken_over: bool, since_s: float) -> None:
        self._store, self._value, self._version, self._since_s = store, value, version, since_s
        self.taken_over = taken_over

    @property
    def holder(self) -> str:
        """The unique name of this holder."""
        return self._value.holder

    @property
    def hour(self) -> str:
        """The hour in whose folders files may be created."""
        return self._value.hour

    def keep(self, within_s: float | None = None) -> None:
        """Renew it if the last renewal was longer ago than this, by default a third of its duration.

        Raises:
            LeaseLost: another ingest has it.
            OSError: the store cannot be reached; as long as nobody takes the lease over, a later renewal succeeds.
        """
        if now_s() - self._since_s > (self._value.duration_s / 3 if within_s is None else within_s):
            self._write(self._value)

    def confirm(self) -> None:
        """Renew it unless it surely is still one's own: a fifth of the duration is left. Errors as for `keep`."""
        self.keep(self._value.duration_s * 0.8)

    def enter(self, hour: str) -> None:
        """Name the hour of the files to come. Errors as for `keep`."""
        self._write(replace(self._value, hour=hour))

    def give_back(self) -> None:
        """Let a successor begin at once; only when no file may still be on its way. Errors as for `keep`."""
        self._write(replace(self._value, holder=""))

    def _write(self, value: Value) -> None:
        for _ in range(2):
            since_s = now_s()
            value = replace(value, count=self._value.count + 1)
            try:
                self._version = conditional.replace(self._store, PATH, value.encode(), self._version)
            except Conflict:
                self._read_own()
            else:
                self._value, self._since_s = value, since_s
                return
        raise OSError(f"{self._store.uri}/{PATH}: it changed twice while it was renewed")

    def _read_own(self) -> None:
        """After a conflict: learn the version of a renewal whose answer was lost."""
        found = _read(self._store)
        if found is None or found[0].holder != self.holder:
            by = f"on {found[0].host}" if found is not None and found[0].holder else "elsewhere"
            raise LeaseLost(f"another ingest, {by}, has taken over: this one had not renewed its lease in time")
        self._value, self._version = replace(self._value, count=found[0].count), found[1]


def acquire(store: Store, duration_s: float = LEASE_S, wait: Callable[[float], None] = time.sleep) -> Lease:
    """Take the lease of a part; waits for its duration if the holder before has not given it back.

    Raises:
        LeaseHeld: another ingest is alive.
        ValueError: the object is no lease, or the store does not keep conditions.
        OSError: the store cannot be reached, or refuses.
    """
    mine = Value(uuid.uuid4().hex, socket.gethostname(), float(duration_s))
    watch, told = Watch(), False
    while True:
        found, since_s = _read(store), now_s()
        value, version = found or (None, {})
        decision = watch.decide(value, version, since_s)
        if decision is Decision.REFUSE and value is not None:
            raise LeaseHeld(f"another ingest, on {value.host}, writes here")
        if decision is Decision.TAKE:
            new = mine if value is None else replace(mine, hour=value.hour, count=value.count + 1)
            try:
                written = (
                    conditional.create(store, PATH, new.encode())
                    if value is None
                    else conditional.replace(store, PATH, new.encode(), version)
                )
            except Conflict:
                continue
            _probe(store, new)
            return Lease(store, new, written, value is not None and bool(value.holder), since_s)
        if not told and value is not None:
            log.info(
                "lease.waiting", "takes over unless the holder renews it within its duration",
                host=value.host, duration_s=value.duration_s,
            )  # fmt: skip
            told = True
        assert value is not None
        wait(value.duration_s / POLLS)


def _probe(store: Store, value: Value) -> None:
    """Check that conditions count here: a store that ignores them would let two ingests overwrite each other."""
    unknown: UpdateVersion = {"e_tag": '"00000000000000000000000000000000"', "version": "1"}
    again = replace(value, count=value.count + 1).encode()
    with contextlib.suppress(Conflict):
        conditional.create(store, PATH, again)
        raise ValueError("this store ignores the condition If-None-Match of a write, which the lease needs")
    with contextlib.suppress(Conflict):
        conditional.replace(store, PATH, again, unknown)
        raise ValueError("this store ignores the condition If-Match of a write, which the lease needs")


def _read(store: Store) -> "tuple[Value, UpdateVersion] | None":
    found = conditional.read(store, PATH)
    if found is None:
        return None
    try:
        return Value.decode(found[0]), found[1]
    except ValueError as error:
        raise ValueError(f"{PATH} is no lease ({error}); delete it when no ingest writes here") from None
