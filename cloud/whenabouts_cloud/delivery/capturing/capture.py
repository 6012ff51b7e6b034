"""Pairs and matches as events of EPCIS 2.0, to the capture interface of a repository, at least once.

    epcis:https://USER@HOST/PATH    epcis:http://...

PATH is where the repository takes documents, mostly `/capture`. A repeated event has the same `eventID`. What follows `#` is
for us and is never sent, as in `epcis:https://host/capture#authorization=TOKEN&landing=./landing`:

    authorization=NAME   environment variable with the value of the header Authorization, such as "Bearer ..."
    landing=URI          where keys of readings are looked up, for rules whose results have none of their own
    loads=RULE,RULE      rules whose first object contains the others: AggregationEvent
    base=URI             begins private names
    links                GS1 Digital Links instead of URNs

    document --POST--> 2xx without Location, or its job has succeeded       accepted
                       400 409 413 422, or its job has failed               refused: halved, until single events are
                       any other answer, no answer, a job without end       failure: the batch is repeated later

A single event that is refused is kept in OUT/_refused, and what follows is delivered; so is a result that can be no
event. But while nothing has been accepted since the start, a refusal is a failure too: then the address or an account
is more likely wrong than the event. A job that cannot be asked for counts as accepted, as 202 promises it. Documents of
a batch that were accepted before its failure are not sent again, unless this process ends. An event that the repository
has already is no failure, unless it takes another one back: that has the same id.
"""

import hashlib
import json
import os
import time
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import parse_qsl, quote, urljoin, urlsplit

from whenabouts_cloud.delivery.capturing.refused import Refused, keep
from whenabouts_cloud.delivery.capturing.result_events import Wording
from whenabouts_cloud.delivery.http_connection import MOST_QUOTED, Answer, HttpConnection, RefusedError
from whenabouts_cloud.delivery.published import Batch
from whenabouts_cloud.delivery.uri import TargetError, shown
from whenabouts_cloud.epcis.document import document
from whenabouts_cloud.epcis.epcis_events import Event
from whenabouts_cloud.epcis.uris import BASE, Names
from whenabouts_cloud.landing.files import DamagedFileError
from whenabouts_cloud.landing.store import Store
from whenabouts_protocol.logs import Log

log = Log(__name__)

UNITS = ("pairs", "matches")
OPTIONS = ("authorization", "landing", "loads", "base", "links")
MAX_BYTES = 1 << 20  # of a document that has several events
JOB_S, FIRST_LOOK_S, LONGEST_LOOK_S = 60.0, 0.05, 5.0  # a job is looked after for so long, at growing intervals
_KNOWN, _OF_CONTENT = 409, (400, 409, 413, 422)


class DocumentRefusedError(Exception):
    """The repository does not want a document for what is in it. known: as it has such an event already."""

    def __init__(self, reason: str, known: bool) -> None:
        super().__init__(reason)
        self.known = known


