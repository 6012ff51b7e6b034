"""What a gateway is to its broker, as findings: ends of certificates, rights of files, passwords, the running connection."""

import json
import os
from dataclasses import replace

import pytest
from click.testing import CliRunner

from support.edge.config import FINE
from support.edge.tls_broker import make_certificates, make_client
from whenabouts_edge.cli import main
from whenabouts_edge.config.load import parse
from whenabouts_edge.health import facts
from whenabouts_edge.health.access import (
    DAY_S,
    RENEW_DAYS,
    is_here,
    of_certificates,
    of_connection,
    of_password,
    of_rights,
)
from whenabouts_edge.health.findings import FileFacts, PathFacts

BROKER = parse(FINE + '[broker]\nhost = "broker.example.org"\nusername = "u"\npassword_file = "/p"\n').broker
RUNNING = {"connected": True, "problem": "", "mqtt": "5", "troubles": []}


@pytest.mark.parametrize(
    ("left_s", "said", "fine"),
    [
        (-1, "ended on 2027-01-15; the connection is refused", False),
        (5 * DAY_S, "in 5 days", False),
        (RENEW_DAYS * DAY_S, "is valid until", True),
    ],
)
def test_a_certificate_is_to_be_renewed_thirty_days_before_its_end(left_s, said, fine):
    """Afterwards it is of no use."""
    [finding] = of_certificates([("cert_file", "/c", 1_800_000_000)], 1_800_000_000 - left_s)
    assert said in finding.found
    assert finding.fine == fine


@pytest.mark.parametrize(
    ("key", "mode", "said"),
    [
        ("key_file", 0o644, "may read"), ("password_file", 0o604, "may read"), ("password_file", 0o640, ""),
        ("ca_file", 0o644, ""), ("ca_file", 0o646, "may change"), ("password_file", 0o602, "may change"),
    ],
)  # fmt: skip
def test_others_read_no_secret_and_change_nothing(key, mode, said):
    """Certificates are no secrets, but who changes an authority chooses the broker."""
    found = list(of_rights(FileFacts(key, "/f", PathFacts(0, 0, "root", mode, "file"), ())))
    assert [said in finding.found for finding in found] == ([True] if said else [])
    assert list(of_rights(FileFacts(key, "/f", None, ()))) == []


def test_a_password_goes_through_a_network_with_tls_only():
    """To this machine itself it may go without."""
    assert "without TLS" in next(of_password(BROKER)).found
    for fine in ({"ca_file": "/ca"}, {"host": "127.0.0.1"}, {"host": "localhost"}, {"password_file": None}):
        assert list(of_password(replace(BROKER, **fine))) == []
    assert is_here("::1")
    assert not is_here("192.168.1.1")


def test_the_doctor_asks_a_running_agent_instead_of_the_broker():
    """Every trouble is a finding with its advice."""
    [fine] = of_connection(RUNNING, BROKER)
    assert fine.fine
    assert "as warehouse/dock-1" in fine.found
    lost, named = of_connection({**RUNNING, "connected": False, "problem": "gone", "troubles": ["a; b; c"]}, BROKER)
    assert "gone" in lost.found
    assert (named.found, named.fix) == ("a; b", "c")


def test_check_doctor_and_status_tell_all_of_it(tmp_path):
    """From the files of a configuration: a certificate of two days, a key that all may read, a password without TLS."""
    make_certificates(tmp_path)
    make_client(tmp_path, "late", 12_000)
    (tmp_path / "client.key").chmod(0o644)
    config, state = tmp_path / "edge.toml", tmp_path / "status.json"
    config.write_text(
        f'state_dir = "{tmp_path}"\n{FINE}[broker]\n'
        f'cert_file = "{tmp_path}/client.pem"\nkey_file = "{tmp_path}/client.key"\n'
    )
    status = {
        "site": "s", "gateway": "g", "running": True, "boot": 1, "written_us": 0, "refused": 0, "readers": {},
        "group": None, "broker": {**RUNNING, "certificate_end_s": 0, "troubles": ["another client uses this name; x"]},
        "clock": {"state": "bounded", "bound_us": 1000}, "spool": {"readings": 1, "bytes": 2}, "pid": os.getpid(),
    }  # fmt: skip
    state.write_text(json.dumps(status))
    said = {
        name: CliRunner().invoke(main, [name, "--config", str(config)]).output for name in ("check", "doctor", "status")
    }
    for name, text in said.items():
        assert "client.pem ends on" in text, name
        assert "everybody on this machine may read" in text, name
    for name in ("doctor", "status"):
        assert "another client uses this name" in said[name]
    assert (
        facts.certificates(replace(BROKER, cert_file=str(tmp_path / "late.pem"), ca_file=str(tmp_path / "no")))[0][2]
        > 2e9
    )
