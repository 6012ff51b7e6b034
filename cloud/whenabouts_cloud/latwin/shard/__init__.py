"""A rule about states over reports of a group: one shard of it that runs."""
