"""Judgement of a run against what truly happened."""
