"""Up to which time everything has landed: of a gateway, of a stream, of a rule. Every engine decides by it.

A gateway's watermark says "everything of mine with t_max before this has landed" (`gateways`). The frontier of a stream
follows from the watermarks of the gateways that feed it (`stream`), that of a rule from its streams (`rule`). A frontier
never falls, and what lands before it is late.

When a watermark counts. A driver lists readings and watermarks one after the other. So a watermark of step n may cover a
reading that became visible between the two listings and comes only in step n + 1. It cannot come later: it was visible
before the watermark. Therefore watermarks that one step is given take effect in the next, after the readings of that step.
"""
