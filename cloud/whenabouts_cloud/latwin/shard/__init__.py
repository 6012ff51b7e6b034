"""A running shard of a rule about the states of a group."""
