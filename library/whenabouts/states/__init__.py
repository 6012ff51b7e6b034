"""Local states in frames: which states each stream had, runs of states in which a condition held, runs that held at once."""
