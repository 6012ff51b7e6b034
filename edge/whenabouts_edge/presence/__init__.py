"""Presence of tags at a reader: when each came, when it left, and which expected one is not there."""
