"""The connection to the broker, and the messages in flight."""
