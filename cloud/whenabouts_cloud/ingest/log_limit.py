"""Limits what one gateway can make the ingest log, so that its messages do not fill the disk with lines."""

from collections import OrderedDict

MOST, EVERY_US = 10, 60_000_000  # lines about a gateway and event, in this time
MAX_REMEMBERED = 10_000  # gateways and events; beyond, the oldest are forgotten

Gateway = tuple[str, str]  # site, gateway


class LogLimit:
    """Allows MOST lines about a gateway and event in EVERY_US."""

    def __init__(self) -> None:
        self._told: OrderedDict[tuple[str, Gateway], tuple[int, int]] = OrderedDict()  # since when, how many

    def allows(self, event: str, origin: Gateway, now_us: int) -> bool:
        """True if a line may be logged now; it then counts as logged. When the clock was set back, counting begins anew."""
        since_us, count = self._told.get((event, origin), (now_us, 0))
        if not 0 <= now_us - since_us < EVERY_US:
            since_us, count = now_us, 0
        if count >= MOST:
            return False
        self._told[event, origin] = since_us, count + 1
        if len(self._told) > MAX_REMEMBERED:
            self._told.popitem(last=False)
        return True
