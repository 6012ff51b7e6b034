"""A job's counts by rule, the state of its shards, and both as metrics (`whenabouts_cloud.jobs.metrics`)."""

import pytest

from whenabouts_cloud.jobs.metrics import GONE, MOST_STREAMS, Tally, metrics
from whenabouts_cloud.metrics_file import MetricsFile

NONE = Tally("matches", "matches", {"late": "", "retracted": "", "ungrouped": ""})
FIRST = {
    "shard": 0, "rule": "r", "readings": 5, "repeats": 1, "matches": 2, "late": 1, "ungrouped": 3, "rows_kept": 7,
    "frontier_us": 9_000_000, "streams_us": {"a": 9_000_000, "b": 3_000_000}, "silent": ["s/g1"], "side_output": 1,
}  # fmt: skip
SECOND = FIRST | {"shard": 1, "rows_kept": 2, "streams_us": {"a": 8_000_000}, "silent": ["s/g1", "s/g2"]}


@pytest.fixture
def samples(tmp_path):
    """Gives the samples of these tallies by name, without the prefix, and labels."""

    def read(*tallies, now_us=10_000_000):
        MetricsFile(tmp_path / "m.prom").write(metrics(tallies, now_us))
        lines = [line for line in (tmp_path / "m.prom").read_text().splitlines() if not line.startswith("#")]
        return {name.removeprefix("whenabouts_job_"): float(x) for name, x in (line.rsplit(" ", 1) for line in lines)}

    return read


def test_counts_add_up_over_batches_and_shards_and_states_are_the_last(samples):
    """A shard without a row in a batch keeps its state: its kept rows still count."""
    values = samples(NONE.after([FIRST, SECOND], 0.5).after([FIRST | {"rows_kept": 4}], 0.25))
    assert values['readings_total{rule="r"}'] == 15
    assert values['results_total{kind="matches",rule="r"}'] == 6
    assert values['late_total{rule="r"}'] == values['side_output_total{rule="r"}'] == 3
    assert values['irregular_total{kind="ungrouped",rule="r"}'] == 9
    assert values['rows_kept{rule="r"}'] == 4 + 2
    assert values['silent_gateways{rule="r"}'] == 2
    assert values['batches_total{output="matches"}'] == 2
    assert values['batch_seconds{output="matches"}'] == 0.25


def test_the_lag_of_a_stream_is_that_of_the_shard_that_is_furthest_behind(samples):
    """A stream of which nothing is known has none."""
    values = samples(NONE.after([FIRST, SECOND], 0.5), now_us=10_000_000)
    lags = {name: value for name, value in values.items() if name.startswith("lag")}
    assert lags == {'lag_seconds{rule="r",stream="a"}': 2.0, 'lag_seconds{rule="r",stream="b"}': 7.0}


def test_results_that_were_retracted_are_one_metric_for_all_engines(samples):
    """However the engine calls them."""
    verdicts = Tally("verdicts/v", "verdicts", {}).after([{"shard": 0, "rule": "v", "retracted": 2}], 1.0)
    values = samples(verdicts, NONE.after([FIRST | {"retracted": 3}], 1.0))
    assert (values['retracted_total{rule="v"}'], values['retracted_total{rule="r"}']) == (2, 3)
    assert 'irregular_total{kind="retracted",rule="r"}' not in values


def test_of_more_streams_than_samples_those_that_are_furthest_behind_have_one(samples):
    """A rule file of any size makes no larger part of the file."""
    streams = {f"s{n}": n for n in range(MOST_STREAMS + 5)}
    values = samples(NONE.after([FIRST | {"streams_us": streams}], 1.0))
    lags = [name for name in values if name.startswith("lag")]
    assert len(lags) == MOST_STREAMS
    assert 'lag_seconds{rule="r",stream="s0"}' in lags
    assert not any(f'"s{MOST_STREAMS}"' in name for name in lags)


def test_a_restarted_query_knows_no_shard_and_merges_rules_that_are_gone(samples):
    """The total stays; a rule that was just added counts from 0."""
    tally = NONE.after([FIRST, SECOND | {"rule": "old"}], 1.0).restarted({"r", "new"})
    values = samples(tally)
    assert values['readings_total{rule="new"}'] == 0
    assert values['readings_total{rule="r"}'] == values[f'readings_total{{rule="{GONE}"}}'] == 5
    assert tally.restarted({"new"}).total()["readings"] == tally.total()["readings"] == 10
    assert not any(name.startswith(("rows_kept", "lag", "silent")) for name in values)
