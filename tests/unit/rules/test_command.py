"""`check` and `explain` as commands: exit codes, what people and machines read.

The modules are `whenabouts_cloud.commands.rule_file` and, for the lines, `whenabouts_cloud.rules.explain_text`.
"""

import json

import pytest
from click.testing import CliRunner

from whenabouts_cloud.commands.check import check
from whenabouts_cloud.commands.correlate import correlate
from whenabouts_cloud.commands.explain import explain
from whenabouts_protocol.messages.compiled_rule import decode_rules

GOOD = """
STREAM dock  FROM "dock/tags" DELAY 2 s LENGTH 20 ms .. 300 ms
STREAM shelf FROM "shelf/+"   DELAY 1 s LENGTH 20 ms .. 300 ms
RULE handover
  CORRELATE dock AS a, shelf AS b
  WHERE |@a - @b| <= 500 ms OVER 80 % AND a.key = b.key
RULE far AT CLOUD
  CORRELATE dock AS a, shelf AS b
  WHERE @a + 1 s >= @b WITHIN 1 h OVER 1
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "rules.wa"
    path.write_text(GOOD)
    return path


def run(command, *arguments):
    return CliRunner().invoke(command, [str(a) for a in arguments])


def test_a_fine_file_ends_with_0(file):
    """A line for people, names for machines."""
    done = run(check, file)
    assert (done.exit_code, done.stdout) == (0, f"{file}: fine, 2 streams and 2 rules\n")
    done = run(check, file, "--json")
    assert json.loads(done.stdout) == {
        "file": str(file), "ok": True, "streams": ["dock", "shelf"], "rules": ["handover", "far"], "mistakes": [],
    }  # fmt: skip


def test_mistakes_end_with_2_and_their_places(file):
    """All at once on stderr; or as one object on stdout."""
    file.write_text(GOOD.replace("2 s", "2 sec").replace("shelf AS b", "self AS b"))
    done = run(check, file)
    assert (done.exit_code, done.stdout) == (2, "")
    assert [line.split(": ")[0] for line in done.stderr.splitlines()] == [
        f"{file}:{p}" for p in ("2:39", "5:24", "8:24")
    ]
    done = run(check, file, "--json")
    report = json.loads(done.stdout)
    assert (done.exit_code, report["ok"]) == (2, False)
    assert [(m["line"], m["column"]) for m in report["mistakes"]] == [(2, 39), (5, 24), (8, 24)]
    assert "did you mean shelf?" in report["mistakes"][1]["text"]
    for command in (check, explain):
        assert run(command, file.with_name("none.wa")).exit_code == 2


def test_explain_names_the_owner_of_a_stream_in_all_bodies(file):
    """The gateway or the site, for pairs, for events and for states."""
    file.write_text("""
        STREAM dock  FROM "dock/tags" AT SITE "hall" GATEWAY "g0" DELAY 1 s
        STREAM shelf FROM "shelf/#"   AT SITE "hall" DELAY 1 s
        RULE near  CORRELATE dock AS a, shelf AS b WHERE |@a - @b| <= 1 s OVER 80 %
        RULE order SEQ(dock a, shelf b) WITHIN 1 s PER key
        RULE both  DEFINITELY dock AND shelf WINDOW 4 IN GROUP office
    """)
    said = run(explain, file).stdout
    for line in (
        "a (dock at gateway hall/g0), stamps of",
        "b (shelf at site hall), stamps of",
        "only from    dock at gateway hall/g0",
        'dock: the one with "dock/tags" at gateway hall/g0, 4 states',
    ):
        assert line in said


def test_explain_prints_where_and_how_much(file):
    """Placement with reason, lengths, bounds, probe share, memory."""
    done = run(
        explain, file, "--stream", "dock/tags=hall/g1", "--stream", "shelf/1=hall/g1", "--rate", "dock=10", "--rate",
        "shelf=10",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    one, two = done.stdout.split("\n\n")
    assert one.startswith("rule handover\n  runs         at the edge, on hall/g1: all its streams are on hall/g1\n")
    assert "-500 ms <= @b - @a <= 500 ms, probability at least 0.8" in one
    assert "can match    stamps up to 1.25 s long" in one
    assert "tested     33 % of what an order by maximum tests" in one
    assert "  memory       " in one
    assert "in the cloud: AT CLOUD says so" in two


def test_explain_for_machines_takes_a_file_of_streams_and_one_rule(file, tmp_path):
    """Everything that people read, as numbers."""
    streams = tmp_path / "streams.json"
    streams.write_text(
        json.dumps(
            [
                {"stream": "dock/tags", "site": "hall", "gateway": "g1", "length_us_max": 100_000},
                {"stream": "shelf/1", "gateway": "g2"},
            ]
        )
    )
    done = run(explain, file, "--streams", streams, "--rule", "handover", "--json")
    [rule] = json.loads(done.stdout)["rules"]
    assert (rule["name"], rule["where"], rule["place"]) == ("handover", "cloud", None)
    assert rule["reason"] == "its streams are on 2 gateways: g2, hall/g1"
    assert (rule["lo_us"], rule["hi_us"], rule["longest_us"]) == (-500_000, 500_000, 1_250_000)
    assert rule["sides"][0]["bounds"][0].keys() == {"length_us", "candidates_us", "sure_us"}


def test_the_compiled_rules_are_written_for_each_gateway(file, tmp_path):
    """One file a gateway, which its agent reads; not without the site."""
    out = tmp_path / "out"
    arguments = [file, "--stream", "dock/tags=hall/g1", "--stream", "shelf/1=hall/g1", "--compiled", out]
    assert run(explain, *arguments).exit_code == 0
    assert [p.name for p in out.iterdir()] == ["hall.g1.rules"]
    site, gateway, rules = decode_rules((out / "hall.g1.rules").read_bytes())
    assert (site, gateway, [r.derived for r in rules]) == ("hall", "g1", ["$rule/handover"])
    done = run(explain, file, "--stream", "dock/tags=g1", "--stream", "shelf/1=g1", "--compiled", out)
    assert done.exit_code == 2
    assert "found gateway g1 without a site" in done.stderr


def test_a_rule_that_cannot_run_at_the_edge_ends_with_2(file):
    """With the reason, on stderr or as an object."""
    file.write_text(GOOD.replace("RULE handover", "RULE handover AT EDGE"))
    arguments = [file, "--stream", "dock/tags=hall/g1", "--stream", "shelf/1=hall/g2"]
    done = run(explain, *arguments)
    assert done.exit_code == 2
    assert "rule handover: found AT EDGE, but its streams are on 2 gateways" in done.stderr
    done = run(explain, *arguments, "--json")
    assert (done.exit_code, json.loads(done.stdout)["ok"]) == (2, False)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--rule", "hand"], "expected one of those in"),
        (["--stream", "dock/tags"], "expected NAME=GATEWAY"),
        (["--stream", "dock/tags=a/b/c"], "expected NAME=GATEWAY"),
        (["--stream", "dock/tags=/g"], "expected NAME=GATEWAY"),
        (["--rate", "dock=fast"], "expected STREAM=HZ with one of dock, shelf"),
        (["--rate", "dock=nan"], "expected STREAM=HZ"),
        (["--rate", "dox=1"], "expected STREAM=HZ"),
        (["--streams", "none.json"], "cannot read"),
    ],
)
def test_wrong_use_is_explained(file, arguments, said):
    """Exit 2, what was found and what was expected."""
    done = run(explain, file, *arguments)
    assert done.exit_code == 2
    assert said in done.stderr


@pytest.mark.parametrize(
    "content",
    ["", "{}", "[1]", '[{"stream": "x"}]', '[{"stream": 1, "gateway": "g"}]', '[{"stream": "x", "gateway": "a b"}]',
     '[{"stream": "x", "gateway": "g", "site": 3}]', '[{"stream": "x", "gateway": "g", "length_us_max": -1}]',
     '[{"stream": "x", "gateway": "g", "more": 1}]', "[" * 100_000],
)  # fmt: skip
def test_a_wrong_file_of_streams_is_refused(file, tmp_path, content):
    """Wrong shapes in any place: a usage error that names the file."""
    path = tmp_path / "streams.json"
    path.write_text(content)
    done = run(explain, file, "--streams", path)
    assert done.exit_code == 2
    assert str(path) in done.stderr


EVENTS = """
RULE unpaid
  SEQ(shelf a, !dock c, shelf e) WITHIN 1 h PER key
