"""Publishing from the page; a broker that cannot be reached is told."""

import socket
from dataclasses import asdict

import pytest

from whenabouts_cloud.broker.connection import Credentials
from whenabouts_cloud.dashboard.questions.publishing import answer


def ask(text):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody listens
        broker = ["127.0.0.1", taken.getsockname()[1]]
        return answer({"text": text, "broker": broker, "credentials": asdict(Credentials()), "send": True})


def test_a_broker_that_is_not_there_is_named():
    """With what to look at."""
    with pytest.raises(OSError, match="is it running, is the address right"):
        ask('STREAM a FROM "a" DELAY 1 s')


def test_a_text_with_mistakes_is_never_sent():
    """The broker is not even asked."""
    with pytest.raises(ValueError, match="expected"):
        ask("RULE")
