"""The rule language: what users write, checked as a whole, as values that engines take.

    # the tags of the dock and of every shelf
    STREAM dock  FROM "dock/tags"  DELAY 2 s  LENGTH 20 ms .. 300 ms
    STREAM shelf FROM "shelf/+"    AT SITE "warehouse"  DELAY 1 s

    RULE handover
      CORRELATE dock AS a, shelf AS b
      WHERE |@a - @b| <= 10 s OVER 80 % AND a.key = b.key

`#` starts a comment; inside quotes it is MQTT's wildcard. Durations are in us, ms, s, min, h.

    STREAM   OFFSET -3 s             added to every stamp of the stream before it is compared
    RULE     AT EDGE, AT CLOUD       forces the place; else the planner chooses (`plan`)
    WHERE    |@a - @b| <= d          at most d apart
             @b - @a IN [lo, hi]     b follows a by lo to hi; both may be negative
             @a + d >= @b WITHIN w   b at most d after a, and at most w before it
             @b - d >= @a WITHIN w   b at least d after a, and at most w
    OVER     0.8 or 80 %             the probability that a pair needs; a tie is a pair
    AND      a.key = b.key           only pairs of one key
    TOP 3, NEAREST                   of each reading of a only its best partners: the most probable, of equal ones
                                     the nearest; NEAREST is TOP 1
    KEEP ALL a                       pairs, and each reading of a that has none, alone
    ONLY UNMATCHED a                 only the latter

One-sided predicates need WITHIN: without a second limit every older, or newer, reading would match for ever. However a
predicate is written it becomes limits of @b - @a, and rules are equal exactly if their `text()` is.
"""

from whenabouts_cloud.rules.errors import Mistake, RuleError
from whenabouts_cloud.rules.model import CepRule, CorrelateRule, Rule, RuleFile, Stream
from whenabouts_cloud.rules.parse import load_rules, parse_rules

__all__ = [
    "parse_rules",
    "load_rules",
    "RuleFile",
    "Stream",
    "CorrelateRule",
    "CepRule",
    "Rule",
    "RuleError",
    "Mistake",
]
