"""True events at simulated sites, and their times."""
