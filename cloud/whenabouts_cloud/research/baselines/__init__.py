"""Baselines for the event engine: K-slack, conservative, aggressive."""
