"""The dashboard: what has landed and what was found, in a browser, live or long ago."""
