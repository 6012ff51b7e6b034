"""Choosing targets: URIs, secrets, missing libraries, other packages, `INTO` (`delivery.targets`, `delivery.uri`)."""

import sys

import pytest
from click.testing import CliRunner

from support.cloud.published_results import match, publish
from whenabouts_cloud.cli import main
from whenabouts_cloud.delivery import targets
from whenabouts_cloud.delivery.published import PART_ROWS, Batch, content_of, json_value
from whenabouts_cloud.delivery.targets import BUILT_IN, chosen, kind_of, open_target
from whenabouts_cloud.delivery.uri import TargetError, identity, shown
from whenabouts_cloud.delivery.webhook import MAX_BYTES, bodies
from whenabouts_cloud.rules import RuleError, parse_rules

STREAMS = 'STREAM a FROM "a" DELAY 1 s\nSTREAM b FROM "b" DELAY 1 s\n'


@pytest.mark.parametrize(
    ("uri", "text"),
    [
        ("postgresql://me:secret@db:1/shop?table=t&password=secret", "postgresql://***@db:1/shop?table=t&password=***"),
        ("https://hooks.example/services/secret?token=secret", "https://hooks.example/..."),
        ("kafka://h/t?sasl.password=secret&acks=1", "kafka://h/t?sasl.password=***&acks=1"),
        ("delta:/data/t", "delta:/data/t"),
        ("delta:s3://me:secret@bucket/t", "delta:s3://***@bucket/t"),
    ],
)
def test_secrets_are_not_shown(uri, text):
    """Neither user information nor parameters that may hold one, nor a webhook's path."""
    assert shown(uri) == text


def test_a_changed_password_is_the_same_target():
    """A changed user or table is another one."""
    assert identity("mqtt://u:a@h/t") == identity("mqtt://u:b@h/t") != identity("mqtt://v:a@h/t")


@pytest.mark.parametrize(
    ("uri", "problem"),
    [
        ("postgresql://h/d?nonsense=1", "nonsense"),
        ("mqtt://h", "found no name after it, expected mqtt://HOST:PORT/TOPIC"),
        ("mqtt://h/t?qos=2", "found parameter qos, expected one of password_file"),
        ("mqtt://h/a/+", "found a wildcard in topic a/\\+"),
        ("mqtt://h:x/t", "expected mqtt://HOST:PORT/TOPIC"),
        ("mqtt://h/t?password_file=/none", "/none: found no readable password"),
        ("http:///x", "found no host"),
        ("https://me@h/x", "found a user without password, expected one for the host in ~/.netrc"),
        ("kafka://h/t?nonsense=1", 'No such configuration property: "nonsense"'),
        ("delta:", "found no table"),
        ("acme://h", "found no such kind of target, expected one of parquet, postgres, delta"),
    ],
)
def test_a_uri_that_cannot_be_used_is_refused_before_the_job_runs(uri, problem, monkeypatch, tmp_path):
    """With what was found and what is expected."""
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(TargetError, match=problem):
        open_target(uri, "matches")


@pytest.mark.parametrize(
    ("module", "uri", "extra"),
    [
        ("psycopg", "postgresql://h/d", "postgres"),
        ("deltalake", "delta:/t", "delta"),
        ("confluent_kafka", "kafka://h/t", "kafka"),
    ],
)
def test_a_missing_library_names_its_extra(module, uri, extra, monkeypatch):
    """At the start, not when the first result comes."""
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(TargetError, match=rf"pip install 'whenabouts\[{extra}\]'"):
        open_target(uri, "pairs")


def test_a_target_of_another_package_is_found_by_its_scheme(monkeypatch):
    """By the entry point group `whenabouts.sinks`; two packages of one name are refused."""
    points = []
    monkeypatch.setattr(targets, "entry_points", lambda group, name: [p for p in points if name == "acme"])

    class Point:
        name = "acme"

        def __init__(self, value):
            self.value = value

        def load(self):
            return lambda uri, unit: (self.value, uri, unit)

    points.append(Point("acme_sink:Acme"))
    assert open_target("acme://h", "pairs") == ("acme_sink:Acme", "acme://h", "pairs")
    points.append(Point("other:Acme"))
    with pytest.raises(TargetError, match="packages that both bring it"):
        open_target("acme://h", "pairs")


