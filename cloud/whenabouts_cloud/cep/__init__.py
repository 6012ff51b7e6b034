"""Complex events: sequences of events per key, told exactly and as early as can be, though events arrive out of order."""

from whenabouts_cloud.cep.engine import LimitError, Out, detect, engine
from whenabouts_cloud.cep.pattern import Pattern

__all__ = ["Pattern", "detect", "engine", "Out", "LimitError"]
