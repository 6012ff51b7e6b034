"""The kinds of readers: one module each, next to the modules of their frames."""