"""


def test_rules_about_an_order_of_events_are_counted_and_explained(file, tmp_path):
    """Beside the others: gaps with what makes them final, states, the picture; for machines as numbers."""
    file.write_text(GOOD + EVENTS)
    assert run(check, file).stdout == f"{file}: fine, 2 streams and 3 rules\n"
    done = run(explain, file)
    assert done.exit_code == 0, done.output
    text = done.stdout.split("\n\n")[2]
    assert text.startswith("rule unpaid\n  runs         in the cloud: a gateway runs CORRELATE rules only\n")
    assert (
        "  no dock c after a and before e\n    sure       2.3 s after e if a gateway is silent; when each source is 300 ms"
        in text
    )
    assert "  automaton    2 states, one for each set of types present\n     0 {} shelf -> 1\n" in text
    out = tmp_path / "unpaid.svg"
    done = run(explain, file, "--rule", "unpaid", "--svg", out, "--json")
    [rule] = json.loads(done.stdout)["rules"]
    assert (rule["name"], rule["where"], rule["lateness_us"], rule["state_count"]) == ("unpaid", "cloud", 2_000_000, 2)
    assert out.read_text().startswith("<svg ")
    done = run(explain, file, "--rule", "unpaid", "--svg", tmp_path / "none" / "x.svg")
    assert (done.exit_code, "cannot write" in done.stderr) == (2, True)
    assert run(explain, file, "--rule", "far", "--svg", out).exit_code == 0
    assert "a pair from" in out.read_text()
    done = run(explain, file, "--svg", out)
    assert (done.exit_code, "expected one rule: choose with --rule" in done.stderr) == (2, True)


def test_many_states_are_summed_up(file):
    """By number of types present."""
    streams = "".join(f'STREAM s{n} FROM "s{n}" DELAY 1 s\n' for n in range(6))
    file.write_text(streams + "RULE r AND(s0, s1, s2, s3, s4, s5) WITHIN 1 h")
    text = run(explain, file).stdout
    assert "  automaton    64 states, one for each set of types present\n    0 present: 1 state, 0 complete\n" in text
    assert "    3 present: 20 states, 0 complete\n" in text


def test_correlate_refuses_a_rule_about_an_order_of_events(file, tmp_path):
    """And names the command that runs it."""
    file.write_text(GOOD + EVENTS)
    done = run(
        correlate, "--landing", tmp_path, "--rule", file, "--out", tmp_path / "out", "--rule-name", "unpaid", "--once"
    )
    assert done.exit_code == 2
    assert "whenabouts-cloud cep" in done.stderr.replace("\n", " ")


def test_a_file_without_rules_has_nothing_to_explain(file):
    """It is the file that lacks something, not an option that nobody gave."""
    file.write_text('STREAM dock FROM "dock/tags" DELAY 2 s\n')
    for arguments in ([], ["--rule", "hand"]):
        done = run(explain, file, *arguments)
        assert done.exit_code == 2
        assert "found no RULE, expected one to explain" in done.stderr
