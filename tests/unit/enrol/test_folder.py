"""The authority's folder and the commands on it: rights of files, refusals, and two commands at once."""

import json
import os
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from click.testing import CliRunner

from support.cloud.enrolled import enrol
from whenabouts_cloud.cli import main
from whenabouts_cloud.enrol import folder as folders
from whenabouts_cloud.enrol.command import DAYS
from whenabouts_cloud.enrol.folder import opened, registered


@pytest.fixture
def ca(tmp_path):
    enrol("init", "--dir", tmp_path / "ca")
    return tmp_path / "ca"


def refused(*arguments: object) -> str:
    result = CliRunner().invoke(main, ["enrol", *map(str, arguments)])
    assert result.exit_code in (1, 2), result.output
    assert "Traceback" not in result.output
    return result.output


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_secrets_are_for_their_owner_only(ca, tmp_path):
    """Whatever the umask is."""
    old = os.umask(0)
    try:
        enrol("gateway", "s", "a", "--dir", ca, "--out", tmp_path / "a")
        enrol("broker", "--dir", ca, "--out", tmp_path / "b")
        enrol("init", "--dir", tmp_path / "other")
    finally:
        os.umask(old)
    private = ["ca/ca.key", "ca/register.json", "a/client.key", "b/server.key", "b/acl", "other/ca.key"]
    assert {name: mode(tmp_path / name) for name in private} == dict.fromkeys(private, 0o600)
    folders = ["ca", "a", "b", "b/sessions", "other"]
    assert {name: mode(tmp_path / name) for name in folders} == dict.fromkeys(folders, 0o700)


def test_an_authority_is_never_overwritten(ca):
    """Nor is a part of one; the key stays the same."""
    key = (ca / "ca.key").read_bytes()
    assert "found ca.key, expected no authority" in refused("init", "--dir", ca)
    (ca / "ca.key").unlink()
    assert "found ca.crt, expected no authority" in refused("init", "--dir", ca)
    (ca / "ca.key").write_bytes(key)
    enrol("list", "--dir", ca)


