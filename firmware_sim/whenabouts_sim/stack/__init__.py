"""The whole system on one machine, each part in its own process."""
