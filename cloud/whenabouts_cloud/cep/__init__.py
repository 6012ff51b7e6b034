"""Complex events: sequences of readings of one key, found although the readings arrive out of order."""

from whenabouts_cloud.cep.pattern import Pattern

__all__ = ["Pattern"]
