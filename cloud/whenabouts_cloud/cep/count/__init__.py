"""Counts and aggregates of matches, without building a match."""