class Capture:
    """One capture interface."""

    def __init__(self, uri: str, unit: str) -> None:
        if unit not in UNITS:
            raise TargetError(
                f"{shown(uri)}: found it for {unit}, expected pairs or matches, which EPCIS has events for"
            )
        inner, _, after = uri.partition(":")[2].partition("#")
        options = dict(parse_qsl(after, keep_blank_values=True))
        if unknown := sorted(set(options) - set(OPTIONS)):
            raise TargetError(f"{shown(uri)}: found {unknown[0]} after #, expected one of {', '.join(OPTIONS)}")
        self._shown = shown(uri)
        self._server = HttpConnection(inner, {"Accept": "application/json", **_authorization(options)})
        names = Names(options.get("base") or BASE, "links" in options)
        self._wording = Wording(names, _landing(options), frozenset(options.get("loads", "").split(",")) - {""})
        self._accepted = False  # a document since the start
        # Documents of the batch that is being delivered, by `_digest`: paths of jobs that may still run, and accepted ones.
        self._running, self._done = dict[bytes, str](), set[bytes]()

    def deliver(self, batch: Batch) -> int:
        sent, unfit, refused = 0, list[Refused](), list[Refused]()
        for rows in batch.parts():
            sent += self._send(self._events(rows, batch, unfit), refused)
        if refused and not self._accepted:
            raise RefusedError(f"found no event that is accepted since the start: {refused[-1].reason}")
        if aside := unfit + refused:
            file = keep(batch.out, batch.number, self._shown, aside)
            text = f"{len(aside)} events are refused; kept in {file}, what follows is delivered"
            log.error("delivery.refused", text, target=self._shown, batch=batch.number, error=aside[0].reason)
        self._running.clear()
        self._done.clear()
        return sent

    def close(self) -> None:
        self._server.close()

    def _events(self, rows: list[dict[str, Any]], batch: Batch, unfit: list[Refused]) -> list[Event]:
        """The events of results in their order, without those that can be none.

        Raises:
            DamagedFileError: a key may be in a file of the landing that cannot be read; events would have other ids.
        """
        events, problems = list[Event](), list[str]()
        for row, event in self._wording.events(rows, batch.out, batch.number, time.time_ns() // 1000, problems):
            if problems:
                raise DamagedFileError(
                    f"landing: {problems[0]}; put it back from a copy, or delete it and live without"
                )
            if isinstance(event, str):
                unfit.append(Refused(row, event))
            else:
                events.append(event)
        return events

    def _send(self, events: Sequence[Event], refused: list[Refused]) -> int:
        """Send events as one document, or as several if it is too long or refused; return how many were accepted."""
        if not events:
            return 0
        body = document(events, time.time_ns() // 1000)
        if len(events) == 1 or len(body) <= MAX_BYTES:
            try:
                self._capture(events, body)
                self._accepted = True
                return len(events)
            except DocumentRefusedError as error:
                if error.known and len(events) == 1 and "errorDeclaration" not in events[0]:
                    self._accepted = True
                    return 1
                if len(events) == 1:
                    refused.append(Refused(events[0], str(error)))
                    return 0
        middle = len(events) // 2
        return self._send(events[:middle], refused) + self._send(events[middle:], refused)

    def _capture(self, events: Sequence[Event], body: bytes) -> None:
        """Send a document and wait for its job, of what an earlier attempt has left undone.

        Raises:
            DocumentRefusedError: the repository does not want it.
            RefusedError: it has given another answer.
        """
        name = _digest(events)
        if name in self._done:
            return
        path = self._running.get(name)
        if path is None:
            answer = self._server.ask("POST", self._server.path, body, {"Content-Type": "application/json"})
            if answer.status in _OF_CONTENT:
                raise DocumentRefusedError(str(answer.error()), answer.status == _KNOWN)
            if not answer.succeeded:
                raise answer.error()
            path = _path(answer.location, self._server.path)
        if path is not None:
            self._running[name] = path
            try:
                self._wait(path)
            except DocumentRefusedError:
                del self._running[name]
                raise
        self._running.pop(name, None)
        self._done.add(name)

    def _wait(self, path: str) -> None:
        """Wait until a job has ended."""
        for pause_s in _pauses():
            answer = self._server.ask("GET", path)
            if answer.status >= 500 or answer.status == 429:
                raise answer.error()
            job = _job(answer)
            if job is None or not job.get("running"):
                break
            time.sleep(pause_s)
        else:
            raise RefusedError(f"found a capture job that still runs after {JOB_S:.0f} s")
        if job is not None and job.get("success") is False:
            said = json.dumps(job.get("errors"))
            known = "AlreadyExists" in said or "Duplicate" in said
            raise DocumentRefusedError(f"found a capture job that has failed: {said[:MOST_QUOTED]}", known)


def _job(answer: Answer) -> dict[str, Any] | None:
    """What a repository says about a job; None if it says nothing that is one."""
    try:
        job = json.loads(answer.body) if answer.succeeded else None
    except (ValueError, RecursionError):
        job = None
    return job if isinstance(job, dict) and isinstance(job.get("running"), bool) else None


def _digest(events: Sequence[Event]) -> bytes:
    """What a document of these events is known by; the time at which it is made is no part of it."""
    ids = "".join(f"{one['eventID']} {'errorDeclaration' in one}\n" for one in events)
    return hashlib.blake2b(ids.encode(), digest_size=16).digest()


def _path(location: str | None, asked: str) -> str | None:
    """The path of a job on the server that was asked: another host in it is not trusted, and often an inner name.

    A location may be relative to the path that was asked, and have characters that no request may have.
    """
    if not location:
        return None
    try:
        parts = urlsplit(urljoin(asked, location))
    except ValueError:
        return None
    path = parts.path + (f"?{parts.query}" if parts.query else "")
    # Headers are read as Latin-1, whose bytes are those that were sent.
    return quote(path.encode("latin-1", "replace"), safe="/%?:@!$&'()*+,;=~") if path.startswith("/") else None


def _pauses() -> Iterator[float]:
    """Seconds between looks at a job, JOB_S in all."""
    spent_s, pause_s = 0.0, FIRST_LOOK_S
    while spent_s < JOB_S:
        yield pause_s
        spent_s, pause_s = spent_s + pause_s, min(LONGEST_LOOK_S, 2 * pause_s)


def _authorization(options: dict[str, str]) -> dict[str, str]:
    name = options.get("authorization")
    if name is None:
        return {}
    value = os.environ.get(name, "").strip()
    if not value or not value.isprintable() or not value.isascii():
        raise TargetError(
            f"authorization: found no header in the environment variable {name}, expected such as Bearer ..."
        )
    return {"Authorization": value}


def _landing(options: dict[str, str]) -> Store | None:
    if "landing" not in options:
        return None
    try:
        landing = Store.at(options["landing"])
    except (ValueError, OSError) as error:
        raise TargetError(f"landing: {error}") from None
    if not landing.exists():
        raise TargetError(f"landing: found nothing at {landing.uri}, expected the readings that the rules are about")
    return landing
