"""Documents of EPCIS: events in their envelope, as JSON."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from whenabouts_cloud.epcis.uris import CONTEXT
from whenabouts_cloud.epcis.zoned_times import written

EVENTS = 1000  # of a document, unless another number is wanted


def document(events: Iterable[dict[str, Any]], created_us: int) -> bytes:
    """A document of these events as JSON, with an event a line."""
    return "".join(pieces(events, created_us)).encode()


def pieces(events: Iterable[dict[str, Any]], created_us: int) -> Iterator[str]:
    """The text of a document, piece by piece, so that it needs no memory that grows with its events."""
    head = {"@context": list(CONTEXT), "type": "EPCISDocument", "schemaVersion": "2.0"}
    yield json.dumps(head | {"creationDate": written(created_us)})[:-1] + ', "epcisBody": {"eventList": ['
    between = "\n"
    for event in events:
        yield between + json.dumps(event)
        between = ",\n"
    yield "\n]}}\n"