def test_commands_without_an_authority_say_how_to_make_one(tmp_path):
    """And leave nothing in the folder."""
    assert "enrol init" in refused("gateway", "s", "a", "--dir", tmp_path, "--out", tmp_path / "a")
    assert "enrol init" in refused("list", "--dir", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_belongs_to_one_identity(ca, tmp_path):
    """--out of another gateway is refused before anything is issued."""
    enrol("gateway", "s", "a", "--dir", ca, "--out", tmp_path / "a")
    before = registered(ca)[0]
    assert "found the certificate of s/a" in refused("gateway", "s", "b", "--dir", ca, "--out", tmp_path / "a")
    assert "found the certificate of s/a" in refused("ingest", "--dir", ca, "--out", tmp_path / "a")
    assert "found the certificate of s/a" in refused("broker", "--dir", ca, "--out", tmp_path / "a")
    assert registered(ca)[0] == before


def test_the_table_of_a_gateway_is_toml_with_its_names(ca, tmp_path):
    """Also with names that TOML must escape, and with files that will lie elsewhere."""
    out = tmp_path / "a"
    assert "localhost:8883; run `enrol broker` first" in enrol("gateway", "s", 'q"\\', "--dir", ca, "--out", out)
    enrol("broker", "--dir", ca, "--out", tmp_path / "b", "--host", "broker.example", "--port", 8884)
    enrol("gateway", "s", 'q"\\', "--dir", ca, "--out", out)
    table = tomllib.loads((out / "broker.toml").read_text())["broker"]
    assert table == {
        "host": "broker.example", "port": 8884, "client_id": 's/q"\\', "ca_file": f"{out}/ca.crt",
        "cert_file": f"{out}/client.crt", "key_file": f"{out}/client.key",
    }  # fmt: skip
    enrol("gateway", "s", 'q"\\', "--dir", ca, "--out", out, "--broker", "[::1]:9", "--installed-in", "/etc/whenabouts")
    table = tomllib.loads((out / "broker.toml").read_text())["broker"]
    assert (table["host"], table["port"], table["key_file"]) == ("::1", 9, "/etc/whenabouts/client.key")


@pytest.mark.parametrize(
    "arguments",
    [
        ("--stream", "a+"), ("--stream", "#/a"), ("--stream", ""), ("--stream", "a\nb"), ("--group", "a/b"),
        ("--broker", "host:0"), ("--broker", ":1"), ("--days", "0"), ("--days", "99999"),
    ],
)  # fmt: skip
def test_mistakes_are_refused_before_anything_is_issued(ca, tmp_path, arguments):
    """With the option and what was expected."""
    assert arguments[0] in refused("gateway", "s", "a", "--dir", ca, "--out", tmp_path / "a", *arguments)
    assert registered(ca)[0].certificates == ()


@pytest.mark.parametrize("pattern", ["dock/tags", "dock/+", "+/tags", "#", "a/#", "$rule/x", "+", "a/+/b", "+/+"])
def test_streams_are_patterns_like_those_of_rules(ca, tmp_path, pattern):
    """They arrive in gateways.json."""
    enrol("gateway", "s", "a", "--dir", ca, "--out", tmp_path / "a", "--stream", pattern)
    assert json.loads((ca / "gateways.json").read_text())["gateways"]["s/a"]["streams"] == [pattern]


def test_a_passphrase_protects_the_key(tmp_path):
    """Every command that signs needs it; the list does not."""
    phrase, wrong, ca = tmp_path / "phrase", tmp_path / "wrong", tmp_path / "ca"
    phrase.write_text("open sesame\n")
    wrong.write_text("\n")
    enrol("init", "--dir", ca, "--passphrase-file", phrase)
    enrol("gateway", "s", "a", "--dir", ca, "--out", tmp_path / "a", "--passphrase-file", phrase)
    assert "--passphrase-file" in refused("gateway", "s", "a", "--dir", ca, "--out", tmp_path / "a")
    assert "no text on its first line" in refused("revoke", "s", "a", "--dir", ca, "--passphrase-file", wrong)
    assert "s/a" in enrol("list", "--dir", ca)


def test_the_list_shows_who_is_in(ca, tmp_path):
    """As text and as JSON, with warnings of what ends soon."""
    enrol("gateway", "s", "a", "--dir", ca, "--out", tmp_path / "a", "--days", 3, "--stream", "x", "--group", "g")
    enrol("gateway", "s", "b", "--dir", ca, "--out", tmp_path / "b")
    enrol("revoke", "s", "b", "--dir", ca)
    listed = json.loads(enrol("list", "--dir", ca, "--json"))
    a, b = listed["certificates"]
    assert (a["identity"], a["revoked"], a["streams"], a["groups"]) == ("s/a", False, ["x"], ["g"])
    assert (b["identity"], b["revoked"], b["groups"]) == ("s/b", True, [])
    assert len(listed["warnings"]) == 1
    assert "s/a: its certificate ends in" in listed["warnings"][0]
    text = enrol("list", "--dir", ca)
    assert "revoked" in text
    assert "warning: s/a" in text


def test_revoking_somebody_unknown_is_refused(ca):
    """A misspelt name must not look like success."""
    assert "found no such gateway" in refused("revoke", "s", "nobody", "--dir", ca)


def test_replacing_revokes_the_earlier_certificate_only(ca, tmp_path):
    """The new one is valid, and the gateway is not revoked."""
    enrol("gateway", "s", "a", "--dir", ca, "--out", tmp_path / "a")
    enrol("gateway", "s", "a", "--dir", ca, "--out", tmp_path / "a", "--replace")
    old, new = registered(ca)[0].certificates
    assert (old.revoked_s is None, new.revoked_s is None) == (False, True)
    assert new.ends_s - time.time() == pytest.approx(DAYS * 86400, abs=60)
    assert not registered(ca)[0].gateways["s/a"].revoked


def test_a_broker_that_cannot_be_written_is_named(ca, tmp_path):
    """The revocation itself stands."""
    enrol("gateway", "s", "a", "--dir", ca, "--out", tmp_path / "a")
    enrol("broker", "--dir", ca, "--out", tmp_path / "b")
    (tmp_path / "b").rename(tmp_path / "moved")
    assert "not written: " in enrol("revoke", "s", "a", "--dir", ca)
    assert registered(ca)[0].gateways["s/a"].revoked


def test_what_a_killed_command_left_out_the_next_one_writes(ca, tmp_path, monkeypatch):
    """A revocation that ended after the register is in the lists once any command has run."""
    enrol("gateway", "s", "a", "--dir", ca, "--out", tmp_path / "a")
    write = folders.write_durably

    def killed(path, data, *mode):
        if path.name == "crl.pem":
            raise KeyboardInterrupt
        write(path, data, *mode)

    with monkeypatch.context() as patch:
        patch.setattr(folders, "write_durably", killed)
        CliRunner().invoke(main, ["enrol", "revoke", "s", "a", "--dir", str(ca)], standalone_mode=False)
    assert not json.loads((ca / "gateways.json").read_text())["gateways"]["s/a"]["revoked"]
    enrol("ingest", "--dir", ca, "--out", tmp_path / "i")
    assert json.loads((ca / "gateways.json").read_text())["gateways"]["s/a"]["revoked"]


def test_commands_at_once_lose_nothing(ca, tmp_path):
    """Each waits for the others; all gateways are in the register."""

    def enrol_some(site: str) -> None:
        for n in range(5):
            with opened(ca, None) as open_one:
                identity = f"{site}/{n}"
                open_one.register = open_one.register.enrolled(identity, (), ())
                open_one.enrol_client(identity, tmp_path / site / str(n), int(time.time()), 1)

    with ThreadPoolExecutor() as pool:
        list(pool.map(enrol_some, "abc"))
    assert len(registered(ca)[0].certificates) == len(registered(ca)[0].gateways) == 15
