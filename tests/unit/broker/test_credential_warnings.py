"""What an operator is warned of before connecting to a broker."""

import time

import pytest

from support.cloud.enrolled import enrol
from whenabouts_cloud.broker.connection import Credentials
from whenabouts_cloud.broker.credential_warnings import certificate_ends_s, unwise
from whenabouts_cloud.commands.broker_options import credentials

DAY_S = 86400


@pytest.fixture
def files(tmp_path):
    """A folder of an enrolled ingest."""
    enrol("init", "--dir", tmp_path / "ca")
    enrol("ingest", "--dir", tmp_path / "ca", "--out", tmp_path / "ingest")
    return tmp_path / "ingest"


def enrolled(files):
    return Credentials(None, None, *(str(files / name) for name in ("ca.crt", "client.crt", "client.key")))


def test_an_enrolled_client_is_warned_of_nothing(files):
    """Nor is one without credentials."""
    assert list(unwise(enrolled(files), None, time.time())) == []
    assert list(unwise(Credentials(), None, time.time())) == []


def test_a_password_without_tls_is_unwise(files, tmp_path):
    """With TLS it is none."""
    [text] = unwise(Credentials("me", "secret"), None, 0)
    assert "in clear" in text
    assert "secret" not in text
    assert list(unwise(Credentials("me", "secret", str(files / "ca.crt")), None, 0)) == []


def test_secrets_that_others_can_read_are_named(files, tmp_path):
    """Rights of the group are the owner's choice."""
    password = tmp_path / "password"
    password.write_text("secret\n")
    password.chmod(0o644)
    (files / "client.key").chmod(0o604)
    first, second = unwise(enrolled(files), password, time.time())
    assert f"chmod 600 {password}" in first
    assert f"chmod 600 {files}/client.key" in second
    password.chmod(0o640)
    (files / "client.key").chmod(0o600)
    assert list(unwise(enrolled(files), password, time.time())) == []


def test_the_end_of_the_own_certificate_is_told_in_time(files):
    """A month before, and afterwards; a file that is no certificate has no end."""
    end_s = certificate_ends_s(files / "client.crt")
    assert list(unwise(enrolled(files), None, end_s - 31 * DAY_S)) == []
    [soon] = unwise(enrolled(files), None, end_s - 29 * DAY_S)
    assert "client.crt ends on " in soon
    [over] = unwise(enrolled(files), None, end_s)
    assert "client.crt ended on " in over
    assert certificate_ends_s(files / "client.key") is None
    assert certificate_ends_s(files / "none") is None


def test_commands_log_it(tmp_path, caplog):
    """Each sentence is one event of the log."""
    password = tmp_path / "password"
    password.write_text("secret\n")
    password.chmod(0o600)
    credentials("me", password, None, None, None)
    assert ["in clear" in record.getMessage() for record in caplog.records] == [True]
