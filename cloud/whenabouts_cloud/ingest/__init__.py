"""From the broker to the landing: every reading durable before it is acknowledged, once, and nothing thrown away."""
