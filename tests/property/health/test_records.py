"""Health records come back from their lines as they were; any bytes are a record with all its keys, or none."""

import json

from hypothesis import given
from hypothesis import strategies as st

from property import strategies as some
from whenabouts_cloud.health import records
from whenabouts_cloud.health.records import LAST_US, TYPES, hour_of, line_of, record_in

TIMES = st.integers(0, LAST_US)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
KEYS = sorted({name for fields in records._FIELDS.values() for name in fields} - {"at_us"})
OBJECTS = st.fixed_dictionaries(
    {"type": st.sampled_from(TYPES) | JSON, "at_us": TIMES | JSON}, optional=dict.fromkeys(KEYS, JSON) | {"more": JSON}
)


@given(some.heartbeats, some.births, some.statuses, TIMES)
def test_records_of_messages_come_back(heartbeat, birth, status, at_us):
    """Every field of the message, in one line."""
    for record in (
        records.heartbeat(heartbeat, at_us), records.birth(birth, at_us), records.status(status, at_us),
        records.ingest("a", at_us, {"landed": 1}, {}, True),
    ):  # fmt: skip
        line = line_of(record)
        assert line.index(b"\n") == len(line) - 1
        assert record_in(line) == record


@given(
    OBJECTS.map(lambda value: json.dumps(value).encode())
    | st.binary(max_size=60)
    | JSON.map(lambda v: json.dumps(v).encode())
)
def test_any_line_is_a_record_with_all_keys_or_none(line):
    """Whatever a file holds; what is found can be written and read again."""
    record = record_in(line)
    if record is not None:
        assert set(record) == {"type", *records._FIELDS[record["type"]]}
        assert 0 <= record["at_us"] <= LAST_US
        assert record_in(json.dumps(record).encode()) == record


@given(st.integers())
def test_every_time_has_an_hour(at_us):
    """Also one that no calendar has; hours are in the order of times."""
    assert len(hour_of(at_us)) == len("2026-01-31T17")
    assert hour_of(at_us) <= hour_of(at_us + 3_600_000_000)
