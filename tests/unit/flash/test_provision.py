"""A board's configuration from an agent's: what carries over, what is refused with a way out, and where secrets go."""

import json
import os
import stat

import pytest
from click.testing import CliRunner

from whenabouts_edge.board.config import checked
from whenabouts_edge.cli import main
from whenabouts_edge.config.load import ConfigError
from whenabouts_edge.flash.boards import UnknownBoard, board, known
from whenabouts_edge.flash.ports import Ports
from whenabouts_edge.flash.provision import provision, redacted

FINE = """\
site = "warehouse"
gateway = "dock-1"
[broker]
host = "broker.example.org"
[board]
wifi_ssid = "warehouse"
[[reader]]
name = "dock"
kind = "m6e"
port = "uart0"
"""
PICO = board("pico_w")


def no_file(path):
    raise FileNotFoundError(2, "No such file or directory", path)


def made(text, kind=PICO, environment=None, read=no_file):
    return provision(text, kind, environment or {}, read, "edge.toml")


def mistakes(text, kind=PICO, **more):
    with pytest.raises(ConfigError) as caught:
        made(text, kind, **more)
    return caught.value.mistakes


@pytest.mark.parametrize("name", known())
def test_the_facts_of_every_board_are_whole(name):
    """Each file loads; a board whose ports are no terminals has UARTs, each with pins, and room for its readings."""
    facts = board(name)
    assert facts.terminals or facts.uarts
    assert all(uart.tx and uart.rx and uart.rxbuf >= 256 for uart in facts.uarts.values())
    assert facts.flash_log_segments * 32768 < facts.flash_bytes


@pytest.mark.parametrize("name", ["pico_w", "unix"])
def test_readers_on_a_network_are_for_gateways(name):
    """A board reads serial lines; the line of the kind is named."""
    text = FINE.replace('"m6e"', '"llrp"').replace('port = "uart0"', 'host = "192.168.1.20"')
    assert (
        "edge.toml:9: [reader] kind: found llrp, expected a reader on a serial line: boards read no others"
        in mistakes(text, board(name))
    )


def test_for_an_unknown_board_the_known_ones_are_listed():
    """Found, expected."""
    with pytest.raises(UnknownBoard, match="found 'pico', expected one of esp32, pico_w, simulated, unix"):
        board("pico")


def test_the_smallest_configuration_becomes_one_that_the_board_takes():
    """Names, broker and reader carry over; the port becomes the UART's usual pins; times are those of boards."""
    config = made(FINE).config
    assert config == checked(json.loads(json.dumps(config)))
    assert config["broker"] == {"host": "broker.example.org", "port": 1883, "keepalive_s": 30}
    assert config["readers"] == [
        {"port": {"id": 0, "tx": 0, "rx": 1, "rxbuf": 1024}, "kind": "m6e", "stream": "dock/tags"}
    ]
    assert (config["commit_ms"], config["heartbeat_ms"], config["resend_s"]) == (5000, 5000, 30)
    assert config["wifi"] == {"ssid": "warehouse", "password": ""}
    assert (config["led"], config["watchdog_s"]) == ("LED", 8)
    assert config["build"].endswith(" on pico_w")


def test_what_is_set_is_what_the_board_gets():
    """Every setting of reader, heartbeat and spool that a board has."""
    text = FINE.replace('kind = "m6e"', 'kind = "line"').replace("[board]", "[heartbeat]\nevery_ms = 700\n[board]")
    text += 'baud = 4800\nlatency_us = 5\nadapter_us = 7\nlisten_only = true\nform = "csv"\ncolumns = ["t", "p"]\n'
    text += 'key_field = "p"\nvalue_field = "t"\nunit = "Cel"\n[spool]\ncommit_ms = 90\n'
    config = made(text).config
    assert config["readers"] == [{
        "port": {"id": 0, "tx": 0, "rx": 1, "rxbuf": 1024}, "kind": "line", "stream": "dock/values", "baud": 4800,
        "latency_us": 5, "adapter_us": 7, "listen_only": True, "form": "csv", "columns": ["t", "p"], "key": "p",
        "value": "t", "unit": "Cel",
    }]  # fmt: skip
    assert (config["commit_ms"], config["heartbeat_ms"]) == (90, 700)


def test_other_pins_are_named_with_the_port():
    """UART 1 on pins 8 and 9."""
    config = made(FINE.replace("uart0", "uart1:tx=8,rx=9")).config
    assert config["readers"][0]["port"] == {"id": 1, "tx": 8, "rx": 9, "rxbuf": 1024}


