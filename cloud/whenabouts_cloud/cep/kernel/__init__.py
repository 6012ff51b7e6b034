"""The compiled event engine: one block of events through it in one call of machine code."""
