"""A rule about events in an order, applied to readings: by a running shard, or to all readings at once."""
