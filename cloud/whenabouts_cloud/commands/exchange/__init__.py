"""Commands that read and write the formats of others."""
