"""Configuration: every mistake at once with its line, hints, the sample file, and nothing but ConfigError for any text."""

import json
import re
import tomllib
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from support.edge.config import FINE, GROUP_LINES
from support.paths import REPOSITORY
from support.search import examples
from whenabouts_edge.config.load import MAX_READERS, ConfigError, load, parse
from whenabouts_edge.config.settings import CLOCK, GENERAL, READER, REQUIRED, STATE, TABLES, Config, sample
from whenabouts_hardware import READERS

KNOWN = ", ".join(sorted(READERS))


def mistakes(text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        parse(text, "edge.toml")
    return caught.value.mistakes


def refusals(text: str) -> list[str]:
    """The mistakes of a text that may also be fine; at least one if it is not."""
    try:
        parse(text, "edge.toml")
    except ConfigError as error:
        return error.mistakes or ["a ConfigError without mistakes"]
    return []


def test_smallest_file_gets_every_default():
    """Site, gateway and one reader are enough; the reader's facts fill in the rest."""
    config = parse(FINE)
    assert isinstance(config, Config)
    assert (config.broker.host, config.broker.port, config.clock["source"]) == ("localhost", 1883, "auto")
    assert (config.spool_limit_bytes, config.commit_ms, config.heartbeat_ms) == (256 << 20, 50, 1000)
    [reader] = config.readers
    assert (reader.stream, reader.baud, reader.latency_us) == ("dock/tags", 115200, 1_000_000)


TABLE = [
    # (change to FINE, exact messages)
    (('site = "warehouse"\n', ""), [
        "edge.toml:1: site is missing: Site of this gateway; first level of its topics.",
    ]),
    (
        ('"warehouse"', '"ware house"'),
        ["edge.toml:1: site: found 'ware house', expected 1 to 64 bytes without space / + #, not beginning with $ or ."],
    ),
    (
        ('"m6e"', '"m6"'),
        [f"edge.toml:5: [reader] kind: found 'm6', expected one of {KNOWN}"],
    ),
    (('kind = "m6e"', 'kin = "m6e"'), [
        f"edge.toml:3: [reader] kind is missing: Protocol of the reader: {KNOWN}, or one of an installed package.",
        "edge.toml:5: [reader] unknown key kin; did you mean kind?",
    ]),
    (("[[reader]]", "[reader]"), [
        "edge.toml:3: [reader] found {'name': 'dock', 'kind': 'm6e', 'port': '/dev/ttyUSB0'}, "
        "expected 1 to 32 tables that begin with [[reader]] in double brackets",
    ]),
    (('kind = "m6e"', 'kind = "m6e"\nclock_ppm = 50'), [
        "edge.toml:6: [reader] unknown key clock_ppm; only readers of kind llrp have it",
    ]),
    (("[[reader]]", "brokr = 3\n[[reader]]"), ["edge.toml:3: unknown key brokr; did you mean broker?"]),
    (("[[reader]]", "broker = 3\n[[reader]]"), ["edge.toml:3: [broker] found 3, expected a table"]),
    (("[[reader]]", "broker = {port = 0}\n[[reader]]"), [
        "edge.toml:3: [broker] port: found 0, expected a whole number from 1 to 65535",
    ]),
    (("[[reader]]", '[broker]\nport = "1883"\nqqq = 1\n[[reader]]'), [
        "edge.toml:4: [broker] port: found '1883', expected a whole number",
        "edge.toml:5: [broker] unknown key qqq; known are host, port, client_id, username, password_file, ca_file, "
        "cert_file, key_file, keepalive_s, resend_s",
    ]),
    (("[[reader]]", '[clock]\nsource = "fixed"\n[[reader]]'), [
        'edge.toml:4: [clock] source "fixed" needs bound_us, found none',
    ]),
    (("[[reader]]", '[clock]\nsource = "fixed"\nbound_us = -1\n[[reader]]'), [
        "edge.toml:5: [clock] bound_us: found -1, expected a whole number from 0 to 1000000000000",
    ]),
    (("[[reader]]", '[clock]\nsource = "ntp"\n[[reader]]'), [
        "edge.toml:4: [clock] source: found 'ntp', expected one of auto, clockbound, chrony, timesyncd, adjtimex, fixed, "
        "sim",
    ]),
    (("[[reader]]", '[broker]\ncert_file = "a.pem"\npassword_file = "p"\n[[reader]]'), [
        "edge.toml:4: [broker] found one of cert_file and key_file, expected both or none",
        "edge.toml:5: [broker] found password_file without username, expected both",
    ]),
    (('"/dev/ttyUSB0"\n', '"/dev/ttyUSB0"\n# again\n' + FINE[FINE.index("[[") :]), [
        "edge.toml:9: [reader] name 'dock' is already that of reader number 1",
        "edge.toml:11: [reader] port '/dev/ttyUSB0' is already that of reader number 1",
    ]),
    (('port = "/dev/ttyUSB0"', "port = 5\nlisten_only = 1\nbaud = 9600.5"), [
        "edge.toml:6: [reader] port: found 5, expected text in quotes",
        "edge.toml:7: [reader] listen_only: found 1, expected true or false",
        "edge.toml:8: [reader] baud: found 9600.5, expected a whole number",
    ]),
    (('port = "/dev/ttyUSB0"', 'port = ""'),
         ["edge.toml:6: [reader] port: found '', expected text that is not empty, without control characters"]),
    (('port = "/dev/ttyUSB0"', f'port = "a"\nstream = "{"x" * 300}"'), [
        f"edge.toml:7: [reader] stream: found '{'x' * 76}..., expected text of 1 to 256 bytes",
    ]),
    (('port = "/dev/ttyUSB0"', 'port = "a"\n[spool]\nlimit_mib = 1979-05-27'), [
        "edge.toml:8: [spool] limit_mib: found datetime.date(1979, 5, 27), expected a whole number",
    ]),
    (('port = "/dev/ttyUSB0"', 'port = "a"\nleave_ms = 0\nexpected = []'), [
        "edge.toml:7: [reader] leave_ms: found 0, expected a whole number from 1 to 86400000",
        "edge.toml:8: [reader] expected: found [], expected a list of 1 to 1000 keys",
    ]),
    (('port = "/dev/ttyUSB0"', 'port = "a"\npresence_stream = "p"\nexpected = ["04A1"]'), [
        "edge.toml:7: [reader] found presence_stream without leave_ms, expected both",
        "edge.toml:8: [reader] found expected without leave_ms, expected both",
    ]),
    (('port = "/dev/ttyUSB0"', 'port = "a"\nleave_ms = 900\npresence_stream = "dock/tags"'), [
        "edge.toml:8: [reader] stream 'dock/tags' is already that of another reader or of readings",
    ]),
    (('kind = "m6e"', 'kind = "id12la"\nleave_ms = 900'), [
        "edge.toml:6: [reader] leave_ms: found a reader of kind id12la, which reports a tag only once; expected one "
        "that repeats tags while they stay",
    ]),
    (('kind = "m6e"', 'kind = "line"\nleave_ms = 900'), [
        "edge.toml:6: [reader] leave_ms needs a key: lines have one with key_field",
    ]),
    (("[[reader]]", "# a line separator \u2028 in a comment is no new line\n[heartbeat]\nevery_ms = inf\n[[reader]]"), [
        "edge.toml:5: [heartbeat] every_ms: found inf, expected a whole number",
    ]),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), TABLE, ids=[repr(change[1])[:30] for change, _ in TABLE])
