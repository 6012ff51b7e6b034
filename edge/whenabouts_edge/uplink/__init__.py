"""The connection to the broker, and what is on its way."""
