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

A rule about an order of events; its types are streams:

    RULE unpaid
      SEQ(shelf a, !till c, exit e) WITHIN 1 h PER key OVER 90 %

    SEQ(x, y)   x before y           AND(x, y)   in any order          OR(x, y)    one of them, with places of their own
    A a         an event, called a   (A | B) a   of either type        B{2,5} b    so many, one after the other; B+: 1 to 8
    !C c        no event of C here; at the edge of the pattern as far as the window reaches; in AND wherever it could fill
    WITHIN      1 h, or < 1 h        from the first to the last event
    PER key     which is the default; ACROSS KEYS takes events of any keys
    CERTAIN     (default), POSSIBLE, OVER 90 % or CAUSAL: what order means where stamps overlap
    WHERE       conditions joined by AND: a.value, a.rssi (or a.attrs.rssi), a.t_min, a.t_max, a.key; + - * / and
                = != < <= > >=; AND, OR, NOT; text with = and != only;
                of a repetition b[2], b[LAST], b[PREV], and b alone for every one;
                a DURING b and the rest of Allen's relations, which take stamps as durations: BEFORE, AFTER, MEETS, MET BY,
                OVERLAPS, OVERLAPPED BY, STARTS, STARTED BY, DURING, CONTAINS, FINISHES, FINISHED BY, EQUALS
    NEXT        between two neighbours nothing that could have come there; STRICT: nothing of the key at all
    SKIP TO NEXT, SKIP PAST LAST     one match for each first event; none that overlaps one before
    WHEN SURE   (default) told once and for good; ON ARRIVAL: at once, and taken back if it proves wrong

    COUNT       instead of the matches, how many each key has; COUNT, SUM(a.value), MIN(a.rssi), MAX(...), AVG(...) with
                aggregates of numbers that the events of an element have; EVERY 1 h: apart by the hour (from 1970, UTC) of
                the last event, as a job that goes on needs. Readings count as points, at the middle of their stamps

A reading that two streams cover is an event of each: with SEQ(a, b) and streams that overlap it could be both a and b if its
stamp allowed it, and !b forbids by readings of a too. Let patterns of streams overlap only where that is meant.

A condition says nothing in a match without an element that it names (of another alternative, or a repetition that did not
come). One on a negated element says which events are forbidden. What an event does not have compares as false.

A rule about the states that gateways were in together; each name is a stream and stands for the states of one gateway:

    RULE mute
      DEFINITELY phone.room = "meeting" AND rfid.speaker AND projector.on
      WINDOW 4 IN GROUP office

    DEFINITELY  it held at some moment, whatever the true times were: never wrong. POSSIBLY: it may have
    x.on        holds if the value is there and not 0; a bare x is x.value; compared by = != < <= > >= with numbers, texts
                (= and != only) and values of other streams; AND, OR, NOT; 2 OF (x, y, z), or AT LEAST 2 OF (x, y, z)
    WINDOW      4 states of each gateway are looked at, or WINDOW 4, x 8; the verdicts of DEFINITELY do not depend on it
    IN WINDOW   DEFINITELY IN WINDOW x.on ...: whatever path leads through the windows meets it; may be wrong
    IN GROUP    office, or "office-+" for each group of such a name
    PATIENT     told when all that may matter has landed (default of POSSIBLY, and of IN WINDOW)
    EAGER       told as soon as it is found (default of DEFINITELY), and withdrawn if it proves wrong: DEFINITELY never does
    CAUSAL      only the vector clocks say what was before what; else stamps do as well

One-sided predicates need WITHIN: without a second limit every older, or newer, reading would match for ever. However a
predicate is written it becomes limits of @b - @a, and rules are equal exactly if their `text()` is.
"""

from whenabouts_cloud.language.errors import Mistake, RuleError
from whenabouts_cloud.rules.model import CepRule, CorrelateRule, LatwinRule, Rule, RuleFile, Stream
from whenabouts_cloud.rules.parse import load_rules, parse_rules

__all__ = [
    "parse_rules",
    "load_rules",
    "RuleFile",
    "Stream",
    "CorrelateRule",
    "CepRule",
    "LatwinRule",
    "Rule",
    "RuleError",
    "Mistake",
]
