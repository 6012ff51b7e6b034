"""Serves the page and its answers over HTTP."""
