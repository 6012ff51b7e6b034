"""Events of random rows: valid by GS1's schema, with the hashes of GS1's program, around the interval."""

from random import Random

import pytest

from support.epcis import rows
from support.epcis.gs1 import faults, hashes
from support.search import seeds
from whenabouts_cloud.epcis.document import document
from whenabouts_cloud.epcis.epcis_events import of_reading, of_result, places_of, taken_back
from whenabouts_cloud.epcis.uris import PREFIX, Names
from whenabouts_cloud.epcis.zoned_times import read


def random_event(rng):
    """(interval, event) of a row of any kind."""
    names = Names(rng.choice(["urn:whenabouts:", "https://id.acme.example/x/"]), rng.random() < 0.3)
    if rng.random() < 0.3:
        row = rows.landed(rng)
        return (row["t_min"], row["t_max"]), of_reading(row, names)
    row = rng.choice([rows.pair, rows.match])(rng)
    places = places_of(row)
    keys = {one.identity: rows.key(rng) for one in places}
    event = of_result(row, names, keys, frozenset({"near"}))
    interval = min(one.t_min for one in places), max(one.t_max for one in places)
    return interval, taken_back(event, rows.T_US) if rng.random() < 0.2 else event


@pytest.mark.parametrize("seed", seeds(40))
def test_events_of_any_row_are_valid_and_have_the_hash_of_gs1s_program(seed):
    """Reads, ends of visits, pairs, matches and those that are taken back, of EPCs of every kind and of other keys."""
    rng = Random(seed)
    made = [random_event(rng) for _ in range(60)]
    text = document([event for _, event in made], rows.T_US)
    assert faults(text) == []
    assert [event["eventID"] for _, event in made] == hashes(text)
    for (t_min, t_max), event in made:
        assert (read(event[f"{PREFIX}:earliest"]), read(event[f"{PREFIX}:latest"])) == ((t_min,) * 2, (t_max,) * 2)
        data = event["sensorElementList"][0]["sensorMetadata"]
        begin, time, end = (read(x)[0] for x in (data["startTime"], event["eventTime"], data["endTime"]))
        assert t_min - 1000 < begin <= t_min <= t_max <= end < t_max + 1000
        assert begin <= time <= end
        assert abs(2 * time - t_min - t_max) < 2000