def test_mistake_is_reported_with_its_line_and_what_was_expected(change, expected):
    """The whole text of the messages, and no other message."""
    old, new = change
    assert FINE.count(old) == 1
    assert mistakes(FINE.replace(old, new)) == expected


def test_all_mistakes_come_at_once_in_the_order_of_lines():
    """Five mistakes in four tables, five messages."""
    reader = '[[reader]]\nname = "a/b"\nkind = "m6e"\nport = "p"\n'
    text = 'gatewy = "x"\n[spool]\nlimit_mib = 0\n[heartbeat]\nevery_ms = true\n' + reader
    lines = mistakes(text)
    assert [int(m.split(":")[1]) for m in lines] == sorted(int(m.split(":")[1]) for m in lines)
    assert len(lines) == 6
    assert "edge.toml:1: unknown key gatewy; did you mean gateway?" in lines


def test_a_group_has_members_of_any_site_and_states_with_defaults():
    """The gateway itself may be in the list; a measure has its thresholds."""
    measure = '[[state]]\nname = "near"\nstream = "dock/tags"\nattr = "rssi"\non_at = -50\noff_at = -60.5\n'
    group = parse(FINE + GROUP_LINES + measure).group
    assert (group.name, group.peers, group.stream) == (
        "office", (("warehouse", "door-1"), ("shop", "till-1")), "dock-1/state",
    )  # fmt: skip
    loaded, near = group.states
    assert (loaded.key, loaded.reads, loaded.leave_ms, loaded.on_at) == (None, 1, 5000, None)
    assert (near.attr, near.on_at, near.off_at, near.hold_ms) == ("rssi", -50, -60.5, 0)
    assert parse(FINE).group is None


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (('name = "office"\n', ""), [
            "edge.toml:7: [group] name is missing: the group that this gateway is a member of",
            "edge.toml:9: [state] found states but no group; set name and members in [group]",
        ]),
        (('["dock-1", "door-1", "shop/till-1"]', '["dock-1"]'),
         ["edge.toml:9: [group] found 0 other members, expected 1 to 63 of them"]),
        (('"door-1"', '"a/b/c"'),
         ["edge.toml:9: [group] found member 'a/b/c', expected gateway or site/gateway"]),
        (('"door-1"', '"till-1"'), ["edge.toml:9: [group] found two members named till-1, expected unique names"]),
        (('"shop/till-1"', '"shop/dock-1"'),
         ["edge.toml:9: [group] found two members named dock-1, expected unique names"]),
        (('"shop/till-1"', "3"), [
            "edge.toml:9: [group] members: found ['dock-1', 'door-1', 3], expected a list of texts",
        ]),
        (('name = "loaded"', 'name = "2nd"'),
         ["edge.toml:11: [state] name: found '2nd', expected letters, digits and _, not beginning with a digit"]),
        (('name = "loaded"', 'name = "value"'),
         ["edge.toml:11: [state] name: found 'value', expected letters, digits and _, not beginning with a digit"]),
        (('stream = "dock/tags"', 'stream = "door/tags"'),
         ["edge.toml:12: [state] found stream 'door/tags', expected one of dock/tags"]),
        (('stream = "dock/tags"', 'stream = "dock/tags"\non_at = 5\nreads = 2'), [
            "edge.toml:10: [state] off_at is missing: a measure has two thresholds",
            "edge.toml:14: [state] reads belongs to a presence, found thresholds of a measure",
        ]),
        (('stream = "dock/tags"', 'stream = "dock/tags"\non_at = 5\noff_at = 5.0'),
         ["edge.toml:14: [state] found on_at equal to off_at, expected different thresholds"]),
        (('stream = "dock/tags"', 'stream = "dock/tags"\non_at = nan\noff_at = 5.0'),
         ["edge.toml:13: [state] on_at: found nan, expected a number from -1e+15 to 1e+15"]),
        (('[[state]]', '[[state]]\nname = "loaded"\nstream = "dock/tags"\n[[state]]'),
         ["edge.toml:14: [state] name 'loaded' is already that of another state"]),
        (("[[state]]", "[state]"),
         ["edge.toml:10: [state] found {'name': 'loaded', 'stream': 'dock/tags'}, expected at most 28 tables that begin"
          " with [[state]] in double brackets"]),
    ],
)  # fmt: skip
def test_mistakes_in_group_and_states_are_reported_with_their_lines(change, expected):
    """The text has what was found, what was expected, and where."""
    assert mistakes(FINE + GROUP_LINES.replace(*change, 1)) == expected


