"""A rule about events in an order over readings: one shard of it that runs, or all readings at once."""
