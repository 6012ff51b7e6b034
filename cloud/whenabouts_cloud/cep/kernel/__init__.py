"""The compiled event engine: one call of machine code processes a block of events."""
