"""`whenabouts-cloud ingest` as a user meets it before anything flows: help and mistakes."""

import socket

import pytest
from click.testing import CliRunner
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.reasoncodes import ReasonCode

from whenabouts_cloud.broker.connection import Credentials
from whenabouts_cloud.cli import main
from whenabouts_cloud.ingest.landing_writer import Landing
from whenabouts_cloud.ingest.receiving.reception import Reception


def run(*arguments: object):
    return CliRunner().invoke(main, ["ingest", *map(str, arguments)])


@pytest.fixture
def nobody_port():
    """A port that is taken but on which nobody listens, so that connecting is refused."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


def test_help_names_each_option_its_variable_and_an_example():
    """One screen, with an example to copy."""
    result = run("--help")
    assert result.exit_code == 0
    for text in ("--broker", "WHENABOUTS_BROKER", "--landing", "WHENABOUTS_LANDING", "--json", "--ca-file",
                 "whenabouts-cloud ingest --broker localhost:1883 --landing ./landing"):  # fmt: skip
        assert text in result.output


@pytest.mark.parametrize("broker", ["localhost:", ":1883", "localhost:x", "localhost:0", "localhost:65536", "h:²", ""])
def test_a_bad_address_is_wrong_usage(broker, tmp_path):
    """Exit 2, with what was found and what was expected."""
    result = run("--broker", broker, "--landing", tmp_path)
    assert result.exit_code == 2
    assert "expected HOST:PORT such as localhost:1883" in result.output


def test_a_broker_that_is_not_there_is_named(tmp_path, nobody_port):
    """Exit 1; the text has the address and what to look at. The landing is free again."""
    result = run("--broker", f"127.0.0.1:{nobody_port}", "--landing", tmp_path)
    assert result.exit_code == 1
    assert f"broker 127.0.0.1:{nobody_port}: cannot connect" in result.output
    assert "is it running" in result.output
    Landing(tmp_path).close()


@pytest.mark.parametrize("landing", ["/proc/landing", "/dev/null/landing"])
def test_a_landing_that_cannot_be_written_is_named(landing):
    """Exit 1; nothing was connected."""
    result = run("--broker", "localhost:1883", "--landing", landing)
    assert result.exit_code == 1
    assert f"landing {landing}: cannot be written" in result.output


def test_a_landing_in_use_is_named(tmp_path):
    """Exit 1, another ingest writes here."""
    other = Landing(tmp_path)
    result = run("--broker", "localhost:1883", "--landing", tmp_path)
    other.close()
    assert result.exit_code == 1
    assert "another ingest writes here" in result.output


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\xfa"])
def test_a_password_file_without_a_password_is_named(tmp_path, content):
    """Empty, or no text: exit 1 and no traceback."""
    path = tmp_path / "password"
    path.write_bytes(content)
    result = run("--broker", "localhost:1883", "--landing", tmp_path / "l", "--password-file", path)
    assert result.exit_code == 1
    assert f"password file {path}" in result.output


def test_a_certificate_file_that_holds_none_is_reported(tmp_path, nobody_port):
    """Exit 1 and no traceback."""
    path = tmp_path / "ca.pem"
    path.write_text("no certificate")
    result = run("--broker", f"127.0.0.1:{nobody_port}", "--landing", tmp_path / "l", "--ca-file", path)
    assert result.exit_code == 1
    assert "certificates right?" in result.output


def test_a_subscription_that_the_broker_refuses_is_reported(caplog):
    """The log names the filter and what to do, instead of an ingest that waits in silence."""
    reception = Reception("localhost", 1883, "id", Credentials())
    granted, refused = (ReasonCode(PacketTypes.SUBACK, name) for name in ("Granted QoS 1", "Not authorized"))
    reception._on_subscribe(None, None, 1, [granted, granted, granted, refused, granted], None)
    (record,) = caplog.records
    assert (record.event, str(record.fields["topic"])) == ("broker.refused", "wa/2/+/+/obs")
    assert "Not authorized" in str(record.fields["reason"])
    assert record.getMessage() == "allow this user to read it"


def test_the_log_is_written_in_the_configured_form(tmp_path, nobody_port):
    """As text or JSON (`whenabouts_cloud.commands.options`); another form is wrong usage."""
    where = ("--broker", f"127.0.0.1:{nobody_port}", "--landing", tmp_path)
    assert run(*where, "--log-format", "json").exit_code == 1
    result = run(*where, "--log-format", "xml")
    assert (result.exit_code, "'text', 'json'" in result.output) == (2, True)


def test_a_uri_is_not_taken_for_a_folder(tmp_path, monkeypatch):
    """It would make a folder named "s3:"."""
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(main, ["landing", "check", "--landing", "s3://bucket/landing"])
    assert done.exit_code == 2
    assert "which looks like a URI, expected a folder" in " ".join(done.output.split())
    assert not list(tmp_path.iterdir())
