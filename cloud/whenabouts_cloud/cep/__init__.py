"""Complex events: sequences of events per key, told exactly and as early as can be, though events arrive out of order."""

from whenabouts_cloud.cep.engine import detect, engine
from whenabouts_cloud.cep.infa_hts import LimitError
from whenabouts_cloud.cep.out import Out
from whenabouts_cloud.cep.pattern import Pattern

__all__ = ["LimitError", "Out", "Pattern", "detect", "engine"]
