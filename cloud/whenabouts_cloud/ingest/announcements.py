"""Births and heartbeats of gateways, and the time before which all readings of a gateway have landed.

A gateway's watermark counts only when every number that its heartbeat named has landed. Memory is bounded for each gateway
and in all.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from whenabouts_cloud.frontier.times import INT64_MIN
from whenabouts_cloud.ingest.ledger import Ledger, ledger_name
from whenabouts_protocol import Heartbeat

MAX_GATEWAYS = 100_000  # whose births and frontiers are remembered
MAX_STREAM_CHARS = 16 << 10  # of the names of a gateway's streams: each row of a frontier file holds them
MAX_ALL_STREAM_CHARS = 16 << 20
NAME_CHARS = 100  # what a name costs beside its text
MAX_ALL_BOOTS = 200_000  # named in the heartbeats that are waited for

Gateway = tuple[str, str]  # site, gateway


class OverBudget(Exception):
    """A gateway, or all together, use more than they may; the message changes nothing."""


@dataclass(frozen=True, slots=True)
class _Waited:
    """A watermark that counts when these numbers have landed."""

    frontier_us: int | None
    boot: int
    published: dict[int, tuple[int, int]]


class Gateways:
    """What gateways have said about themselves; `frontiers` has the frontier of each, us since 1970 UTC.

    may_publish: whether a gateway may publish a stream, now: frontiers name no others.
    """

    def __init__(self, ledger: Ledger, may_publish: Callable[[Gateway, str], bool]) -> None:
        self._ledger, self._may_publish = ledger, may_publish
        self._streams: dict[Gateway, list[str]] = {}
        self._waited: dict[Gateway, list[_Waited]] = {}  # the one waited for, and the newest
        self._newest: dict[Gateway, Heartbeat] = {}
        self._chars = self._boots = 0
        self.frontiers: dict[Gateway, int] = {}

    def born(self, origin: Gateway, streams: list[str]) -> None:
        """Note the streams of a gateway, in place of earlier ones; also those that it may not publish, now.

        Raises:
            OverBudget: their names are too long, or there are too many gateways.
        """
        chars = _chars(streams)
        more = chars - _chars(self._streams.get(origin, ()))
        if chars > MAX_STREAM_CHARS:
            raise OverBudget(
                f"found names of streams that take {chars} characters, expected at most {MAX_STREAM_CHARS}"
            )
        if (origin not in self._streams and len(self._streams) >= MAX_GATEWAYS) or (
            more > 0 and self._chars + more > MAX_ALL_STREAM_CHARS
        ):
            raise OverBudget("found more gateways and names of streams than all together may have")
        self._chars += more
        self._streams[origin] = streams

    def heard(self, origin: Gateway, heartbeat: Heartbeat, now_us: int) -> Heartbeat | None:
        """Note a heartbeat, with its watermark cut at the present; return the one before it.

        Raises:
            OverBudget: there are too many gateways, or boots in all heartbeats.
        """
        kept = self._waited.get(origin, [])
        waited = [*kept[:1], _Waited(_not_after(heartbeat.frontier_us, now_us), heartbeat.boot, heartbeat.published)]
        more = sum(len(one.published) for one in waited) - sum(len(one.published) for one in kept)
        if (not kept and len(self._waited) >= MAX_GATEWAYS) or (more > 0 and self._boots + more > MAX_ALL_BOOTS):
            raise OverBudget("found more gateways and boots in heartbeats than all together may have")
        self._boots += more
        self._waited[origin] = waited
        before = self._newest.get(origin)
        self._newest[origin] = heartbeat
        return before

    def first_kept(self, origin: Gateway, boot: int) -> int:
        """The lowest number of a boot that the gateway still keeps, by its newest heartbeat; 0 if it named none."""
        newest = self._newest.get(origin)
        return 0 if newest is None else newest.published.get(boot, (0, 0))[0]

    def moved(self, now_us: int) -> Iterator[dict[str, Any]]:
        """Yield a row of a frontier file for each gateway whose frontier has moved."""
        for origin, waited in self._waited.items():
            one = self._fulfilled(origin, waited)
            if one is None or one.frontier_us is None:
                continue
            if one.frontier_us > self.frontiers.get(origin, INT64_MIN):
                streams = [stream for stream in self._streams[origin] if self._may_publish(origin, stream)]
                yield {"site": origin[0], "gateway": origin[1], "frontier_us": one.frontier_us, "boot": one.boot,
                       "streams": streams, "landed_us": now_us}  # fmt: skip

    def _fulfilled(self, origin: Gateway, waited: list[_Waited]) -> _Waited | None:
        """The newest heartbeat whose numbers have all landed; None without one or without a birth.

        A heartbeat may overtake earlier readings. During a backlog the newest heartbeat may never be fulfilled in time, so
        one older heartbeat is kept until it is fulfilled.
        """
        if origin not in self._streams:
            return None
        name = ledger_name(*origin)
        for at in reversed(range(len(waited))):
            # Numbers before the first that it keeps were confirmed by the cloud, here or in an earlier landing.
            if all(
                self._ledger.reach(name, boot, first) >= last for boot, (first, last) in waited[at].published.items()
            ):
                fulfilled = waited[at]
                self._boots -= sum(len(one.published) for one in waited[:-1])
                del waited[:-1]  # wait for the newest next
                return fulfilled
        return None


def _not_after(frontier_us: int | None, now_us: int) -> int | None:
    """Cut a watermark at the present: one gateway with a clock ahead would make all others late forever."""
    return None if frontier_us is None else min(frontier_us, now_us)


def _chars(streams: "list[str] | tuple[()]") -> int:
    return sum(NAME_CHARS + len(stream) for stream in streams)
