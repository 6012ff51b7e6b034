"""Recording what a serial port gives, and playing it again: the commands `capture`, `trace` and `replay`."""
