"""`whenabouts-cloud publish` where nothing can be sent."""

import pytest
from click.testing import CliRunner

from whenabouts_cloud.broker.connection import BrokerError, Credentials
from whenabouts_cloud.broker.rules_client import RulesClient
from whenabouts_cloud.commands.broker_options import credentials
from whenabouts_cloud.commands.publish import publish


def run(tmp_path, text, broker="127.0.0.1:1"):
    (tmp_path / "rules.wa").write_text(text)
    return CliRunner().invoke(publish, [str(tmp_path / "rules.wa"), "--broker", broker])


def test_a_broker_that_is_not_there_is_named(tmp_path):
    """Exit 1 with its address and what to check."""
    result = run(tmp_path, 'STREAM a FROM "a" DELAY 1 s')
    assert result.exit_code == 1
    assert "broker 127.0.0.1:1: cannot connect" in result.output


def test_a_bad_rule_file_is_refused_before_anything_is_sent(tmp_path):
    """Exit 2 with the place of the mistake."""
    result = run(tmp_path, 'STREAM a FROM "a" DELAY 1 parsec')
    assert result.exit_code == 2
    assert "rules.wa:1:27: found the unit parsec" in result.output


@pytest.mark.parametrize("address", ["localhost:", ":1883", "localhost:99999", "localhost:x"])
def test_an_address_that_is_none_is_refused(tmp_path, address):
    """Exit 2 and an example."""
    result = run(tmp_path, "", address)
    assert result.exit_code == 2
    assert "expected HOST:PORT such as localhost:1883" in result.output


def test_the_password_is_the_first_line_of_its_file(tmp_path):
    """A line end at the end of the file is not part of it."""
    (tmp_path / "password").write_text("secret\n")
    assert credentials("me", tmp_path / "password", None, None, None) == Credentials("me", "secret")


def test_a_client_of_a_broker_that_is_not_there_ends_at_once():
    """BrokerError on entering; nothing runs on in the background."""
    with pytest.raises(BrokerError, match="cannot connect"), RulesClient("127.0.0.1", 1, Credentials()):
        pass
