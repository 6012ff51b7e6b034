"""Delivers results as events to repositories of EPCIS."""
