"""Events of EPCIS from rows of the landing and of results. Pure; some 0.3 ms a reading, 0.6 ms a match."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from whenabouts_cloud.epcis.event_hash import event_hash
from whenabouts_cloud.epcis.uris import PREFIX, Names, Thing
from whenabouts_cloud.epcis.zoned_times import hashable, written
from whenabouts_cloud.landing.schema import json_in

Event = dict[str, Any]
Identity = tuple[str, str, int, int]  # site, gateway, boot, seq
Keys = Mapping[Identity, str | None]
_STEP_OF = {
    ("tag", "enter"): "arriving",
    ("absent", "leave"): "departing",
}  # by kind and value of a reading with a visit


class NoEventError(ValueError):
    """A row is no event of EPCIS; the text says why in a few words."""


class Place(NamedTuple):
    """A reading that a result is made of."""

    site: str
    gateway: str
    boot: int
    seq: int
    stream: str
    t_min: int
    t_max: int

    @property
    def identity(self) -> Identity:
        return self.site, self.gateway, self.boot, self.seq


def of_reading(row: Mapping[str, Any], names: Names) -> Event:
    """The event of a row of the landing.

    Raises:
        NoEventError: it is no observation of an object.
        TimeError: its stamp is outside the calendar.
    """
    attrs = json_in(row["attrs"])
    visit = attrs.get("visit") if isinstance(attrs, dict) else None
    step = _STEP_OF.get((row["kind"], json_in(row["value"]))) if isinstance(visit, int) else None
    if row["key"] is None:
        raise NoEventError("no key")
    if row["kind"] != "tag" and step is None:
        raise NoEventError(f"kind {row['kind']}")
    place = _place(row)
    more: Event = {"clockState": row["clock_state"]} if row["clock_state"] != "bounded" else {}
    if step is not None:
        more["visit"] = visit
    return _event("ObjectEvent", [names.thing(row["key"])], [place], names, step, more, step != "departing")


def places_of(row: Mapping[str, Any]) -> list[Place]:
    """The readings of a pair or a match, in the order of the rule."""
    if "events" in row:
        return [_place(one) for one in row["events"]]
    return [_place(row, f"{side}_") for side in "ab" if row[f"{side}_site"] is not None]


def of_result(
    row: Mapping[str, Any],
    names: Names,
    keys: Keys,
    loads: frozenset[str] = frozenset(),
    probability: float | None = None,
) -> Event:
    """The event of a pair or a match. keys: of readings, for a row without a key; without one a reading names no object.

    loads: rules whose first object contains the others. probability: of the match that a row takes back.

    Raises:
        NoEventError: it has no readings.
        TimeError: a stamp is outside the calendar.
    """
    places = places_of(row)
    if not places:
        raise NoEventError("no readings")
    found = [row["key"]] if row["key"] is not None else [keys.get(one.identity) for one in places]
    things = list({thing.uri: thing for key in found if key is not None for thing in [names.thing(key)]}.values())
    kind = "ObjectEvent"
    if len(things) > 1:
        kind = "AggregationEvent" if row["rule"] in loads else "AssociationEvent"
    chance = row["probability"] if probability is None else probability
    more: Event = {"result": names.result(row["result_id"]), "rule": names.rule(row["rule"])}
    if chance is not None:
        more["probability"] = chance
    return _event(kind, things, places, names, None, more, True)


def taken_back(event: Event, declared_us: int) -> Event:
    """The event with the declaration that it did not occur. It has the same id, and no event replaces it."""
    return event | {"errorDeclaration": {"declarationTime": written(declared_us), "reason": "did_not_occur"}}


def _place(row: Mapping[str, Any], prefix: str = "") -> Place:
    return Place(*(row[prefix + name] for name in Place._fields))


def _event(
    kind: str,
    things: Sequence[Thing],
    places: Sequence[Place],
    names: Names,
    step: str | None,
    more: Event,
    stays: bool,
) -> Event:
    """stays: the objects are at the site afterwards, as far as this event knows."""
    t_min, t_max = min(one.t_min for one in places), max(one.t_max for one in places)
    points = list(dict.fromkeys(names.read_point(one.site, one.gateway, one.stream) for one in places))
    sites = list({names.site(one.site) for one in places})
    event: Event = {"type": kind, "eventID": ""}
    middle = max(hashable((t_min + t_max) // 2, False), hashable(t_min, False))
    event |= {"eventTime": written(middle), "eventTimeZoneOffset": "+00:00"}
    if kind == "ObjectEvent":
        event["epcList"] = [one.uri for one in things]
    else:
        event |= {"parentID": things[0].uri, "childEPCs": [one.uri for one in things[1:]]}
    event["action"] = "OBSERVE"
    if step is not None:
        event["bizStep"] = step
    if len(points) == 1:
        event["readPoint"] = {"id": points[0].uri}
    if len(sites) == 1 and stays:
        event["bizLocation"] = {"id": sites[0].uri}
    event["sensorElementList"] = _sensors(places, (t_min, t_max), names, more.get("result"))
    more = {"earliest": written(t_min), "latest": written(t_max)} | more
    if len(things) == 1 and things[0].raw is not None:
        more["tag"] = things[0].raw
    event |= {f"{PREFIX}:{name}": x for name, x in more.items()}
    event["eventID"] = event_hash(event, {one.uri: one.canonical for one in (*things, *points, *sites)})
    return event


def _sensors(places: Sequence[Place], interval: tuple[int, int], names: Names, result: str | None) -> list[Event]:
    """The interval of a result, and those of its readings."""
    elements = [] if result is None else [_sensor(interval, None, "Result", result)]
    for one in places:
        device = names.read_point(one.site, one.gateway, one.stream).uri
        elements.append(_sensor((one.t_min, one.t_max), device, "Reading", names.reading(*one.identity)))
    return elements


def _sensor(interval: tuple[int, int], device: str | None, kind: str, uri: str) -> Event:
    data = {"startTime": _written(interval[0], False), "endTime": _written(interval[1], True)}
    if device is not None:
        data["deviceID"] = device
    return {"sensorMetadata": data, "sensorReport": [{"type": f"{PREFIX}:{kind}", "uriValue": uri}]}


def _written(us: int, up: bool) -> str:
    return written(hashable(us, up))


def unnamed(rows: Iterable[Mapping[str, Any]]) -> list[Place]:
    """The readings of rows without a key: those whose objects only the landing knows."""
    return [place for row in rows if row["key"] is None for place in places_of(row)]
