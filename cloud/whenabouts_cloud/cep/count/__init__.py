"""Counts and aggregates of matches, without making a match."""
