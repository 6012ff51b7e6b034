"""Frontiers: the time before which everything of a gateway, a stream or a rule has landed. All engines use them.

A gateway's watermark says "all my readings with t_max before this have landed" (`gateways`). The frontier of a stream
follows from the watermarks of its gateways (`stream`), that of a rule from its streams (`rule`), that of a group from
the gateways of its processes (`processes`). A frontier never falls. A reading that lands below it is late.

When a watermark takes effect: a driver lists readings and watermarks one after the other. So a watermark of step n may
cover a reading that became visible between the two listings and arrives only in step n + 1. It cannot arrive later,
because it was visible before the watermark. Therefore watermarks passed to one step take effect in the next, after the
readings of that step.
"""
