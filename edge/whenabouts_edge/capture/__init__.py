"""Recording and replay of serial traffic: the commands `capture`, `trace` and `replay`."""
