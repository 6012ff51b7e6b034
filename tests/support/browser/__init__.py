"""Dashboards for tests: served by a process or a thread, and asked over HTTP."""
