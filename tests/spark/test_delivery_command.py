"""Jobs that deliver their results while they run, to real servers (`whenabouts_cloud.jobs.running_work`)."""

from collections import Counter

import psycopg

from support.cep.landing import as_matches, expected, random_readings
from support.cloud.landing import land
from support.cloud.target_servers import http_server, postgres
from whenabouts_cloud.rules import load_rules

RULES = """
STREAM shelf FROM "shelf/#"   DELAY 1 h LENGTH 0 us .. 20 ms
STREAM till  FROM "till/tags" DELAY 1 h LENGTH 0 us .. 20 ms
STREAM exit  FROM "exit/tags" DELAY 1 h LENGTH 0 us .. 20 ms
RULE near CORRELATE shelf AS a, exit AS b WHERE |@a - @b| <= 100 ms OVER 80 % AND a.key = b.key
RULE unpaid SEQ(shelf a, !till c, exit e) WITHIN 300 ms PER key
"""


def test_once_delivers_to_targets_of_the_command_and_of_a_rule(run_once, tmp_path):
    """Both units to one database; the matches to a webhook too, and none a second time. Metrics count them."""
    import pyarrow.parquet as pq

    (tmp_path / "landing").mkdir()
    land(tmp_path / "landing", random_readings(seed=8, count=160), 0)
    with postgres() as database, http_server() as hook:
        (tmp_path / "rule.wa").write_text(f'{RULES}  INTO webhook "{hook.uri}"\n', encoding="utf-8")
        for _ in range(2):
            metrics = tmp_path / "m.prom"
            done = run_once(tmp_path, "run", "--to", database.uri, "--metrics-file", str(metrics))
            assert done.code == 0, "\n".join(done.err)
        with psycopg.connect(database.uri) as connection:
            rows = connection.execute("SELECT result_id, rule FROM whenabouts_matches").fetchall()
            rows += connection.execute("SELECT result_id, rule FROM whenabouts_pairs").fetchall()
        hooked = [row for _, some in hook.requests for row in some]
    out = tmp_path / "out"
    matches, pairs = pq.read_table(out / "matches"), pq.read_table(out / "pairs" / "near")
    assert as_matches(matches) == expected(
        load_rules(tmp_path / "rule.wa").cep_rules[0], random_readings(seed=8, count=160)
    )
    assert Counter(rule for _, rule in rows) == {"unpaid": matches.num_rows, "near": pairs.num_rows}
    assert min(matches.num_rows, pairs.num_rows) > 1
    assert sorted(row["result_id"] for row in hooked) == sorted(matches["result_id"].to_pylist())
    assert 'whenabouts_job_delivery_waiting{output="matches"' in metrics.read_text()


def test_once_fails_if_a_target_lacks_results(run_once, tmp_path, monkeypatch):
    """The exit code is 1, the result stays, and the text names the target without its password."""
    monkeypatch.setattr("whenabouts_cloud.delivery.deliveries.GIVEN_UP_S", 0.1)
    (tmp_path / "landing").mkdir()
    land(tmp_path / "landing", random_readings(seed=8, count=160), 0)
    (tmp_path / "rule.wa").write_text(RULES, encoding="utf-8")
    done = run_once(tmp_path, "cep", "--rule-name", "unpaid", "--to", "postgresql://me:secret@127.0.0.1:1/x")
    assert done.code == 1
    text = "\n".join(done.err)
    assert "postgresql://***@127.0.0.1:1/x: found 1 batches of" in text
    assert "secret" not in text
    assert (tmp_path / "out" / "batch=00000000").is_dir()
