"""Pairs of readings that arrive bit by bit: one shard of a running rule, and its outer join."""