def test_a_group_has_at_most_64_members():
    """As many as a clock has entries; one more is refused."""
    others = [f"g{i}" for i in range(64)]
    text = FINE + GROUP_LINES
    shown = '["dock-1", "door-1", "shop/till-1"]'
    assert len(parse(text.replace(shown, json.dumps(others[:63]))).group.peers) == 63
    [mistake] = mistakes(text.replace(shown, json.dumps(others)))
    assert mistake.endswith("found 64 other members, expected 1 to 63 of them")


def test_no_or_too_many_readers():
    """A gateway has 1 to MAX_READERS of them."""
    head = FINE[: FINE.index("[[")]
    one = '[[reader]]\nname = "r{0}"\nkind = "rdm6300"\nport = "p{0}"\n'
    [text] = mistakes(head)
    assert text.startswith("edge.toml:1: [reader] found 0 readers, expected 1 to 32 tables that begin with [[reader]]")
    assert len(parse(head + "".join(one.format(i) for i in range(MAX_READERS))).readers) == MAX_READERS
    [text] = mistakes(head + "".join(one.format(i) for i in range(MAX_READERS + 1)))
    assert "found 33 readers" in text


def test_sample_is_valid_and_mentions_every_option():
    """As printed, and with everything uncommented; defaults shown are the defaults."""
    text = sample()
    config = parse(text)
    assert config.gateway == "dock-1"
    lines = text.split("\n")
    uncommented = "\n".join(line[1:] if line.startswith("#") and not line.startswith("# ") else line for line in lines)
    document = tomllib.loads(uncommented)
    foreign = tuple(key for key in CLOCK if key != "source")  # each belongs to another source than the default one
    foreign += "columns", "key_field", "value_field", "unit"  # of a reader of lines
    foreign += "attr", "on_at", "off_at", "hold_ms"  # these make a measure of the presence
    of_chrony = "\n".join(line for line in uncommented.split("\n") if not line.startswith(foreign))
    assert parse(of_chrony).readers[0].stream == "dock/tags"
    assert [state.name for state in parse(of_chrony).group.states] == ["loaded"]
    document["reader"], document["state"] = document["reader"][0], document["state"][0]
    for name, options in [("", GENERAL), *TABLES.items(), ("reader", READER), ("state", STATE)]:
        table = document if not name else document[name]
        for key, option in options.items():
            assert key in table, f"[{name}] {key}"
            assert f"# {option.about}" in lines
            if option.default is not REQUIRED and option.default is not None:
                assert table[key] == option.default
            elif option.default is None:
                assert any(line.startswith(f"#{key} = ") and line.endswith("# example") for line in lines)