def test_parquet_is_always_there():
    """It has no URI, and is no target."""
    assert chosen("parquet") is chosen("", "parquet") is None
    assert chosen("https://h/x", "webhook") == "https://h/x"
    for text, kind in (("delta:/t", "parquet"), ("delta:/t", "kafka"), ("", "delta")):
        with pytest.raises(TargetError, match=kind):
            chosen(text, kind)
    assert {kind_of(uri) for uri in ("postgresql:", "delta:", "mqtts:", "http:", "epcis:", "kafka:")} == set(BUILT_IN)


@pytest.mark.parametrize(
    "body",
    [
        "CORRELATE a AS x, b AS y WHERE |@x - @y| <= 1 s OVER 80 % AND x.key = y.key",
        "SEQ(a x, b y) WITHIN 1 h PER key",
        "SEQ(a x, b y) WITHIN 1 h COUNT EVERY 1 h",
        "DEFINITELY a AND b WINDOW 4 IN GROUP office EAGER",
    ],
)
def test_every_kind_of_rule_can_name_targets(body):
    """They are no part of what a rule is: with others it is the same rule, and its text does not have them."""
    [plain] = parse_rules(f"{STREAMS}RULE r {body}").rules
    [rule] = parse_rules(f'{STREAMS}RULE r {body} INTO postgres "postgresql://u:p@h/d" INTO parquet').rules
    assert rule.into == (("postgres", "postgresql://u:p@h/d"), ("parquet", ""))
    assert rule == plain
    assert rule.text() == plain.text()
    assert "u:p" not in repr(rule)


def test_a_target_without_uri_is_a_mistake_at_its_place():
    """With what is expected."""
    with pytest.raises(RuleError, match=r"3:38: found INTO mqtt without a target, expected one such as INTO mqtt"):
        parse_rules(f"{STREAMS}RULE r SEQ(a x, b y) WITHIN 1 h INTO mqtt")


@pytest.mark.parametrize("command", ["run", "cep"])
def test_a_job_refuses_targets_that_it_cannot_use(command, tmp_path):
    """Of the command line and of the rule file; exit 2, Spark is not started, no secret is shown."""
    rule = tmp_path / "r.wa"
    rule.write_text(f"{STREAMS}RULE r SEQ(a x, b y) WITHIN 1 h")
    job = [command, "--landing", tmp_path, "--rule", rule, "--out", tmp_path / "out"]
    done = CliRunner().invoke(main, [*map(str, job), "--to", "acme://me:secret@h"])
    assert done.exit_code == 2
    assert "found no such kind of target" in done.output
    rule.write_text(f'{STREAMS}RULE r SEQ(a x, b y) WITHIN 1 h INTO kafka "mqtt://me:secret@h/t"')
    again = CliRunner().invoke(main, [*map(str, job)])
    assert again.exit_code == 2
    assert "expected a URI of this kind of target" in again.output
    assert "secret" not in done.output + again.output
    assert not (tmp_path / "out").exists()


def test_results_are_given_in_parts_that_do_not_depend_on_the_rules(tmp_path):
    """So that a repeated batch has the same parts even if other rules name the target."""
    rows = [match(f"m{n}", "one" if n % 2 else "two") for n in range(2 * PART_ROWS + 1)]
    folder = publish(tmp_path, 0, rows)
    sizes = [len(part) for part in Batch(folder, "s", 0).parts()]
    assert sizes == [PART_ROWS, PART_ROWS, 1]
    some = list(Batch(folder, "s", 0, frozenset({"one"})).parts())
    assert [len(part) for part in some] == [PART_ROWS // 2, PART_ROWS // 2, 0]
    assert [row["result_id"] for row in some[0][:2]] == ["m1", "m3"]


def test_a_complete_result_is_known_by_its_content(tmp_path):
    """The same again is not delivered again."""
    digests = {content_of(publish(tmp_path / name, 0, [match(name[0])])) for name in ("a1", "a2", "b")}
    assert len(digests) == 2


def test_values_that_json_cannot_hold_become_null():
    """In lists and structures too."""
    assert json_value({"a": [float("nan"), 1.5, {"b": float("inf")}], "c": "x"}) == {
        "a": [None, 1.5, {"b": None}],
        "c": "x",
    }


def test_a_request_is_no_longer_than_its_limit_unless_one_result_is():
    """Nothing is left out."""
    rows = [{"result_id": str(n), "text": "x" * (MAX_BYTES // 3)} for n in range(5)] + [{"text": "x" * 2 * MAX_BYTES}]
    made = list(bodies(rows))
    assert [body.count(b"text") for body in made] == [2, 2, 1, 1]
    assert all(len(body) <= MAX_BYTES for body in made[:3])
    assert list(bodies([])) == []
