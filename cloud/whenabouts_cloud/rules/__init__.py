"""The rule language: what users write, checked as a whole, as values that engines take.

    # the tags of the dock and of every shelf
    STREAM dock  FROM "dock/tags"  DELAY 2 s  LENGTH 20 ms .. 300 ms
    STREAM shelf FROM "shelf/+"    AT SITE "warehouse"  DELAY 1 s

    RULE handover
      CORRELATE dock AS a, shelf AS b
      WHERE |@a - @b| <= 10 s OVER 80 % AND a.key = b.key

`#` starts a comment; inside quotes it is MQTT's wildcard. Durations are in us, ms, s, min, h.
"""

from whenabouts_cloud.rules.errors import Mistake, RuleError
from whenabouts_cloud.rules.model import CorrelateRule, RuleFile, Stream
from whenabouts_cloud.rules.parse import load_rules, parse_rules

__all__ = ["parse_rules", "load_rules", "RuleFile", "Stream", "CorrelateRule", "RuleError", "Mistake"]
