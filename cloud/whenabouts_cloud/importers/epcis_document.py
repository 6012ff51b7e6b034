"""Documents of EPCIS 2.0 in JSON-LD as readings: one for each object that an event observes.

The stamp of a reading is, of what the event has, the first of

    1. the interval of our extension (`epcis`), exact
    2. from the first startTime to the last endTime of its sensor metadata, if `eventTime` lies between them, widened both
       ways by the error that the user states: they are read from the same clock as `eventTime`
    3. `eventTime`, widened likewise

Objects are those of epcList, parentID, childEPCs, inputEPCList and outputEPCList. The key of a reading is the object's URI,
or what one of our URIs was made of. Its stream is the read point. `attrs` holds what else the event says.

No reading becomes of classes of objects and quantities (nobody can say which object was there), of an ObjectEvent with
action DELETE (the object ceased to exist), and of events that an errorDeclaration takes back. They go to the side output
with a reason, as do events with faults.

Identity: boot is a hash of all events, seq counts their objects, so the same events in another file or with another
`creationDate` are known. An event that also occurs in another list of events is not: a boot for each event would be a range
for each in the ledger, which keeps some thousands of a gateway. Pure; some 20 us an event beside the parsing.
"""

import json
import re
from collections.abc import Iterator, Mapping, Set
from hashlib import blake2b
from typing import Any, NamedTuple

from whenabouts_cloud.epcis.uris import VOCABULARY, key_in, stream_in
from whenabouts_cloud.epcis.zoned_times import TimeError, read
from whenabouts_cloud.importers.side_output import BadRow, NoLogError, SideOutput
from whenabouts_protocol import Reading

GATEWAY, NO_READ_POINT = "epcis", "epcis"  # names of the gateway, and of the stream of events without a read point
LISTS = ("epcList", "childEPCs", "inputEPCList", "outputEPCList")
QUANTITIES = ("quantityList", "childQuantityList", "inputQuantityList", "outputQuantityList")
KEPT = ("type", "eventID", "action", "bizStep", "disposition", "eventTimeZoneOffset")
CLOCK_STATES = ("free-running", "unbounded")
_CLASS = re.compile(r"urn:epc:(?:class|idpat):.*|https?://[^?#]*/(?:01|8006)/\d+(?:/10/[^/]*)?/?(?:[?#].*)?")


class NotEpcisError(NoLogError):
    """The file is no document of EPCIS 2.0 in JSON, or cannot be imported as it is."""


class _Found(NamedTuple):
    """An object of an event. role: the field that names it."""

    uri: Any
    role: str


def events_in(text: str) -> list[Any]:
    """The events of a document; names of our extension are put in full.

    Raises:
        NotEpcisError: it is no document.
    """
    document = _json(text)
    if not isinstance(document, dict) or document.get("type") not in ("EPCISDocument", "EPCISQueryDocument"):
        raise NotEpcisError("found JSON of another kind, expected an object with the type EPCISDocument")
    version = document.get("schemaVersion")
    if not isinstance(version, str) or version.split(".")[0] != "2":
        raise NotEpcisError(f"found schemaVersion {version!r:.40}, expected 2.0")
    body = document.get("epcisBody")
    if isinstance(body, dict) and isinstance(body.get("queryResults"), dict):
        body = body["queryResults"].get("resultsBody")
    events = body.get("eventList") if isinstance(body, dict) else None
    if not isinstance(events, list):
        raise NotEpcisError("found no eventList in epcisBody, expected one")
    return [_in_full(event, document.get("@context")) for event in events]


def taken_back_in(text: str) -> set[str]:
    """Ids of the events that a document takes back.

    Raises:
        NotEpcisError: it is no document.
    """
    if "errorDeclaration" not in text:
        return set()
    return {one["eventID"] for one in events_in(text) if _takes_back(one) and isinstance(one.get("eventID"), str)}


def read_epcis(
    text: str, error_us: int | None, site: str, now_us: int, taken_back: Set[str], seen: set[str]
) -> Iterator[Reading | SideOutput]:
    """Yield a reading for each object, and a side output for what is no reading; `line` is the number of the event, from 1.

    error_us: how far the times of events may be from the truth. now_us: the time of the import; nothing can have happened
    later. taken_back: ids of events that any of the files takes back. seen: ids of events that have become readings; grows.

    Raises:
        NotEpcisError: it is no document, or an event needs an error and none is stated.
    """
    events = events_in(text)
    boot = int.from_bytes(blake2b(json.dumps(events, sort_keys=True).encode(), digest_size=6).digest())
    seq = 0
    for number, event in enumerate(events, 1):
        objects = _objects(event) if isinstance(event, dict) else []
        first, seq = seq, seq + len(objects)
        row = json.dumps(event)
        try:
            _check(event, taken_back, seen)
            fields = _fields(event, number, error_us, now_us) if objects else {}
        except BadRow as error:
            yield SideOutput(number, error.reason, str(error), row)
            continue
        for place, found in enumerate(objects, first):
            try:
                key = _key(found.uri, event, len(objects))
                attrs = fields["attrs"] | {"role": found.role}
                made = Reading(site=site, gateway=GATEWAY, boot=boot, seq=place, key=key, **fields | {"attrs": attrs})
            except BadRow as error:
                yield SideOutput(number, error.reason, str(error), row)
            except ValueError as error:
                yield SideOutput(number, "object", str(error), row)
            else:
                if "eventID" in attrs:
                    seen.add(attrs["eventID"])
                yield made
        for name in QUANTITIES:
            for one in event.get(name) if isinstance(event.get(name), list) else []:
                yield SideOutput(
                    number, "class", f"found {json.dumps(one):.80} in {name}, a quantity of no single object", row
                )
        if not objects and not any(event.get(name) for name in QUANTITIES):
            yield SideOutput(number, "nothing", "found no object in it", row)


