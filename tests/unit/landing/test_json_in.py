"""Values and attributes that no ingest has written: a foreign file must not end a job."""

import json

import pytest

from support.cep.landing import rule
from support.cloud.landing import reading, table
from support.latwin.states import definitely, reports, state
from whenabouts_cloud.cep.shard.views import runs_of
from whenabouts_cloud.jobs.engines.cep import CEP
from whenabouts_cloud.landing.scan import encoded
from whenabouts_cloud.landing.schema import json_in

DEEP = "[" * 100_000
NOT_JSON = ["NaN", "-Infinity", '{"a": NaN}', DEEP, '{"a":' * 100_000, "", "x", "'x'", "9" * 5000, "\ud800"]


@pytest.mark.parametrize("text", NOT_JSON, ids=range(len(NOT_JSON)))
def test_what_is_no_json_has_no_value(text):
    """Nor does null."""
    assert json_in(text) is None
    assert json_in(None) is None


def test_conditions_take_it_for_missing():
    """An attribute and a value that a condition reads."""
    odd = ["[]", "3", '{"rssi": [1], "antenna": {}}', '{"rssi": 1e999}', '{"rssi": NaN}', DEEP, None]
    rows = [reading("g0", n, "shelf/1", "k", 1, 1) | {"attrs": text, "value": text} for n, text in enumerate(odd)]
    readings = table(rows).cast(encoded(table(rows).schema.names))
    job = rule("conditions")
    [routed] = CEP.routed(job, CEP.readings([job], readings), 1)
    assert routed.rows["@rssi"].to_pylist() == pytest.approx([float("nan")] * len(odd), nan_ok=True)


def test_views_and_states_are_left_out():
    """Numbers of processes beyond any clock, attributes that are no map, values that are no value."""
    odd = [f'{{"$group": "x", "$view": 1, "$process": {text}}}' for text in ("1" * 30, "-1", "0.5", DEEP)]
    rows = [reading("g0", n, "s0/state", None, 1, 1, kind="state") | {"attrs": text} for n, text in enumerate(odd)]
    assert runs_of(table(rows)).num_rows == 0
    one = state(0, 0, (0, 0), 1, 1, True)
    attrs = json.loads(one["attrs"])
    job = definitely(2)
    for value in ([1], {"a": 1}, int("1" * 400)):
        [row] = reports(job, [one | {"attrs": json.dumps(attrs | {"other": value}), "value": "1"}]).to_pylist()
        assert row["values"] == "[1.0]"