scalars = st.one_of(
    st.integers(), st.just(10**4000), st.floats(), st.booleans(), st.text(max_size=10),
    st.datetimes(), st.dates(), st.times(),
)  # fmt: skip
names = st.one_of(
    st.sampled_from(
        ["site", "gateway", "reader", "state", *TABLES, *READER, *STATE, *(k for t in TABLES.values() for k in t)]
    ),
    st.text(max_size=8),
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=4), max_leaves=12
)


def to_toml(value: object) -> str:
    """Any value as TOML, tables inline."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, str):
        return json.dumps(value.encode(errors="replace").decode()).replace("\x7f", "\\u007f")
    if isinstance(value, list):
        return "[" + ", ".join(map(to_toml, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{to_toml(k)} = {to_toml(v)}" for k, v in value.items()) + "}"
    return value.isoformat()


@settings(max_examples=examples(300), deadline=None)
@given(st.dictionaries(names, values, max_size=6))
@example({"broker": 3, "reader": {}, "clock": [], "spool": "x", "heartbeat": 1.5})
@example(
    {"reader": [3, {}, {"name": [1], "kind": {}, "port": 10**4000}], "site": float("nan"), "gateway": float("inf")}
)
def test_no_document_raises_anything_but_config_error(document):
    """Wrong shapes everywhere: a list of readable messages, each with place and line."""
    text = "\n".join(f"{to_toml(key)} = {to_toml(value)}" for key, value in document.items())
    for mistake in refusals(text):
        assert mistake.startswith("edge.toml:")
        assert len(mistake) < 400


@pytest.mark.parametrize(
    "text",
    ["site = 0x" + "f" * 5000,
     "[[reader]]\nport = 0x" + "f" * 5000, "x = " + "[" * 5000, "x = " + "9" * 5000,
     ".".join("a" * 3000) + " = 1", "broker" + ".a" * 3000 + " = 1",
     "x = 1\nx = 2", "\x00", "[[reader]]\n[reader]", "a = 2026-13-01", "\ufeffsite = 1"],
    ids=lambda text: repr(text[:20]),
)  # fmt: skip
def test_text_that_is_hardly_toml_is_refused_in_order(text):
    """Nesting, digits and dots without end, doubled keys, bytes that are no text."""
    assert all(m.startswith("edge.toml:") for m in mistakes(text))


@settings(max_examples=examples(200), deadline=None)
@given(st.text())
def test_no_text_raises_anything_but_config_error(text):
    """For any contents of the file."""
    refusals(text)


def test_file_that_cannot_be_read_explains_how_to_make_one(tmp_path):
    """Missing, a folder, no text, without an end."""
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    for path, problem in (
        (tmp_path / "none.toml", "found No such file"), (tmp_path, "found Is a directory"),
        (tmp_path / "bytes.toml", "found bytes that are no text"), (Path("/dev/zero"), "found more than 1048576 bytes"),
    ):  # fmt: skip
        with pytest.raises(
            ConfigError, match=rf"{path}: .*{problem}.*; expected a TOML file in UTF-8; .* sample-config"
        ):
            load(path)


def test_the_mark_that_some_editors_begin_a_file_with_is_no_mistake(tmp_path):
    """Notepad's."""
    (tmp_path / "edge.toml").write_bytes(b"\xef\xbb\xbf" + FINE.encode())
    assert load(tmp_path / "edge.toml").gateway == "dock-1"


