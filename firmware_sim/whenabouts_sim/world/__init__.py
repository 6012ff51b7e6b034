"""What truly happens at simulated sites, and when."""
