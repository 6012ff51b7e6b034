"""The rule language: parses and checks a rule file, and gives its rules as values for the engines.

    # the tags of the dock and of every shelf
    STREAM dock  FROM "dock/tags"  DELAY 2 s  LENGTH 20 ms .. 300 ms
    STREAM shelf FROM "shelf/+"    AT SITE "warehouse"  DELAY 1 s

    RULE handover
      CORRELATE dock AS a, shelf AS b
      WHERE |@a - @b| <= 10 s OVER 80 % AND a.key = b.key

`#` starts a comment; inside quotes it is MQTT's wildcard. Durations are in us, ms, s, min, h.

    STREAM   OFFSET -3 s             added to every stamp of the stream before it is compared
    RULE     AT EDGE, AT CLOUD       forces the place; else the planner chooses (`placement`)
    WHERE    |@a - @b| <= d          at most d apart
             @b - @a IN [lo, hi]     b follows a by lo to hi; both may be negative
             @a + d >= @b WITHIN w   b at most d after a, and at most w before it
             @b - d >= @a WITHIN w   b at least d after a, and at most w
    OVER     0.8 or 80 %             the probability that a pair needs; a tie is a pair
    AND      a.key = b.key           only pairs of one key
             a.gtin = "8061..."      only readings of a whose key has this name (`epc.rule_words`); = and != only
    TOP 3, NEAREST                   for each reading of a only its best partners: the most probable, among equals the
                                     nearest; NEAREST is TOP 1
    KEEP ALL a                       pairs, and each reading of a that is in no pair (left outer join)
    ONLY UNMATCHED a                 only the readings of a that are in no pair

A rule about an order of events; its types are streams:

    RULE unpaid
      SEQ(shelf a, !till c, exit e) WITHIN 1 h PER key OVER 90 %

    SEQ(x, y)   x before y           AND(x, y)   in any order          OR(x, y)    one of them, each with its own places
    A a         an event, named a    (A | B) a   of either type        B{2,5} b    2 to 5, one after the other; B+: 1 to 8
    !C c        no event of C here; at the edge of the pattern as far as the window reaches; in AND anywhere within its span
    WITHIN      1 h, or < 1 h        from the first to the last event
    PER key     (default); ACROSS KEYS takes events of any keys
    CERTAIN     (default), POSSIBLE, OVER 90 % or CAUSAL: the meaning of order where stamps overlap
    WHERE       conditions joined by AND: a.value, a.rssi (or a.attrs.rssi), a.t_min, a.t_max, a.key, and the names in
                keys: a.uri, a.gtin, a.epc_scheme, a.company_prefix; + - * / and = != < <= > >=; AND, OR, NOT; text with
                = and != only;
                for a repetition b[2], b[LAST], b[PREV], and plain b for each one;
                a DURING b and the rest of Allen's relations, which take stamps as durations: BEFORE, AFTER, MEETS, MET BY,
                OVERLAPS, OVERLAPPED BY, STARTS, STARTED BY, DURING, CONTAINS, FINISHES, FINISHED BY, EQUALS
    NEXT        no event between two neighbours that could replace the later one; STRICT: no event of the key at all
    SKIP TO NEXT, SKIP PAST LAST     one match for each first event; no match that overlaps an earlier one
    WHEN SURE   (default) emitted once, when final; ON ARRIVAL: emitted at once, and retracted if it proves wrong

    COUNT       the number of matches of each key instead of the matches; COUNT, SUM(a.value), MIN(a.rssi), MAX(...),
                AVG(...) add aggregates of numeric columns of an element; EVERY 1 h: one count for each hour (from 1970,
                UTC) of the last event, required in a continuous job. Readings count as points, at the middle of their stamps

    INTO        postgres "postgresql://host/db": results are delivered there too (`delivery`); at the end of any rule,
                also several times; delta, mqtt, webhook, kafka

A reading that two streams cover is an event of each: with SEQ(a, b) and streams that overlap it could be both a and b if its
stamp allowed it, and readings of a can violate !b too. Let patterns of streams overlap only on purpose.

A condition does not apply to a match without an element that it names (of another alternative, or a missing repetition). A
condition on a negated element selects the forbidden events. A missing attribute compares as false.

A rule about simultaneous states of gateways; each name is a stream and denotes the states of one gateway:

    RULE mute
      DEFINITELY phone.room = "meeting" AND rfid.speaker AND projector.on
      WINDOW 4 IN GROUP office

    DEFINITELY  it held at some moment for all possible true times: never wrong. POSSIBLY: it may have held
    x.on        holds if the value is there and not 0; a bare x is x.value; compared by = != < <= > >= with numbers, texts
                (= and != only) and values of other streams; AND, OR, NOT; 2 OF (x, y, z), or AT LEAST 2 OF (x, y, z)
    WINDOW      the last 4 states of each gateway count, or WINDOW 4, x 8; the verdicts of DEFINITELY do not depend on it
    IN WINDOW   DEFINITELY IN WINDOW x.on ...: every path through the windows meets it; may be wrong
    IN GROUP    office, or "office-+" for each group of such a name
    PATIENT     emitted when all readings that matter have landed (default of POSSIBLY, and of IN WINDOW)
    EAGER       emitted as soon as it is found (default of DEFINITELY), retracted if it proves wrong: DEFINITELY never does
    CAUSAL      only vector clocks order states; without it stamps order them too

One-sided predicates need WITHIN: without a second limit every older, or newer, reading would match forever. Each form of
predicate becomes limits of @b - @a; rules are equal exactly if their `text()` is equal.
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
