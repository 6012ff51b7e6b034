"""A schedule: what happens in a world and what goes wrong there, as a value that a seed decides."""
