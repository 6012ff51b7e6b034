"""Credentials for the broker, the error of a broker that cannot be used, and the end of a connection."""

import contextlib
from dataclasses import dataclass

import paho.mqtt.client as mqtt


class BrokerError(Exception):
    """The broker cannot be reached or refuses. The text says which and what to do."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """Credentials that the broker asks for; all optional."""

    username: str | None = None
    password: str | None = None
    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None

    def apply(self, client: mqtt.Client) -> None:
        """Make a client present them when it connects."""
        if self.username:
            client.username_pw_set(self.username, self.password)
        if self.ca_file or self.cert_file:
            client.tls_set(self.ca_file, self.cert_file, self.key_file)


def stop_loop(client: mqtt.Client) -> None:
    """Wait for paho's thread to end."""
    with contextlib.suppress(AttributeError):  # in paho: its thread may end between the check and the join
        client.loop_stop()
