"""Documents of EPCIS in a folder that exports add to: each event is in one of them.

The documents themselves are what the folder is known by; a line of one is an event (`epcis.document`). All of them are read
before the first one is written: some 20 us an event, and 150 bytes of memory.
"""

import hashlib
import itertools
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from whenabouts_cloud.epcis.document import document
from whenabouts_cloud.epcis.epcis_events import Event
from whenabouts_cloud.landing.store import Store


@dataclass
class Written:
    """How many events were met, how many of them are new, and the documents that these are in."""

    met: int = 0
    new: int = 0
    documents: int = 0

    def __str__(self) -> str:
        return f"{self.met} events, {self.new} of them new, in {self.documents} documents"


def add(out: Store, events: Iterable[Event], most: int, now_us: int) -> Written:
    """Write the events that are in no document of the folder, at most so many in each.

    Raises:
        OSError: the folder cannot be read or written; the documents before that stay, and the next call completes them.
    """
    done, known = Written(), set(_known(out))
    fresh = _fresh(events, known, done)
    while some := list(itertools.islice(fresh, most)):
        out.write(f"epcis-{_name(some)}.json", document(some, now_us))
        done.documents += 1
        done.new += len(some)
    return done


def _fresh(events: Iterable[Event], known: set[bytes], done: Written) -> Iterator[Event]:
    for event in events:
        done.met += 1
        digest = _digest(event)
        if digest not in known:
            known.add(digest)
            yield event


def _known(out: Store) -> Iterator[bytes]:
    """Digests of the events in the documents. A line that is no event is passed over: its event is then written again."""
    for name in sorted(one.name for one in out.entries()):
        if not (name.startswith("epcis-") and name.endswith(".json")):
            continue
        for line in out.read(name).splitlines():
            try:
                event = json.loads(line.removesuffix(b","))
            except (ValueError, RecursionError):
                continue
            if isinstance(event, dict) and "eventID" in event:
                yield _digest(event)


def _digest(event: Event) -> bytes:
    """What an event is known by: one that takes another back has its id."""
    return hashlib.blake2b(f"{event['eventID']} {'errorDeclaration' in event}".encode(), digest_size=16).digest()


def _name(events: Iterable[Event]) -> str:
    return hashlib.blake2b(b"".join(map(_digest, events)), digest_size=8).hexdigest()
