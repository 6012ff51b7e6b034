"""Frames of all kinds: which kind one is, its columns of times as whole microseconds, and results as the same kind."""