def _json(text: str) -> Any:
    if text.lstrip("\ufeff \t\r\n").startswith("<"):
        raise NotEpcisError("found XML, expected JSON: EPCIS 2.0 in JSON-LD; repositories and converters give both")
    try:
        return json.loads(text, parse_constant=_no_number)
    except RecursionError:
        raise NotEpcisError("found JSON that is nested too deeply, expected a document of EPCIS") from None
    except ValueError as error:
        raise NotEpcisError(f"found no JSON ({error}), expected a document of EPCIS 2.0") from None


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is no number of JSON")


def _in_full(event: Any, context: Any) -> Any:
    """The event with names of our extension in full, whatever prefix its context gives them."""
    if not isinstance(event, dict):
        return event
    listed = [x for one in (context, event.get("@context")) for x in (one if isinstance(one, list) else [one])]
    prefixes = {name for x in listed if isinstance(x, dict) for name, uri in x.items() if uri == VOCABULARY}
    full = {}
    for name, value in event.items():
        prefix, colon, local = name.partition(":")
        full[VOCABULARY + local if colon and prefix in prefixes else name] = value
    return full


def _takes_back(event: Any) -> bool:
    return isinstance(event, dict) and "errorDeclaration" in event


def _objects(event: Mapping[str, Any]) -> list[_Found]:
    found = [_Found(event["parentID"], "parentID")] if "parentID" in event else []
    for name in LISTS:
        found += [_Found(uri, name) for uri in event.get(name) or []] if isinstance(event.get(name), list) else []
    return found


def _check(event: Any, taken_back: Set[str], seen: set[str]) -> None:
    """Raise BadRow if nothing of the event is read."""
    if not isinstance(event, dict) or not isinstance(event.get("type"), str):
        raise BadRow("malformed", "found no type in it, expected such as ObjectEvent")
    name = event.get("eventID")
    if _takes_back(event):
        raise BadRow("declaration", f"takes back {name!r:.100}; what an earlier import has landed of it stays")
    if not isinstance(name, str):
        pass
    elif name in taken_back:
        raise BadRow("taken back", f"{name:.100} is taken back by an errorDeclaration")
    elif name in seen:
        raise BadRow("repeat", f"{name:.100} is an event before it in these files")
    if event["type"] == "ObjectEvent" and event.get("action") == "DELETE":
        raise BadRow("deleted", "an object ceased to exist, which observes none")


def _fields(event: Mapping[str, Any], number: int, error_us: int | None, now_us: int) -> dict[str, Any]:
    """Fields that the readings of an event share."""
    try:
        t_min, t_max = _interval(event, number, error_us)
    except TimeError as error:
        raise BadRow("time", str(error)) from None
    if t_min > now_us:
        raise BadRow("time", f"found {event['eventTime']}, expected none after this import")
    attrs = {name: event[name] for name in KEPT if isinstance(event.get(name), str)}
    places = {name: event[name].get("id") for name in ("readPoint", "bizLocation") if isinstance(event.get(name), dict)}
    attrs |= {name: uri for name, uri in places.items() if isinstance(uri, str)}
    visit, step = event.get(f"{VOCABULARY}visit"), event.get("bizStep")
    ends = {"arriving": ("tag", "enter"), "departing": ("absent", "leave")}
    kind, value = ends.get(step, ("tag", None)) if type(visit) is int and isinstance(step, str) else ("tag", None)
    if value is not None:
        attrs["visit"] = visit
    state = event.get(f"{VOCABULARY}clockState")
    return {
        "stream": stream_in(attrs["readPoint"]) if "readPoint" in attrs else NO_READ_POINT, "kind": kind, "value": value,
        "t_min": t_min, "t_max": t_max, "clock_state": state if state in CLOCK_STATES else "bounded", "attrs": attrs,
    }  # fmt: skip


def _interval(event: Mapping[str, Any], number: int, error_us: int | None) -> tuple[int, int]:
    time = read(event.get("eventTime"))
    ours = [event.get(VOCABULARY + name) for name in ("earliest", "latest")]
    if None not in ours:
        return _ordered(read(ours[0])[0], read(ours[1])[1])
    elements = event.get("sensorElementList")
    data = [x["sensorMetadata"] for x in elements if _has_metadata(x)] if isinstance(elements, list) else []
    spans = [(read(x["startTime"])[0], read(x["endTime"])[1]) for x in data if "startTime" in x and "endTime" in x]
    begin, end = min((one for one, _ in spans), default=time[0]), max((one for _, one in spans), default=time[1])
    if not (begin <= time[0] and time[1] <= end):
        begin, end = time
    if error_us is None:
        raise NotEpcisError(
            f"event {number}: found no whenabouts:earliest and latest in it, expected --error, how far its times may be "
            "from the truth"
        )
    return begin - error_us, end + error_us


def _has_metadata(element: Any) -> bool:
    return isinstance(element, dict) and isinstance(element.get("sensorMetadata"), dict)


def _ordered(begin: int, end: int) -> tuple[int, int]:
    if begin > end:
        raise TimeError(f"found an interval that ends {begin - end} us before it begins")
    return begin, end


def _key(uri: Any, event: Mapping[str, Any], objects: int) -> str:
    if not isinstance(uri, str):
        raise BadRow("object", f"found {uri!r:.40}, expected the URI of an object")
    if _CLASS.fullmatch(uri):
        raise BadRow("class", f"found {uri:.80}, a class of objects")
    raw = event.get(f"{VOCABULARY}tag")
    return key_in(raw if objects == 1 and isinstance(raw, str) else uri)