def test_two_readers_share_neither_uart_nor_pin():
    """On an ESP32 any pin can be any UART's."""
    ports = Ports(board("esp32"))
    assert ports.take("uart1", "a") == ({"id": 1, "tx": 25, "rx": 26, "rxbuf": 1024}, [])
    assert ports.take("uart2:tx=17,rx=26", "b")[1] == [
        "port: found pin 26 again, expected one that reader a does not use"
    ]
    assert ports.take("uart1:tx=4,rx=5", "c")[1] == ["port: found uart1 again, expected one that reader a does not use"]


def test_a_board_on_this_computer_reads_terminals_and_reaches_its_localhost():
    """No Wi-Fi is required, the path of a port stays."""
    text = FINE.replace("broker.example.org", "localhost").replace("uart0", "/dev/pts/7")
    provisioned = made(text, board("unix"))
    assert provisioned.config["readers"][0]["port"] == "/dev/pts/7"
    assert "wifi" not in provisioned.config
    assert provisioned.notes == ("[board] wifi_ssid is left out: unix has no Wi-Fi",)


TABLE = [
    # (change to FINE, text of the one mistake)
    (("uart0", "/dev/ttyUSB0"), [
        "edge.toml:10: [reader] port: found /dev/ttyUSB0, expected uart0 or uart1 of pico_w, such as uart0, "
        "or uart0:tx=12,rx=13 with other pins",
    ]),
    (("uart0", "uart1:tx=0,rx=5"), ["edge.toml:10: [reader] port: found tx=0, expected a pin of uart1: 4, 8, 20"]),
    (('port = "uart0"', 'port = "uart0"\nbaud = 0'), [
        "edge.toml:11: [reader] baud: found 0, expected the speed of the line: a UART has one",
    ]),
    (("broker.example.org", "127.0.0.1"), [
        "edge.toml:4: [broker] host: found 127.0.0.1, which on a board means the board; expected the broker's address in "
        "the network",
    ]),
    (('wifi_ssid = "warehouse"', ""), [
        "edge.toml:5: [board] wifi_ssid is missing: the Wi-Fi network that pico_w is to join",
    ]),
    (("[board]", '[clock]\nsource = "chrony"\n[board]'), [
        'edge.toml:6: [clock] source: found "chrony", expected "auto": a board asks the time server of [board]',
    ]),
    (("[board]", "[spool]\nlimit_mib = 1\n[board]"), [
        "edge.toml:6: [spool] limit_mib: found 1, expected it left out: pico_w keeps 256 KiB of readings",
    ]),
    (("[board]", 'cert_file = "c.pem"\nkey_file = "k.pem"\n[board]'), [
        "edge.toml:5: [broker] cert_file: found it without ca_file, expected both: a board has no built-in authorities",
    ]),
    (("[board]", '[group]\nname = "g"\nmembers = ["x"]\n[board]'), [
        "edge.toml:1: on this board group states: found 0, expected 1 to 8",
    ]),
    (("[[reader]]", '[[reader]]\nname = "gate"\nkind = "rdm6300"\nport = "uart0:tx=12,rx=13"\n[[reader]]'), [
        "edge.toml:14: [reader] port: found uart0 again, expected one that reader gate does not use",
    ]),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), TABLE, ids=[str(expected[0][:40]) for _, expected in TABLE])
def test_a_setting_that_a_board_cannot_have_is_refused_with_its_line(change, expected):
    """The text has what was found, what was expected, what to do."""
    assert FINE.count(change[0]) >= 1
    assert mistakes(FINE.replace(*change)) == expected


def test_all_settings_that_a_board_cannot_have_are_reported_at_once():
    """Three settings, three lines, in the order of the file."""
    text = FINE.replace("uart0", "COM3").replace("broker.example.org", "localhost")
    text = 'metrics_file = "m.prom"\n' + text
    assert [line.split(":")[1] for line in mistakes(text)] == ["1", "5", "11"]


def test_mistakes_of_the_file_itself_come_first():
    """They are those of `check`."""
    assert mistakes(FINE.replace("m6e", "m7e"))[0].startswith("edge.toml:9: [reader] kind: found 'm7e'")


def test_a_setting_without_effect_is_noted():
    """The folder of the spool means nothing on a board."""
    assert made('state_dir = "/x"\n' + FINE).notes == (
        "state_dir has no effect on a board: readings wait in the board's flash",
    )


