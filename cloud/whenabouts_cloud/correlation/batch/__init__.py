"""All pairs of two sets of intervals that satisfy a condition, in memory, in one call or block by block."""
