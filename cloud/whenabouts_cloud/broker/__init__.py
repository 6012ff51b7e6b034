"""Connections to the broker: address and credentials, errors, and the client that publishes rules."""
