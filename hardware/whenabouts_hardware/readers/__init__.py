"""The readers: one module each, beside the modules of their frames."""