def test_files_that_the_configuration_names_go_along():
    """Certificates to trust and compiled rules, at paths of the board."""
    text = 'rules_file = "r"\n' + FINE.replace("[board]", 'ca_file = "ca.pem"\n[board]')
    provisioned = made(text, read=lambda path: path.encode())
    assert provisioned.files == {"/ca.pem": b"ca.pem", "/rules.cbor": b"r"}
    assert provisioned.config["broker"]["ca_file"] == "/ca.pem"
    assert provisioned.config["rules"]["file"] == "/rules.cbor"


def test_a_group_carries_over_with_its_states():
    """This gateway among the members, a presence without thresholds, a measure without counts."""
    text = FINE + '[group]\nname = "g"\nmembers = ["gate", "shop/till"]\n'
    text += '[[state]]\nname = "here"\nstream = "dock/tags"\n'
    text += '[[state]]\nname = "hot"\nstream = "dock/tags"\nattr = "rssi"\non_at = -50\noff_at = -60\n'
    assert made(text).config["group"] == {
        "name": "g",
        "members": ["warehouse/dock-1", "warehouse/gate", "shop/till"],
        "stream": "dock-1/state",
        "states": [
            {"name": "here", "stream": "dock/tags", "reads": 1, "leave_ms": 5000},
            {"name": "hot", "stream": "dock/tags", "attr": "rssi", "on_at": -50, "off_at": -60, "hold_ms": 0},
        ],
    }


def test_passwords_come_from_the_environment_before_files():
    """The file is not even read then."""
    text = FINE.replace("[board]", 'username = "dock"\npassword_file = "p"\n[board]')
    config = made(text, environment={"WHENABOUTS_BROKER_PASSWORD": "b", "WHENABOUTS_WIFI_PASSWORD": "w"}).config
    assert (config["broker"]["password"], config["wifi"]["password"]) == ("b", "w")
    assert made(text, read=lambda path: f"of {path}\nmore".encode()).config["broker"]["password"] == "of p"


def test_a_password_file_that_cannot_be_read_is_a_mistake():
    """One that is not there, and one without a first line."""
    text = FINE.replace("[board]", 'username = "dock"\npassword_file = "p"\n[board]')
    [mistake] = mistakes(text)
    assert mistake.startswith("edge.toml:6: [broker] password_file: cannot read (")
    assert mistake.endswith("expected a readable file; give yourself permission")
    [mistake] = mistakes(text, read=lambda path: b"\n")
    assert mistake == "edge.toml:6: [broker] password_file: found no text on the first line of p, expected the password"


def test_what_is_shown_of_a_configuration_has_no_secrets():
    """Of a table in a table too."""
    assert redacted({"broker": {"host": "h", "password": "x"}, "password": "y"}) == {
        "broker": {"host": "h", "password": "***"},
        "password": "***",
    }


SECRET = "correct horse"


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setenv("WHENABOUTS_WIFI_PASSWORD", SECRET)
    (tmp_path / "edge.toml").write_text(FINE)

    def call(*words):
        return CliRunner().invoke(main, ["provision", "--config", str(tmp_path / "edge.toml"), *words])

    return call


@pytest.mark.parametrize("words", [(), ("--json",)])
def test_the_command_writes_a_file_that_only_its_user_can_read(run, tmp_path, words):
    """Even where a file was that all could; the password is in it, and nowhere in what is printed."""
    out = tmp_path / "board.json"
    out.write_text("old")
    out.chmod(0o644)
    before = os.umask(0)
    try:
        done = run("--board", "pico_w", "--out", str(out), *words)
    finally:
        os.umask(before)
    assert done.exit_code == 0, done.output
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    assert json.loads(out.read_text())["wifi"]["password"] == SECRET
    assert SECRET not in done.output + done.stderr
    if words:
        assert json.loads(done.stdout)["config"]["wifi"] == {"ssid": "warehouse", "password": "***"}


def test_the_command_ends_with_2_for_what_cannot_be(run, tmp_path):
    """An unknown board, a missing file, a setting: on stderr, or in the object for machines."""
    done = run("--board", "pico", "--out", str(tmp_path / "x"))
    assert (done.exit_code, done.stdout) == (2, "")
    assert "expected one of esp32, pico_w" in done.stderr
    (tmp_path / "edge.toml").write_text(FINE.replace("uart0", "COM1"))
    done = run("--board", "pico_w", "--out", str(tmp_path / "x"), "--json")
    assert done.exit_code == 2
    assert len(json.loads(done.stdout)["mistakes"]) == 1
    (tmp_path / "edge.toml").unlink()
    assert run("--board", "pico_w", "--out", str(tmp_path / "x")).exit_code == 2
    assert not (tmp_path / "x").exists()