@pytest.mark.parametrize(
    "host", ["mqtt://broker", "broker:1883", "a..b", "a b", "x" * 64, "\u00fc" * 64, "a/b", "[::1]", "."]
)
def test_a_host_that_no_machine_can_have_is_refused(host):
    """An address with scheme or port would be looked up as a name forever, and one that is no name ended the doctor."""
    [mistake] = mistakes(FINE + f'[broker]\nhost = "{host}"\n')
    assert mistake == (
        f"edge.toml:8: [broker] host: found {host!r}, expected only the name or the address of a machine, such as "
        "broker.example.org"
    )


@pytest.mark.parametrize(
    "host", ["localhost", "broker.example.org.", "10.0.0.1", "::1", "fe80::1%eth0", "b\u00fccher.example", "my_pi"]
)
def test_a_host_that_a_machine_can_have_is_taken(host):
    """Names, and addresses of both kinds."""
    assert parse(FINE + f'[broker]\nhost = "{host}"\n').broker.host == host


def test_an_unknown_source_of_the_clock_is_one_mistake():
    """Its keys are judged when it is known."""
    [mistake] = mistakes(FINE + '[clock]\nsource = "moon"\nbound_us = 5\n')
    assert "source: found 'moon', expected one of auto" in mistake


def test_the_configuration_in_the_page_about_groups_is_valid():
    """A reader of docs/groups.md can copy it."""
    [text] = re.findall(r"```toml\n(.*?)```", (REPOSITORY / "docs" / "groups.md").read_text(), re.S)
    group = parse(text).group
    assert (group.name, group.peers, group.stream) == (
        "meeting", (("office", "phone"), ("lab", "projector")), "rfid/state",
    )  # fmt: skip
    assert [(s.name, s.key, s.reads, s.leave_ms) for s in group.states] == [
        ("speaker", "0000C0FFEE", 1, 3000), ("anybody", None, 2, 5000),
    ]  # fmt: skip
