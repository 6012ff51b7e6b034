"""The latest watermarks of gateways and of their boots, noted in one step and in effect from the next one on."""

from collections.abc import Iterable
from typing import Any

from whenabouts_cloud.frontier.gateways import Watermark, Watermarks

MAX_BOOTS = 8  # of a gateway, the latest; the watermark of an earlier one proves nothing any more


class BootWatermarks:
    """Watermarks of gateways and of their boots; none falls, whatever the order of messages."""

    def __init__(self) -> None:
        self._gateways = Watermarks()
        self._boots: dict[str, dict[int, int]] = {}
        self._noted: list[Watermark] = []

    def note(self, watermarks: Iterable[Watermark]) -> None:
        """Note watermarks of this step; the next `take_effect` makes them effective."""
        self._noted += watermarks

    def take_effect(self) -> None:
        """Make the noted watermarks effective."""
        for gateway, us, boot in self._noted:
            self._gateways.note(gateway, us)
            boots = self._boots.setdefault(gateway, {})
            boots[boot] = max(us, boots.get(boot, us))
            if len(boots) > MAX_BOOTS:
                del boots[min(boots)]
        self._noted = []
        self._gateways.take_effect()

    def latest_us(self, gateway: str) -> int | None:
        """The time before which all readings of a gateway have landed, us since 1970 UTC; None without a watermark."""
        return self._gateways.in_effect.get(gateway)

    def boot_us(self, gateway: str, boot: int) -> int | None:
        """The time before which all that happened in a boot of a gateway has landed, us since 1970 UTC; None if unknown."""
        return self._boots.get(gateway, {}).get(boot)

    def snapshot(self) -> list[Any]:
        """Return the state as JSON values."""
        boots = {gateway: list(one.items()) for gateway, one in self._boots.items()}
        return [self._gateways.snapshot(), boots, self._noted]

    def restore(self, snapshot: Any) -> None:
        """Continue from a snapshot."""
        gateways, boots, noted = snapshot
        self._gateways.restore(gateways)
        self._boots = {gateway: dict(one) for gateway, one in boots.items()}
        self._noted = [Watermark(*one) for one in noted]
