"""Lands readings from the broker: each durable before it is acknowledged, exactly once; nothing is discarded."""
