"""Pairs of readings as they arrive: one shard of a running rule, and its outer join."""
