"""Firmware of simulated readers: sans-IO cores that take the host's bytes and give timed bytes back."""
