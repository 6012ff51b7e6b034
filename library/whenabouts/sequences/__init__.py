"""Sequences of events in frames: what a pattern needs of them, and the matches as rows."""
