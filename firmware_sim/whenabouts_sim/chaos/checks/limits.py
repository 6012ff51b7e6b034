"""Limits of queues while parts run, and what must be empty at the end: a count that does not come back to nothing leaks.

Looks into the product's own objects, at moments of virtual time.
"""

import contextlib
import sqlite3
from collections.abc import Iterable, Iterator

from whenabouts_cloud.ingest.bridge import Bridge
from whenabouts_cloud.landing.ranges import Ranges
from whenabouts_edge.agent.agent import Agent
from whenabouts_edge.readers import thread as reader_thread
from whenabouts_edge.readers.pending import PendingReading
from whenabouts_edge.store.checksum import checksum
from whenabouts_edge.store.gaps import Gap
from whenabouts_edge.uplink import outbox as uplink_outbox
from whenabouts_protocol.group_state import HEARTBEAT, KIND


def over_limits(name: str, agent: Agent) -> Iterator[str]:
    """Queues of an agent that hold more than they may."""
    outbox, spool, intake = agent._delivery.uplink.outbox, agent._spool, agent._intake
    on_way = sum(not taken for taken in outbox._on_way.values())
    landed = outbox._refused - outbox._unlanded.keys()
    for what, found, most in (
        ("messages on the way to the broker", on_way, uplink_outbox.MAX_IN_FLIGHT),
        ("refused messages that have landed and keep their place", len(landed), 0),
        ("messages that have not landed", len(outbox._unlanded), uplink_outbox.MAX_UNLANDED),
        ("bytes in the spool", spool.state.payload_bytes, spool.limit_bytes),
        ("readings between ports and spool", intake.waiting, reader_thread.MAX_WAITING),
    ):
        if found > most:
            yield f"{name} has {found} {what}, its limit is {most}"
    for text in counted_and_waiting(spool._db, intake._gaps.values()):
        yield f"{name} has {text}"


def counted_and_waiting(spool: sqlite3.Connection, gaps: Iterable[Gap]) -> Iterator[str]:
    """Readings that the next agent would both count as refused and send: count and rows are on the disk."""
    waited = [gap for gap in gaps if gap.rows]
    if not waited:
        return
    with contextlib.suppress(sqlite3.Error):  # its agent has ended
        counts = dict(spool.execute("SELECT stream, count FROM gap"))
        rows = {row for (row,) in spool.execute("SELECT row FROM waiting")}
        for gap in waited:
            both = rows.intersection(gap.rows) if counts.get(gap.stream) == gap.count else set()
            if both:
                yield f"{len(both)} readings of {gap.stream} that are counted as refused, and wait to be sent"


def left_at_the_end(agent: Agent) -> Iterator[str]:
    """What an agent that has ended in order forgets: it was stored nowhere."""
    for what, count in (
        ("readings that wait for UTC without a row", len(agent._time._unwritten)),
        ("readings between ports and spool", sum(map(_is_forgotten, agent._intake._buffer))),
    ):
        if count:
            yield f"{count} {what}"


def _is_forgotten(one: PendingReading) -> bool:
    """True unless it has a row, or is a clock heartbeat, which tells no event."""
    return one.kept is None and not (one.kind == KIND and one.attrs.get(HEARTBEAT))


def left_in_agent(agent: Agent) -> Iterator[str]:
    """What an agent still holds, for the moment at which all should have landed."""
    outbox, intake, state = agent._delivery.uplink.outbox, agent._intake, agent.spool_state
    for what, count in (
        ("readings in the spool", state.readings),
        ("bytes in the spool", state.payload_bytes),
        ("messages that have not landed", len(outbox._unlanded)),
        (
            "places of the intake that nobody gave back",
            reader_thread.MAX_WAITING - intake.waiting - intake._room._value,
        ),
        ("gap readings to store", int(intake.gap_open)),
    ):
        if count:
            yield f"{count} {what}"
    yield from left_rows(agent._spool._db)


def left_rows(spool: sqlite3.Connection) -> Iterator[str]:
    """Rows that the next agent would take for readings of its own; those of which a bit has changed it leaves alone."""
    try:
        for what, table in (("readings that wait for UTC", "waiting"), ("counts of refused readings", "gap")):
            count = sum(checksum(values) == crc for *values, crc in spool.execute(f"SELECT * FROM {table}"))
            if count:
                yield f"rows of {count} {what}"
    except sqlite3.Error as error:
        yield f"a spool that cannot be read: {error}"


def left_in_ingest(bridge: Bridge) -> Iterator[str]:
    """What an ingest still holds, for the moment at which all should have landed."""
    gateways = bridge._gateways
    named = sum(len(one.published) for waited in gateways._waited.values() for one in waited)
    for what, count in (
        ("readings that are not durable", bridge.waiting_readings),
        ("boots counted too much in heartbeats", gateways._boots - named),
        ("ranges of numbers in the ledger that are not joined", sum(map(_touching, _ranges(bridge)))),
    ):
        if count:
            yield f"{count} {what}"


def _ranges(bridge: Bridge) -> Iterator[Ranges]:
    for boots in bridge._ledger._landed.values():
        yield from boots.values()


def _touching(ranges: Ranges) -> int:
    """Ranges that begin where the one before ends: they are one, and a ledger of many such grows."""
    return sum(first <= last + 1 for last, first in zip(ranges.lasts, ranges.firsts[1:], strict=False))
