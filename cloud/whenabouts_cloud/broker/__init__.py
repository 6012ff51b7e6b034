"""Connections to the broker: who asks, and what cannot be reached."""
